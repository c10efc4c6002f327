"""Leases in the database: which node works on a row of a system table.

    LEASES = Leases("diptych_webhooks", free="disabled_at IS NULL")
    if await store.write(lambda: LEASES.take(dialect, id, node, 10_000)): …

A lease is taken and renewed by the clock of the database, and ends by itself. Who stores results repeats the condition
`lease_by = node` in its statement: so a node that was late, and whose lease another has taken since, stores nothing.
The table has the columns `id`, `lease_by` and `lease_until`, in milliseconds.
"""

from __future__ import annotations

from diptych.compile.dialect import Dialect
from diptych.db.script import Script, Step

NOW = {
    "sqlite": "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    "postgres": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
}
"""The clock of the database, in milliseconds."""
_TAKE = (
    "UPDATE {table} SET lease_by = {0}1, lease_until = {now} + {0}2{sets} "
    "WHERE id = {0}3 AND {free} AND (lease_until < {now} OR lease_by = {0}1) RETURNING 1"
)
_RENEW = "UPDATE {table} SET lease_until = {now} + {0}2 WHERE lease_by = {0}1 AND lease_until > {now} RETURNING 1"
_RELEASE = "UPDATE {table} SET lease_until = 0 WHERE lease_by = {0}1"


class LostLease(Exception):
    """Another node has the lease now, or the row was removed."""


class Leases:
    """The leases on the rows of one table: `free` is the condition of a row that can be taken, `sets` what else is set
    when it is; `{now}` in them is the clock."""

    def __init__(self, table: str, *, free: str, sets: str = "") -> None:
        self._names = {"table": table, "free": free, "sets": f", {sets}" if sets else ""}

    def take(self, dialect: Dialect, id: str, node: str, milliseconds: int) -> Script[bool]:
        """Lease a row, unless another node has it."""
        return (yield Step(self._statement(_TAKE, dialect), (node, milliseconds, id))) is not None

    def renew(self, dialect: Dialect, node: str, milliseconds: int) -> Script[None]:
        """Renew all leases of a node that are still valid."""
        yield Step(self._statement(_RENEW, dialect), (node, milliseconds))

    def release(self, dialect: Dialect, node: str) -> Script[None]:
        """End all leases of a node."""
        yield Step(self._statement(_RELEASE, dialect), (node,))

    def _statement(self, text: str, dialect: Dialect) -> str:
        now = NOW[dialect.name]
        names = {name: part.format(now=now) for name, part in self._names.items()}
        return text.format(dialect.placeholder, now=now, **names)
