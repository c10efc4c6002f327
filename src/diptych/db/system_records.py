"""Records of the service itself (accounts, clients, grants …): plain Structs, each kind in a table of its own.

    accounts = Records("diptych_accounts", Account)
    account = await store.write(lambda: accounts.find(store.dialect, email="ann@example.com"))
    won = await store.write(lambda: codes.change(store.dialect, {"hash": hash, "used_at": None}, used_at=now))

Names of columns come from the Struct alone, values are bound. A change whose condition names the old values is a
compare-and-swap: of many at once, one gets the record and all others None. Several of these make one
transaction when one script yields from them. A tuple is stored as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from diptych.compile.dialect import Dialect
from diptych.compile.plan import Plan
from diptych.db.script import ResultRow, Script, Step, Violation

if TYPE_CHECKING:
    from diptych.db.store import Store

R = TypeVar("R", bound=Struct)
_LISTED = {
    "sqlite": "SELECT CAST(json_group_array(json_array({0})) AS BLOB) FROM ({1})",
    "postgres": "SELECT convert_to(coalesce(json_agg(json_build_array({0}))::text, '[]'), 'UTF8') FROM ({1}) AS t",
}
SWEPT = 500
"""Records that one sweep removes at most: more than are added until the next sweep."""


class Records(Generic[R]):
    """The table of one kind of record."""

    def __init__(self, table: str, kind: type[R]) -> None:
        self.table = table
        self.kind = kind
        self.columns = kind.__struct_fields__
        self._names = ", ".join(self.columns)
        self._tuples = tuple(kind.__annotations__[name].startswith("tuple") for name in self.columns)

    def add(self, dialect: Dialect, record: R) -> Script[bool]:
        """Insert a record; False if its key, or another unique value, is taken."""
        placeholders = ", ".join(f"{dialect.placeholder}{number}" for number in range(1, len(self.columns) + 1))
        values = [_stored(value) for value in astuple(record)]
        try:
            row = yield Step(
                f"INSERT INTO {self.table} ({self._names}) VALUES ({placeholders}) ON CONFLICT DO NOTHING RETURNING 1",
                values,
            )
        except Violation:
            return False
        return row is not None

    def find(self, dialect: Dialect, **where: Any) -> Script[R | None]:
        """The record with these values."""
        condition, values = self._where(dialect, where, 0)
        return self._record((yield Step(f"SELECT {self._names} FROM {self.table}{condition} LIMIT 1", values)))

    def change(self, dialect: Dialect, where: Mapping[str, Any], **values: Any) -> Script[R | None]:
        """Update the record with these values, and return it; None if there is none."""
        self._check(values)
        sets = ", ".join(f"{name} = {dialect.placeholder}{number}" for number, name in enumerate(values, 1))
        condition, bound = self._where(dialect, where, len(values))
        statement = f"UPDATE {self.table} SET {sets}{condition} RETURNING {self._names}"
        return self._record((yield Step(statement, [*map(_stored, values.values()), *bound])))

    def remove(self, dialect: Dialect, **where: Any) -> Script[R | None]:
        """Delete one record with these values, and return it; None if there is none."""
        condition, values = self._where(dialect, where, 0)
        return self._record((yield Step(f"DELETE FROM {self.table}{condition} RETURNING {self._names}", values)))

    def sweep(self, dialect: Dialect, column: str, before: int) -> Script[None]:
        """Delete a batch of expired records. It is bounded, since a request waits for it."""
        self._check({column: before})
        key = self.columns[0]
        some = f"SELECT {key} FROM {self.table} WHERE {column} < {dialect.placeholder}1 LIMIT {SWEPT}"
        yield Step(f"DELETE FROM {self.table} WHERE {key} IN ({some})", (before,))

    async def all(self, store: Store, order: str, **where: Any) -> list[R]:
        """Every record with these values, sorted."""
        self._check({order: None})
        condition, values = self._where(store.dialect, where, 0)
        return await self._list(store, f"{condition} ORDER BY {order}", values)

    async def since(self, store: Store, column: str, least: int) -> list[R]:
        """Every record whose `column` is at least this, sorted by it."""
        self._check({column: None})
        return await self._list(store, f" WHERE {column} >= {store.dialect.placeholder}1 ORDER BY {column}", [least])

    async def values(self, store: Store, column: str, most: int, later: str, than: int, /, **where: Any) -> list[str]:
        """The values of a column of texts, each once and at most so many, of the records with these values whose
        `later` is after a moment."""
        self._check({column: None, later: None})
        condition, values = self._where(store.dialect, where, 0)
        after = f"{' AND' if where else ' WHERE'} {later} > {store.dialect.placeholder}{len(values) + 1}"
        some = f"SELECT DISTINCT {column} FROM {self.table}{condition}{after} LIMIT {most}"
        (answer,) = await store.run(Plan(_LISTED[store.dialect.name].format(column, some)), [*values, than])
        return [value for (value,) in json.loads(answer or b"[]")]

    async def _list(self, store: Store, condition: str, values: list[Any]) -> list[R]:
        """Read many records as one JSON text, like the answer to a request."""
        text = _LISTED[store.dialect.name].format(self._names, f"SELECT * FROM {self.table}{condition}")
        (answer,) = await store.run(Plan(text), values)
        return [record for row in json.loads(answer or b"[]") if (record := self._record(row)) is not None]

    def _where(self, dialect: Dialect, where: Mapping[str, Any], taken: int) -> tuple[str, list[Any]]:
        self._check(where)
        parts, values = [], []
        for name, value in where.items():
            if value is None:
                parts.append(f"{name} IS NULL")
            else:
                values.append(_stored(value))
                parts.append(f"{name} = {dialect.placeholder}{taken + len(values)}")
        return (" WHERE " + " AND ".join(parts) if parts else ""), values

    def _check(self, names: Mapping[str, Any]) -> None:
        for name in names:
            if name not in self.columns:
                raise ValueError(f"{self.kind.__name__} has no '{name}'")

    def _record(self, row: ResultRow | Sequence[Any]) -> R | None:
        if row is None:
            return None
        return self.kind(
            *(
                tuple(json.loads(value)) if many and value is not None else value
                for value, many in zip(row, self._tuples, strict=True)
            )
        )


def _stored(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, tuple | list) else value
