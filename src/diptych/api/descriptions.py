"""Descriptions that the GraphQL schema and the OpenAPI document share."""

from __future__ import annotations

from collections.abc import Mapping

from diptych.model.defs import SERVER_FIELDS, FieldDef
from diptych.model.naming import upper_first
from diptych.model.rules.expr import TRUE
from diptych.model.view import InputView, ResourceView, Taking

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
"""Scopes that do not narrow what the API allows, but tell about the user."""


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


def describe(field: FieldDef) -> str:
    """The description of a field, with the transitions of a state."""
    moves = ", ".join(
        f"{move.source.value} → {move.target.value}" + (f" ({move.to.name})" if move.to else "") for move in field.moves
    )
    return " ".join(filter(None, (field.description, f"Transitions: {moves}." if moves else "")))


_GENERATED = {
    "": "",
    "now": "If omitted, it is the time of the write.",
    "today": "If omitted, it is the current date (UTC).",
}


def describe_input(taken: InputView, verb: Taking) -> str:
    """The description of a value that a write accepts."""
    field = taken.field
    if field.name == "version":
        return "The write happens only if the row still has this version."
    if taken.fixed:
        kind = "Read-only" if field.name in SERVER_FIELDS or not field.stored else "You may not change it"
        return f"{kind}: send the current value, or omit it."
    return " ".join(filter(None, (describe(field), _GENERATED[field.generated] if verb != "update" else "")))
