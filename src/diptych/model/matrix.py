"""Model → who may do what: for each resource and role, what is allowed always, never, or on which rows.

    Post        read                                  create                  delete
    anonymous   published                             never                   never
    signed_in   published or author.id = viewer.id    author.id = viewer.id   author.id = viewer.id
    admin       always                                author.id = viewer.id   always

Below the row there are fields: one that goes with the row is read, created and updated wherever the row is; the
others say for each role how they differ. All of it is read off the View of a role, which is what requests are
answered by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from diptych.model.defs import SERVER_FIELDS, CallDef, ResourceDef
from diptych.model.expr import FALSE, TRUE, Expr, and_
from diptych.model.markers import Move
from diptych.model.model import Model
from diptych.model.resource import VERBS
from diptych.model.telling import in_words, tell
from diptych.model.view import ResourceView, View


@dataclass(frozen=True, slots=True)
class Cell:
    """What a role may do: always, never, or where a condition holds for the row."""

    kind: Literal["always", "never", "where"]
    text: str


ALWAYS = Cell("always", "always")
NEVER = Cell("never", "never")
Touch = Literal["read", "create", "update"]
TOUCHES: tuple[Touch, ...] = ("read", "create", "update")
"""What can be done with a field."""


@dataclass(frozen=True, slots=True)
class FieldRows:
    """Fields and relations that share their rules: a row of cells for each role."""

    names: tuple[str, ...]
    columns: tuple[Touch, ...]
    rows: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class ResourceMatrix:
    """A resource: a column for each verb, action and query, and a row of cells for each role."""

    resource: ResourceDef
    columns: tuple[str, ...]
    rows: Mapping[str, Sequence[Cell]]
    fields: tuple[FieldRows, ...]
    """The fields that some role reads or writes otherwise than the row."""
    plain: tuple[str, ...]
    """The fields and relations that go with the row."""
    moves: Mapping[str, Sequence[str]]
    """Of each field with states: the moves that it can make, and who may make them."""


def matrix(model: Model, roles: Sequence[str]) -> list[ResourceMatrix]:
    """The matrix of every resource, for these roles."""
    views = {role: model.view_as(role) for role in roles}
    return [_of(resource, views) for resource in model.resources.values()]


def _of(found: ResourceDef, views: Mapping[str, View]) -> ResourceMatrix:
    rows = {role: [_cell(expr, view, found) for expr in _row(view, found)] for role, view in views.items()}
    fields = {name: _touched(found, name, views) for name in (*found.fields, *found.relations)}
    moves = {each.attr: [*map(_move, each.moves)] for each in found.fields.values() if each.moves}
    return ResourceMatrix(
        found, (*VERBS, *(call.attr for call in found.calls)), rows, tuple(_grouped(found, views, fields)),
        tuple(_word(found, name) for name, touched in fields.items() if touched is None), moves,
    )  # fmt: skip


def _cell(expr: Expr, view: View, found: ResourceDef) -> Cell:
    if expr in (TRUE, FALSE):
        return ALWAYS if expr == TRUE else NEVER
    return Cell("where", tell(in_words(expr, view.model, found.name)))


def _move(move: Move) -> str:
    who = f" ({move.to.name})" if move.to else ""
    return f"{move.source.value} → {move.target.value}{who}"


# the row


def _row(view: View, found: ResourceDef) -> list[Expr]:
    mine = view.resources.get(found.name)
    verbs = [mine.read, mine.create, mine.update, mine.delete] if mine else [FALSE] * len(VERBS)
    return verbs + [_call(view, found, call) for call in found.calls]


def _call(view: View, found: ResourceDef, call: CallDef) -> Expr:
    may = any(mine is call for _, mine in view.calls.values())
    return view.call_rule(found, call) if may else FALSE


# its fields

Rows = tuple[tuple[Cell, ...], ...]


def _grouped(found: ResourceDef, views: Mapping[str, View], fields: Mapping[str, Rows | None]) -> Iterator[FieldRows]:
    groups: dict[Rows, list[str]] = {}
    for name, rows in fields.items():
        if rows is not None:
            groups.setdefault(rows, []).append(_word(found, name))
    for rows, names in groups.items():
        yield FieldRows(tuple(names), TOUCHES[: len(rows[0])], dict(zip(views, rows, strict=True)))


def _word(found: ResourceDef, name: str) -> str:
    """What a rule calls a field or relation."""
    if name in found.relations:
        return found.relations[name].attr
    field = found.fields[name]
    return f"{found.relations[field.relation].attr}.id" if field.relation else field.attr


def _touched(found: ResourceDef, name: str, views: Mapping[str, View]) -> Rows | None:
    """For each role what it may do with a field; None if all of them do with it what they do with the row."""
    touches = TOUCHES if _is_written(found, name) else TOUCHES[:1]
    seen = [(view, view.resources.get(found.name)) for view in views.values()]
    if all(mine is None or all(_field(mine, name, touch) == TRUE for touch in touches) for _, mine in seen):
        return None
    return tuple(
        tuple(_cell(_field(mine, name, touch) if mine and mine.may(touch) else FALSE, view, found) for touch in touches)
        for view, mine in seen
    )


def _is_written(found: ResourceDef, name: str) -> bool:
    field = found.fields.get(name)
    return field is not None and field.stored and name not in SERVER_FIELDS


def _field(mine: ResourceView, name: str, touch: Touch) -> Expr:
    """Where a field may be touched; TRUE is wherever the row may be."""
    if touch == "read":
        seen = mine.fields.get(name) or mine.relations.get(name)
        return seen.rule if seen else FALSE
    row = mine.create if touch == "create" else mine.update
    writes = mine.writes.get(name)
    field = FALSE if writes is None else writes.create if touch == "create" else writes.update
    return TRUE if and_(row, field) == row else field
