"""The table of services that run: a row for each process, with the tables and columns of its model.

    id         host   tables                          started_at  seen_at
    8f2a09b1…  web-1  {"posts": ["id", "title", …]}   …           …

A process writes its row at intervals and deletes it when it stops, so one that was killed is forgotten after a minute;
on the same machine at once, by the mark of the process at the end of its id (`process_mark.py`).
Moments are seconds by the clock of the database. `diptych migrate` looks here for services that still need what it
would take away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from diptych.compile.dialect import Dialect
from diptych.compile.meaning import meanings
from diptych.compile.system.object import DialectName
from diptych.db.process_mark import is_running
from diptych.db.script import Script, Step
from diptych.model.model import Model

RECENT = 60
"""Seconds after which a process that wrote nothing counts as gone."""
_NOW: Mapping[DialectName, str] = {
    "sqlite": "CAST(strftime('%s', 'now') AS INTEGER)",
    "postgres": "floor(extract(epoch FROM clock_timestamp()))::bigint",
}
_WRITABLE: Mapping[DialectName, str] = {
    "sqlite": "SELECT 1",
    "postgres": "SELECT 1 WHERE NOT current_setting('transaction_read_only')::boolean",
}
_SEEN = """
    INSERT INTO diptych_nodes (id, host, tables, started_at, seen_at) VALUES ({0}1, {0}2, {0}3, {1}, {1})
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
"""
_FORGET_OLD = "DELETE FROM diptych_nodes WHERE seen_at < {1} - 86400"


class Node(Struct, frozen=True):
    """A process that serves, and the seconds since it was seen."""

    id: str
    host: str
    tables: dict[str, list[str]]
    age: int

    @property
    def runs(self) -> bool | None:
        """Is the process of this node still running? None if that is not known: it is on another machine."""
        return is_running(self.id.partition("-")[2])

    def __str__(self) -> str:
        return f"{self.id[:8]} on {self.host} (seen {self.age} s ago)"


def dialect_name(dialect: Dialect) -> DialectName:
    return "sqlite" if dialect.name == "sqlite" else "postgres"


def node_columns(model: Model) -> str:
    """The tables and columns of a model, as a row has them."""
    return msgspec.json.encode({table: sorted(columns) for table, columns in meanings(model).items()}).decode()


def see(dialect: Dialect, node_id: str, host: str, tables: str) -> Script[None]:
    """Write that a process runs. A database that takes no changes is left as it is."""
    name, sign = dialect_name(dialect), dialect.placeholder
    if (yield Step(_WRITABLE[name], ())) is not None:
        yield Step(_SEEN.format(sign, _NOW[name]), (node_id, host, tables))
        yield Step(_FORGET_OLD.format(sign, _NOW[name]), ())


def forget_node(dialect: Dialect, node_id: str) -> Script[None]:
    """Write that a process has stopped."""
    yield Step(f"DELETE FROM diptych_nodes WHERE id = {dialect.placeholder}1", (node_id,))


def recent_nodes(dialect: DialectName) -> str:
    """The query for the processes that run: rows for `nodes_of`."""
    age = f"{_NOW[dialect]} - seen_at"
    return f"SELECT id, host, tables, {age} FROM diptych_nodes WHERE {age} <= {RECENT} ORDER BY started_at, id"


def nodes_of(rows: Iterable[Any]) -> list[Node]:
    """The processes of these rows, but for those of this machine that have ended."""
    nodes = [Node(id, host, _TABLES.decode(tables), age) for id, host, tables, age in rows]
    return [node for node in nodes if node.runs is not False]


_TABLES = msgspec.json.Decoder(dict[str, list[str]])
