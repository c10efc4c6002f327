"""The two databases of a move: what is read from the source, and what is written to the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from diptych.compile.system.counters import CREATE_COUNTERS
from diptych.compile.system.object import DialectName
from diptych.errors import StartError
from diptych.migrate.log import create_ddl
from diptych.model.model import Model

Row = tuple[Any, ...]
"""Values as SQLite stores them, in the order of a table's columns."""
MOVED = "diptych_moved"
"""The table of a source that has moved: no service opens it, and its triggers refuse writes."""
MOVING = "diptych_move"
"""The table of a target that is not complete: how far the move is."""
NOT_COPIED = frozenset(
    {
        *("diptych_feed", "diptych_feed_head", "diptych_feed_replaced", "diptych_nodes", "diptych_schema"),
        *("diptych_acts", "diptych_audit", "diptych_audit_head"),
        *(MOVING, MOVED),
    }
)
"""System tables that are copied otherwise, or are made by the target itself."""


def optional_table(name: str, dialect: DialectName) -> str:
    """The statement that makes a system table which a target may lack; "" of those that every database has."""
    if name == "diptych_migrations":
        return create_ddl(dialect)
    return CREATE_COUNTERS[dialect] if name == "diptych_counters" else ""


class StoredChange(NamedTuple):
    """A row of the feed; `old` and `new` are JSON by column, as SQLite stores it."""

    position: int
    mark: int
    at: str
    resource: str
    row_id: str
    old: str | None
    new: str | None


class AuditEntry(NamedTuple):
    """An entry of the audit log; `old` and `new` are as SQLite stores them, `origin` is what its hash covers."""

    entry: int
    position: int
    at: str
    resource: str
    row_id: str
    version: int | None
    old: str | None
    new: str | None
    act: str | None
    masked: str | None
    origin: str
    hash: str


AUDIT_COLUMNS = ", ".join(AuditEntry._fields)


class AuditRest(NamedTuple):
    """The head of an audit log, and who made the changes of the feed that are not in it yet, by position."""

    head: Row
    acts: Sequence[tuple[int, str]]


class Clash(StartError):
    """A row cannot be put, since another one in the target has one of its unique values: it may have given it up since
    it was copied."""

    def __init__(self, table: str, error: Exception) -> None:
        super().__init__(f"A row of {table} has a unique value that another one in the target still has: {error}.")


class Head(NamedTuple):
    """Where a feed begins and ends."""

    feed: str
    oldest: int
    position: int


class Side(Protocol):
    """A database, as a source or as a target."""

    name: str

    async def open(self, model: Model) -> None: ...

    async def close(self) -> None: ...

    # the source

    async def faults(self, text_only: bool) -> list[str]:
        """What cannot be moved, as sentences; with `text_only`, the target stores no NUL in a text."""

    async def count(self, table: str) -> int: ...

    async def rows(self, table: str, after: Any, most: int) -> list[Row]:
        """The next rows of a table, by id."""

    async def rows_of(self, table: str, ids: Sequence[str]) -> list[Row]:
        """The rows with these ids, as the feed writes them; by id."""

    async def head(self) -> Head:
        """Covers all that was committed before the call."""

    async def changes(self, after: int, until: int, most: int) -> list[StoredChange]: ...

    async def audit(self, after: int, most: int) -> list[AuditEntry]:
        """The next entries of the audit log; none if it has no such log."""

    async def audit_rest(self) -> AuditRest | None:
        """What is left to be moved when nobody writes; None if it has no audit log."""

    async def put_audit(self, entries: Sequence[AuditEntry], state: Mapping[str, str]) -> None:
        """Store entries of the audit log."""

    async def put_audit_rest(self, rest: AuditRest) -> None:
        """Set the head of the audit log, and who made the changes that are not in it yet."""

    async def system_tables(self) -> list[str]: ...

    async def system_rows(self, table: str) -> tuple[list[str], list[Row]]:
        """The columns of a system table, and all of its rows."""

    async def last_ids(self) -> dict[str, int]:
        """The last integer id that each table with such ids has given."""

    def held_up(self) -> AbstractAsyncContextManager[None]:
        """Hold up all writers; readers go on."""

    async def close_to_writes(self, target: str) -> None:
        """While they are held up: refuse all writes from then on, also by SQL from outside."""

    async def moved_to(self) -> str:
        """The name of the target to which its data has moved; "" if it has not."""

    # the target

    async def is_empty(self) -> bool: ...

    async def prepare(self) -> None:
        """Make the tables, without what rows would set off: triggers and foreign keys."""

    async def suspend(self) -> None:
        """Take these away again, if a run was interrupted between `complete` and the end of the switch."""

    async def state(self) -> dict[str, str]:
        """How far the move is; empty if none has begun."""

    async def put(self, table: str, ids: Sequence[str], rows: Sequence[Row], state: Mapping[str, str]) -> None:
        """Put rows in the place of those with these ids, and note the state with it; or nothing, and raise a Clash."""

    async def put_changes(self, changes: Sequence[StoredChange], state: Mapping[str, str]) -> None: ...

    async def put_system(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Replace the rows of a system table."""

    async def complete(self, head: Head, last_ids: Mapping[str, int]) -> None:
        """Make what `prepare` left out, and go on with the feed of the source."""

    async def release(self) -> None:
        """The move is over: services may open it. It may be called again after an interruption."""


def chunks(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    """Slices of a sequence."""
    return (items[start : start + size] for start in range(0, len(items), size))
