"""The access matrix of a model: for each resource and role, what is allowed always, never, or on which rows.

    Post        read                                  create                  delete
    anonymous   published                             never                   never
    signed_in   published or author.id = viewer.id    author.id = viewer.id   author.id = viewer.id
    admin       always                                author.id = viewer.id   always

Then the fields: a plain field is read, created and updated wherever the row is; for the others, the matrix has the
differences for each role. All of it comes from the View of a role, which also answers requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from diptych.model.call_defs import CallDef
from diptych.model.declare.markers import Move
from diptych.model.declare.resource import VERBS
from diptych.model.defs import ResourceDef
from diptych.model.describe.rule_text import in_words, render
from diptych.model.model import Model
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import FALSE, TRUE, Expr, and_
from diptych.model.view import View


class Permission(Struct, frozen=True):
    """A permission of a role: always, never, or where a condition holds for the row."""

    kind: Literal["always", "never", "where"]
    text: str


ALWAYS = Permission("always", "always")
NEVER = Permission("never", "never")
Touch = Literal["read", "create", "update"]
TOUCHES: tuple[Touch, ...] = ("read", "create", "update")
"""The operations on a field."""


class FieldRows(Struct, frozen=True):
    """Fields and relations with the same rules: a row of cells for each role."""

    names: tuple[str, ...]
    columns: tuple[Touch, ...]
    rows: Mapping[str, Sequence[Permission]]


class ResourceMatrix(Struct, frozen=True):
    """The matrix of a resource: a column for each verb, action and query, and a row of cells for each role."""

    resource: ResourceDef
    columns: tuple[str, ...]
    rows: Mapping[str, Sequence[Permission]]
    fields: tuple[FieldRows, ...]
    """The fields with rules of their own for some role."""
    plain: tuple[str, ...]
    """The fields and relations with the rules of the row."""
    moves: Mapping[str, Sequence[str]]
    """For each field with states: its transitions, and the roles that may make them."""


def matrix(model: Model, roles: Sequence[str]) -> list[ResourceMatrix]:
    """The matrix of every resource, for these roles."""
    return list(matrices(model, roles))


def matrices(model: Model, roles: Sequence[str]) -> Iterator[ResourceMatrix]:
    """The access matrix of each resource, one after the other."""
    views = {role: model.view_as(role) for role in roles}
    yield from (_of(resource, views) for resource in model.resources.values())


def _of(resource: ResourceDef, views: Mapping[str, View]) -> ResourceMatrix:
    rows = {role: [_cell(expr, view, resource) for expr in _row(view, resource)] for role, view in views.items()}
    fields = {name: _touched(resource, name, views) for name in (*resource.fields, *resource.ways)}
    moves = {field.attr: [*map(_move, field.moves)] for field in resource.fields.values() if field.moves}
    return ResourceMatrix(
        resource,
        (*VERBS, *_export(resource), *(call.attr for call in resource.calls)),
        rows,
        tuple(_grouped(resource, views, fields)),
        tuple(_word(resource, name) for name, touched in fields.items() if touched is None),
        moves,
    )


def _cell(expr: Expr, view: View, resource: ResourceDef) -> Permission:
    if expr in (TRUE, FALSE):
        return ALWAYS if expr == TRUE else NEVER
    return Permission("where", render(in_words(expr, view.model, resource.name)))


def _move(move: Move) -> str:
    role = f" ({move.to.name})" if move.to else ""
    return f"{move.source.value} → {move.target.value}{role}"


# the row


def _export(resource: ResourceDef) -> tuple[str, ...]:
    """The column of whole lists, where any role may read them."""
    return ("export",) if resource.offers("export") else ()


def _row(view: View, resource: ResourceDef) -> list[Expr]:
    mine = view.resources.get(resource.name)
    verbs: list[Expr] = [mine.read, mine.create, mine.update, mine.delete] if mine else [FALSE] * len(VERBS)
    verbs += [TRUE if mine and mine.exports else FALSE for _ in _export(resource)]
    return verbs + [_call(view, resource, call) for call in resource.calls]


def _call(view: View, resource: ResourceDef, call: CallDef) -> Expr:
    may = any(mine is call for _, mine in view.calls.values())
    return view.call_rule(resource, call) if may else FALSE


# its fields

CellRows = tuple[tuple[Permission, ...], ...]


def _grouped(
    resource: ResourceDef, views: Mapping[str, View], fields: Mapping[str, CellRows | None]
) -> Iterator[FieldRows]:
    groups: dict[CellRows, list[str]] = {}
    for name, rows in fields.items():
        if rows is not None:
            groups.setdefault(rows, []).append(_word(resource, name))
    for rows, names in groups.items():
        yield FieldRows(tuple(names), TOUCHES[: len(rows[0])], dict(zip(views, rows, strict=True)))


def _word(resource: ResourceDef, name: str) -> str:
    """The name of a field or relation in rules."""
    if name in resource.relations:
        return resource.relations[name].attr
    field = resource.fields[name]
    return f"{resource.relations[field.relation].attr}.id" if field.relation else field.attr


def _touched(resource: ResourceDef, name: str, views: Mapping[str, View]) -> CellRows | None:
    """The cells of a field for each role; None if it has the rules of the row for all of them."""
    touches = TOUCHES if _is_written(resource, name) else TOUCHES[:1]
    seen = [(view, view.resources.get(resource.name)) for view in views.values()]
    if all(mine is None or all(_field(mine, name, touch) == TRUE for touch in touches) for _, mine in seen):
        return None
    return tuple(
        tuple(
            _cell(_field(mine, name, touch) if mine and mine.may(touch) else FALSE, view, resource) for touch in touches
        )
        for view, mine in seen
    )


def _is_written(resource: ResourceDef, name: str) -> bool:
    field = resource.fields.get(name)
    return field is not None and field.stored and not field.is_server_set


def _field(mine: ResourceView, name: str, touch: Touch) -> Expr:
    """Where an operation on a field is allowed; TRUE is wherever it is allowed on the row."""
    if touch == "read":
        seen = mine.fields.get(name) or mine.relations.get(name)
        return seen.rule if seen else FALSE
    row = mine.create if touch == "create" else mine.update
    writes = mine.writes.get(name)
    field = FALSE if writes is None else writes.create if touch == "create" else writes.update
    return TRUE if and_(row, field) == row else field
