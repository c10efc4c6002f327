"""Descriptions that the GraphQL schema and the OpenAPI document share."""

from __future__ import annotations

from collections.abc import Mapping

from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.deprecation import Deprecation
from diptych.model.naming import upper_first
from diptych.model.nesting import NestView
from diptych.model.resource_view import InputView, ResourceView, Taking
from diptych.model.rules.expr import TRUE
from diptych.model.searching import MOST_WORDS

INPUTS: Mapping[Taking, tuple[str, str]] = {
    "create": ("Create", "A new {}."),
    "update": ("Patch", "The fields of a {} to change; others keep their values."),
    "replace": ("Replace", "A complete {}. Omitted fields become their default or null."),
}
"""Suffix of the input type after the name of the resource, and its description."""


_IDENTITY = {
    "openid": "know who you are",
    "profile": "see your name and profile",
    "email": "see your e-mail address",
    "offline_access": "keep its access while you are away",
}
"""Scopes that do not narrow what the API allows, but select claims about the user."""


def describe_inputs(verb: Taking, resource: ResourceView) -> str:
    """The description of an input type: what it is, and the constraints across its fields."""
    takes = resource.takes(verb)
    definition = resource.resource
    parts = [INPUTS[verb][1].format(definition.name)]
    for key in definition.keys:
        if key.unique and takes.keys() >= set(key.fields):
            partial = "" if key.where == TRUE else ", among some rows"
            parts.append(f"Unique{' together' * (len(key.fields) > 1)}: {', '.join(key.fields)}{partial}.")
    parts += [f"{upper_first(check.message)}." for check in definition.checks.values() if takes.keys() & check.fields]
    return " ".join(parts)


def describe_scope(scope: str) -> str:
    """What a scope permits: `see posts`, `change everything that you may change`."""
    if scope in _IDENTITY:
        return _IDENTITY[scope]
    what, _, kind = scope.rpartition(":")
    verb = {"read": "see", "write": "change"}.get(kind, kind)
    return f"{verb} {what or f'everything that you may {verb}'}"


def describe_reason(resource: ResourceDef) -> str:
    """What the description of a mutation says about the reason of a change, where an audited resource asks for one."""
    audit = resource.audit
    if audit is None or not audit.reason:
        return ""
    verb = "Needs" if audit.reason == "required" else "Takes"
    return f" {verb} a reason: the header `Change-Reason`, or `changeReason` in the extensions of the request."


def describe_search(resource: ResourceView) -> str:
    """The description of a full-text search."""
    return (
        f"Rows with all of these words, up to {MOST_WORDS}, in {' or '.join(resource.searched)}. "
        "`word*` is the beginning of a word; case and accents do not count."
    )


def reason(deprecated: Deprecation | None) -> str | None:
    """The reason of a deprecation, with its days; None if there is none."""
    return None if deprecated is None else deprecated.words


def describe_field(field: FieldDef) -> str:
    """The description of a field, with the transitions of a state, or what a counter counts."""
    moves = ", ".join(
        f"{move.source.value} → {move.target.value}" + (f" ({move.to.name})" if move.to else "") for move in field.moves
    )
    numbers = ""
    if field.counts is not None:
        numbers = (
            f"Set by the server: 1, 2, 3 … for each {field.counts}." if field.counts else "Set by the server: 1, 2, 3 …"
        )
    return " ".join(filter(None, (field.description, f"Transitions: {moves}." if moves else "", numbers)))


_GENERATED = {
    "": "",
    "now": "If omitted, it is the time of the write.",
    "today": "If omitted, it is the current date (UTC).",
    "viewer": "If omitted, it is taken from who sends the request.",
}


def describe_nest(nest: NestView) -> str:
    """The description of a relation among the values of a row."""
    if nest.relation.kind == "one":
        return f"A new row, instead of `{nest.key}`."
    return "Written with the row, after it: all or nothing."


def describe_input(taken: InputView, verb: Taking) -> str:
    """The description of a value that a write accepts."""
    field = taken.field
    if field.name == "id" and verb == "create":
        return "If omitted, the server makes one."
    if field.name == "version":
        return "The write happens only if the row still has this version."
    if taken.fixed:
        kind = "Read-only" if field.is_server_set or not field.stored else "You may not change it"
        return f"{kind}: send the current value, or omit it."
    return " ".join(filter(None, (describe_field(field), _if_omitted(taken, verb))))


def _if_omitted(taken: InputView, verb: Taking) -> str:
    if taken.field.of_viewer is not None:
        kept = "If omitted, it keeps its value." if verb == "replace" else ""
        return "" if taken.required else _GENERATED["viewer"] if verb == "create" else kept
    return _GENERATED[taken.field.generated] if verb != "update" else ""
