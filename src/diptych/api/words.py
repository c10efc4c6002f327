"""What the documents of both styles, the GraphQL schema and OpenAPI, say in the same words."""

from __future__ import annotations

from collections.abc import Mapping

from diptych.model.defs import SERVER_FIELDS, FieldDef
from diptych.model.view import InputView, Taking

INPUTS: Mapping[Taking, tuple[str, str]] = {
    "create": ("Create", "A new {}."),
    "update": ("Patch", "What changes of a {}; all else stays."),
    "replace": ("Replace", "All of a {}. What is left out becomes its default or null."),
}
"""What the type of the values is called, after the resource, and what it means."""


def told_scope(scope: str) -> str:
    """What whoever has a scope may do: `see posts`, `change everything that you may change`."""
    what, _, kind = scope.rpartition(":")
    verb = {"read": "see", "write": "change"}.get(kind, kind)
    return f"{verb} {what or f'everything that you may {verb}'}"


def describe(field: FieldDef) -> str:
    """The description of a field, with the transitions of a state."""
    moves = ", ".join(
        f"{move.source.value} → {move.target.value}" + (f" ({move.to.name})" if move.to else "") for move in field.moves
    )
    return " ".join(filter(None, (field.description, f"Transitions: {moves}." if moves else "")))


_GENERATED = {"": "", "now": "Left out, it is the moment of the change.", "today": "Left out, it is the day (UTC)."}


def describe_input(taken: InputView, verb: Taking) -> str:
    """The description of a value that a change takes."""
    field = taken.field
    if field.name == "version":
        return "Only if it still has this version."
    if taken.fixed:
        kind = "Read-only" if field.name in SERVER_FIELDS or not field.stored else "Not yours to change"
        return f"{kind}: as it was, or left out."
    return " ".join(filter(None, (describe(field), _GENERATED[field.generated] if verb != "update" else "")))
