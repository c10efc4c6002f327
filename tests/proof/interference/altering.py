"""Two sets of rows that look the same to one viewer, and differ in all else.

    altered(model, viewer, rows, random)        the same rows, changed wherever this viewer cannot see it

What is changed: hidden rows, hidden fields and relations of visible rows, and which hidden rows there are at all.
What a viewer sees is told by the oracle's Sight, which reads the rules as the model declares them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from diptych.model.declare.roles import Viewer
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.scalars import ID, INTEGER_ID
from tests.support.edge_cases import pool
from tests.support.oracle import Data, Row, Sight

Rows = dict[str, list[dict[str, Any]]]
Unseen = Callable[[], bool]
"""Does the viewer still see what was seen before?"""

HELD_EQUAL = ("id", "version", "updatedAt")
"""Of a visible row nobody may see less than these: `version` and `updatedAt` count every write (contract, B2)."""
MOST_TWINS = 3


@dataclass(frozen=True)
class Altered:
    """Rows that look like others to one viewer."""

    rows: Rows
    cells: int
    """How many values differ."""
    twins: int
    """How many rows are in this set only."""


@dataclass(frozen=True)
class Cell:
    """A value that is to become another."""

    row: dict[str, Any]
    name: str
    value: Any


def seen(model: Model, viewer: Viewer, rows: Data) -> Iterator[tuple[str, Any]]:
    """All that a viewer may see, row by row: the readable rows, with the fields that show. (What Python computes is
    made of these.)"""
    sight = Sight(model, viewer, rows)
    for name, resource in model.resources.items():
        for row in sight.rows[name]:
            if sight.readable(row):
                yield (
                    name,
                    {
                        field.name: _value(sight, field, row)
                        for field in resource.fields.values()
                        if field.python is None and sight.shows(field.name, row)
                    },
                )


def _value(sight: Sight, field: FieldDef, row: Row) -> Any:
    return row.data[field.name] if field.computed is None else sight.value(field.computed, row)


def alike(model: Model, viewer: Viewer, one: Data, other: Data) -> bool:
    """Do both look the same to the viewer?"""
    return _same(seen(model, viewer, one), seen(model, viewer, other))


def altered(
    model: Model, viewer: Viewer, rows: Data, random: Random, held: Callable[[FieldDef], bool] = lambda field: False
) -> Altered:
    """The same rows with as much changed as the viewer does not notice; nothing in the fields that are `held`."""
    other: Rows = {name: [dict(row) for row in each] for name, each in rows.items()}
    before = list(seen(model, viewer, other))

    def unseen() -> bool:
        return _same(iter(before), seen(model, viewer, other))

    cells = list(_cells(model, viewer, other, random, held))
    random.shuffle(cells)
    cells.sort(key=lambda cell: cell.name)  # those by which rules decide stand together, and are found together
    changed = _slip(cells, unseen)
    sight = Sight(model, viewer, other)
    hidden = {
        name: [row for row in other[name] if not sight.readable(Row(resource, row))]
        for name, resource in model.resources.items()
    }
    twins = sum(_add(other, resource, hidden[name], random, unseen) for name, resource in model.resources.items())
    return Altered(other, changed, twins)


def _same(one: Iterator[Any], other: Iterator[Any]) -> bool:
    """Are both the same to the end? They are read no further than they are."""
    end = object()
    while (left := next(one, end)) == next(other, end):
        if left is end:
            return True
    return False


def _cells(
    model: Model, viewer: Viewer, rows: Rows, random: Random, held: Callable[[FieldDef], bool]
) -> Iterator[Cell]:
    """What can become another without being seen itself; whether it is seen elsewhere is not known yet."""
    sight = Sight(model, viewer, rows)
    for resource in model.resources.values():
        for row in rows[resource.name]:
            found = Row(resource, row)
            readable = sight.readable(found)
            for field in resource.fields.values():
                if not field.stored or field.name in HELD_EQUAL or held(field):
                    continue
                if readable and sight.shows(field.name, found):
                    continue
                choices = _ids(resource, field, row, rows) if field.relation else _values(field, random)
                others = [value for value in choices if value != row.get(field.name)]
                if others:
                    yield Cell(row, field.name, random.choice(others))


def _slip(cells: Sequence[Cell], unseen: Unseen) -> int:
    """Change all cells if nobody notices, or else as many of them as nobody does; gives how many."""
    old = [cell.row.get(cell.name) for cell in cells]
    for cell in cells:
        cell.row[cell.name] = cell.value
    if unseen():
        return len(cells)
    for cell, value in zip(cells, old, strict=True):
        cell.row[cell.name] = value
    if len(cells) == 1:
        return 0
    half = len(cells) // 2
    return _slip(cells[:half], unseen) + _slip(cells[half:], unseen)


def _values(field: FieldDef, random: Random) -> Sequence[Any]:
    if field.scalar in (ID, INTEGER_ID):
        return ()
    return [f"{random.getrandbits(60)}@other"] if field.unique else pool(field.scalar)


def _ids(resource: ResourceDef, field: FieldDef, row: Mapping[str, Any], rows: Rows) -> Sequence[Any]:
    """The ids to which a relation can lead; to itself, only those of rows that are there before."""
    there = rows[resource.relations[field.relation].target]
    upto = next((number for number, other in enumerate(there) if other is row), len(there))
    return [other["id"] for other in there[:upto]] + ([None] if field.nullable else [])


def _add(rows: Rows, resource: ResourceDef, hidden: Sequence[dict[str, Any]], random: Random, unseen: Unseen) -> int:
    """Add twins of hidden rows, as far as nobody notices; gives how many."""
    there = rows[resource.name]
    added = 0
    for row in random.sample(hidden, len(hidden)):
        there.append(_twin(row, resource, random))
        if unseen():
            added += 1
        else:
            there.pop()
        if added == MOST_TWINS:
            break
    return added


def _twin(row: Mapping[str, Any], resource: ResourceDef, random: Random) -> dict[str, Any]:
    twin = copy.deepcopy(dict(row))
    twin["id"] = random.randrange(10**6, 10**7) if isinstance(row["id"], int) else _next_id(row["id"], random)
    for field in resource.fields.values():
        if field.unique and twin[field.name] is not None:
            twin[field.name] = f"{random.getrandbits(60)}@twin"
    return twin


def _next_id(id: str, random: Random) -> str:
    return f"{id[:24]}{random.getrandbits(48):012x}"
