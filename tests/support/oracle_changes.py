"""A slow, obvious evaluator of changes as one viewer is told of them: what the contract says, change by change.

    told(model, viewer, watch, changes, rows, values)
    [(0, {"eventId": "<id>", "cursor": "<cursor>", "kind": "CREATED", "rowId": "0189…", "at": "<at>", "post": {"title": "…"}}), …]

A change is a row before and after; `rows` are all rows as they are now. Whether a row can be seen is judged by the row
before and after, and by related rows as they are now; of what a rule would say of rows that are gone by now, nothing is
known, and what is not known is not allowed. The row itself is told if it can be read now; its fields where
they show on the row as it became, and on the row as it is now. Nothing of `check`, of `compile` or of the folding of
views is used here.

`stored_changes` reads what the triggers have written, as canonical values, and `fold` applies it to rows: so a test
can hold the feed itself against the rows that there are.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from diptych.ask.nodes import ChangePart, Field, Follow, Pick, Watch
from diptych.db.store import Store
from diptych.model.declare.roles import Viewer
from diptych.model.defs import RelationDef, ResourceDef, RuleDef
from diptych.model.model import Model
from diptych.model.rules.expr import TRUE, And, Col, Expr, Has, May, Not, Or, leaves
from diptych.model.scalars import BOOLEAN, DATETIME, FLOAT, JSON, Scalar
from tests.contract.feed.unfold import unfold
from tests.support.oracle import Data, Oracle, Row, Show, Sight
from tests.support.oracle_writes import every, forecast_of, some

CURSOR, AT, EVENT = "<cursor>", "<at>", "<id>"
Rows = dict[str, list[dict[str, Any]]]


class Change(NamedTuple):
    """A committed change: the row before and after, as canonical values."""

    resource: str
    id: Any
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


@dataclass(frozen=True, eq=False)
class Told(Row):
    """A row as it became by a change, and as it is now."""

    now: Row


class Ghost(Row):
    """A row that is gone: all that is known of it is its id, which stands where others refer to it."""


class History(Sight):
    """What one viewer sees of rows as they were, amid all others as they are now."""

    def readable(self, row: Row) -> bool:
        if self.find(row.resource.name, row.id) is row:
            return super().readable(row)
        self._readable.pop((row.resource.name, row.id), None)  # what is kept is of the row as it is now
        try:
            return super().readable(row)
        finally:
            self._readable.pop((row.resource.name, row.id), None)

    def shows(self, name: str, row: Row) -> bool:
        if isinstance(row, Told) and not super().shows(name, row.now):
            return False
        return super().shows(name, row)

    def _allows(self, rule: RuleDef, row: Row) -> bool:
        """A rule allows what it surely allows: where it looks at a row that is gone by now, it says nothing."""
        if self.find(row.resource.name, row.id) is row:
            return super()._allows(rule, row)
        return (rule.role is None or rule.role in self.viewer.roles) and self.surely(rule.expr, row) is True

    def _sees(self, path: Sequence[str], row: Row) -> bool:
        name, *rest = path
        if rest and self._is_gone([name], row):
            forecast = forecast_of(self.model, self.viewer)
            target = self.model.resources[row.resource.relations[name].target]
            there = (forecast.may("read", target), forecast._along(rest, target))
            return self.shows(name, row) and there == (True, True)
        return super()._sees(path, row)

    # True, False, or None where that is not known any more

    def surely(self, expr: Expr, row: Row) -> bool | None:
        found = forecast_of(self.model, self.viewer).says(expr, row.resource)
        if found is not None:  # whatever the row is
            return found
        match expr:
            case And(of):
                return every(self.surely(part, row) for part in of)
            case Or(of):
                return some(self.surely(part, row) for part in of)
            case Not(of):
                found = self.surely(of, row)
                return None if found is None else not found
            case Has(name) if not isinstance(row, Ghost):
                relation = row.resource.relations[name]
                gone = self._is_gone([name], row) if relation.kind == "one" else self._is_past(row)
                return None if gone else self.holds(expr, row)
            case May((name,)) if not isinstance(row, Ghost) and self._is_gone([name], row):
                return self._may_have_read(row.resource.relations[name], row)
        return None if any(self._is_unknown(part, row) for part in leaves(expr)) else self.holds(expr, row)

    def _may_have_read(self, relation: RelationDef, row: Row) -> bool | None:
        target = self.model.resources[relation.target]
        ghost = Ghost(target, {"id": row.data[relation.name + "Id"]})
        return some(self.surely(rule.expr, ghost) for rule in forecast_of(self.model, self.viewer).live("read", target))

    def _is_unknown(self, part: Expr, row: Row) -> bool:
        """Does a value come from a row that is gone?"""
        if isinstance(row, Ghost):
            return isinstance(part, May | Has) or (isinstance(part, Col) and part.path != ("id",))
        if isinstance(part, May):
            return self._is_gone(part.path, row)
        if isinstance(part, Has):
            return self.surely(part, row) is None
        if not isinstance(part, Col):
            return False
        computed = row.resource.fields[part.path[0]].computed if len(part.path) == 1 else None
        inside = leaves(computed) if computed is not None else ()
        return self._is_gone(part.path[:-1], row) or any(self._is_unknown(each, row) for each in inside)

    def _is_gone(self, path: Sequence[str], row: Row) -> bool:
        """Does the path lead to a row that is no longer there?"""
        if not path:
            return False
        relation = row.resource.relations[path[0]]
        key = row.data[relation.name + "Id"]
        return key is not None and self.find(relation.target, key) is None

    def _is_past(self, row: Row) -> bool:
        return self.find(row.resource.name, row.id) is None


def told(
    model: Model,
    viewer: Viewer,
    watch: Watch,
    changes: Sequence[Change],
    rows: Data,
    values: Sequence[Any],
    cursor: Show | None = None,
) -> list[tuple[int, dict[str, Any]]]:
    """What a viewer is told: of which change by number, and what."""
    teller = _Teller(model, viewer, rows, watch, values, cursor)
    found = ((number, teller.event(change)) for number, change in enumerate(changes))
    return [(number, event) for number, event in found if event is not None]


class _Teller:
    def __init__(
        self, model: Model, viewer: Viewer, rows: Data, watch: Watch, values: Sequence[Any], cursor: Show | None
    ) -> None:
        self.oracle = Oracle(model, viewer, rows, cursor)
        self.oracle.sight = self.sight = History(model, viewer, rows)
        self.oracle.values = self.values = values
        self.watch = watch
        self.resource = model.resources[watch.resource]

    def event(self, change: Change) -> dict[str, Any] | None:
        kind = self._kind(change) if change.resource == self.resource.name else None
        wanted = None if self.watch.kinds is None else self.values[self.watch.kinds.index]
        if kind is None or (wanted is not None and kind not in wanted):
            return None
        return {part.label: self._part(part, kind, change) for part in self.watch.parts}

    def _kind(self, change: Change) -> str | None:
        was, becomes = (self._sees(row) for row in (change.old, change.new))
        if not was and not becomes:
            return None
        if change.new is None:
            return "DELETED"
        if not becomes:
            return "LEFT"
        return "CREATED" if change.old is None else "UPDATED"

    def _sees(self, data: Mapping[str, Any] | None) -> bool:
        if data is None:
            return False
        row = Row(self.resource, data)
        return self.sight.readable(row) and (self.watch.where == TRUE or self.oracle._holds(self.watch.where, row))

    def _part(self, part: ChangePart, kind: str, change: Change) -> Any:
        match part.what:
            case "row":
                return None if kind in ("DELETED", "LEFT") else self._row(part, change)
            case "kind":
                return kind
            case "rowId":
                return str(change.id)
            case "__typename":
                return self.resource.name + "Change"
        return {"cursor": CURSOR, "at": AT, "eventId": EVENT}[part.what]

    def _row(self, part: ChangePart, change: Change) -> Any:
        now = self.sight.find(self.resource.name, change.id)
        if now is None or not self.sight.readable(now):
            return None
        assert change.new is not None
        row = Told(self.resource, change.new, now)
        if any(self._is_gone(pick, row) for pick in part.pick):
            return None
        return self.oracle.picked(part.pick, row, self.values)

    def _is_gone(self, pick: Pick, row: Row) -> bool:
        """Is it something that is never null, and comes from a row that is gone? (No row can be told then, as GraphQL
        has it.)"""
        if isinstance(pick, Field):
            field = self.resource.fields[pick.name]
            made = None if field.nullable or field.hideable else field.computed
            return made is not None and self.sight.value(made, row) is None
        if not isinstance(pick, Follow):
            return False
        relation = self.resource.relations[pick.relation]
        if relation.kind != "one" or relation.nullable or relation.hideable:
            return False
        return self.sight.find(relation.target, row.data[relation.name + "Id"]) is None


def fold(rows: Data, changes: Iterable[Change]) -> Rows:
    """The rows after some changes. Each change must fit what was there."""
    found = {name: {row["id"]: dict(row) for row in table} for name, table in rows.items()}
    for change in changes:
        table = found[change.resource]
        before = table.pop(change.id, None)
        if before != change.old:
            differs = {
                name
                for name in {**(before or {}), **(change.old or {})}
                if (before or {}).get(name) != (change.old or {}).get(name)
            }
            raise AssertionError(f"{sorted(differs)}: {before} is not what {change} has changed")
        if change.new is not None:
            assert change.new["id"] == change.id
            assert change.old is None or change.new["version"] > change.old["version"], change
            table[change.id] = dict(change.new)
    return {name: list(table.values()) for name, table in found.items()}


# what is stored


async def stored_changes(store: Store, model: Model, after: int = 0) -> tuple[list[Change], int]:
    """All changes after a position that have one, and the newest position."""
    head = await store.head()
    sql = (
        "SELECT resource, row_id, CAST(old AS text), CAST(new AS text) FROM diptych_feed "
        f"WHERE position > {int(after)} AND position <= {head.position} ORDER BY position"
    )
    tables = {each.table: each for each in model.resources.values()}
    is_sqlite = store.dialect.name == "sqlite"
    session = await store.session(reading=True)
    try:
        found = await session.rows(sql, ())
        now = {name: await _now(session, each, is_sqlite) for name, each in tables.items()}
    finally:
        await session.end()
    texts = {
        name: [f.column for f in each.fields.values() if f.scalar.sqlite == "TEXT"] for name, each in tables.items()
    }
    stored = [(table, row_id, _row(old), _row(new)) for table, row_id, old, new in found]
    read = _sqlite if is_sqlite else _postgres
    changes = []
    for table, row_id, *pair in unfold(stored, lambda table, row: now[table].get(row), texts if is_sqlite else None):
        resource = tables[table]
        rows = [None if row is None else _decoded(row, resource, read) for row in pair]
        changes.append(Change(resource.name, resource.key.parse(row_id), *rows))
    return changes, head.position


def _row(text: str | None) -> Any:
    return None if text is None else json.loads(text, parse_float=Decimal)


async def _now(session: Any, resource: ResourceDef, is_sqlite: bool) -> dict[str, dict[str, Any]]:
    """The rows of a table as they are, in the form that the feed has rows in."""
    names = [field.column for field in resource.fields.values() if field.stored]
    shown = ", ".join(f'"{name}"' for name in names) if is_sqlite else "row_to_json(t)::text"
    rows = await session.rows(f'SELECT {shown} FROM "{resource.table}" t', ())
    found = [dict(zip(names, row, strict=True)) if is_sqlite else _row(row[0]) for row in rows]
    return {str(row["id"]): row for row in found}


def _decoded(found: dict[str, Any], resource: ResourceDef, read: Any) -> dict[str, Any]:
    """A stored row by the names on the wire."""
    fields = [each for each in resource.fields.values() if each.stored]
    assert found.keys() == {each.column for each in fields}
    return {each.name: None if found[each.column] is None else read(each.scalar, found[each.column]) for each in fields}


def _sqlite(scalar: Scalar, value: Any) -> Any:
    """A value as SQLite stores it: 0 and 1, scaled integers, and JSON as text."""
    if scalar is BOOLEAN:
        return bool(value)
    if scalar is FLOAT:
        return float(value)
    if scalar is JSON:
        return json.loads(value)
    if scalar.python is Decimal:
        digits = int(scalar.name[:-1].split(",")[1])
        return Decimal(value).scaleb(-digits)
    return value


def _postgres(scalar: Scalar, value: Any) -> Any:
    """A value as PostgreSQL writes it into JSON."""
    if scalar is FLOAT:
        return float(value)
    if scalar is JSON:
        return _plain(value)
    if scalar is DATETIME:
        moment = dt.datetime.fromisoformat(value).astimezone(dt.UTC).replace(tzinfo=None)
        return moment.isoformat(timespec="microseconds") + "Z"
    if scalar.python is Decimal:
        return scalar.parse(format(Decimal(value), "f"))
    return value


def _plain(value: Any) -> Any:
    """JSON with floats in it."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value
