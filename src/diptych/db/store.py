"""The interface of a store: a database that runs Plans and scripts, and keeps the feed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from diptych.compile.catalogue import Catalogue
from diptych.compile.dialect import Dialect
from diptych.compile.differences import Difference
from diptych.compile.fragment import identifier, join, sql
from diptych.compile.plan import Plan, SlotBind
from diptych.db.fitting import Fitted
from diptych.db.script import ResultRow, Script, Step
from diptych.model.defs import ResourceDef
from diptych.model.model import Model

T = TypeVar("T")


class FeedHead(Struct, frozen=True):
    """Where a feed begins and ends."""

    feed: str
    """Its identity: 16 hexadecimal digits, made with the table."""
    position: int
    """The newest position, 0 if there is none yet."""
    mark: int
    """The mark of the change there, 0 if there is none."""
    oldest: int
    """The oldest position that was not trimmed, 0 if there is none."""


class FeedPeek(NamedTuple):
    """What a look at a feed finds: its end, and whether there are changes without a position."""

    head: FeedHead
    is_waiting: bool


class StoreLoad(Struct, frozen=True):
    """How busy a store is, for its metrics."""

    size: int = 0
    """Statements that it runs at a time, outside the loop."""
    used: int = 0
    """Those that run."""
    waiting: int = 0
    """Reads, and on PostgreSQL also writes, that wait."""
    writes: int = 0
    """Changes that wait for the one writer of SQLite."""
    writable: bool = True
    """False if the database is the reason why the last change failed."""


class ReplicaState(Struct, frozen=True):
    """How a replica is, for its metrics."""

    name: str
    is_up: bool
    lag: float
    """Seconds for which it has not replayed what it has received."""
    position: int
    """The newest position of the feed that it has."""
    reads: int
    """Reads that it has answered."""


class RelayState(Struct, frozen=True):
    """How the relay of notices is, for its metrics."""

    is_up: bool
    sent: int
    """Notices that it has taken from this process."""
    received: int
    """Valid notices of other nodes."""
    refused: int
    """Messages that are no valid notices of this feed."""


class Session(Protocol):
    """An open transaction. Its user must `end` it, which rolls back what was not committed."""

    async def drive(self, script: Callable[[], Script[T]]) -> T: ...

    async def rows(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]: ...

    async def commit(self) -> None: ...

    async def end(self) -> None: ...


class Store(Protocol):
    """A database. `open` makes the tables at first start, and refuses a database whose tables do not fit."""

    dialect: Dialect
    numbers: bool
    """Do changes get their positions when the feed is read, rather than at their commit?"""
    look_every: float
    """Seconds between two polls of the feed, for changes without a notification."""

    @property
    def places(self) -> int:
        """How many statements it runs at a time, outside the loop."""

    @property
    def load(self) -> StoreLoad:
        """How busy it is now."""

    async def open(self, model: Model, *, add_columns: bool = False, accept: bool = False) -> Fitted:
        """Open it for a model: `add_columns` adds what its tables lack, `accept` replaces the record of its columns
        (`db/fitting.py`)."""

    async def close(self) -> None: ...

    async def catalogue(self) -> Catalogue:
        """The tables, columns, indexes and foreign keys of the database, which need not be open and is not changed."""

    def cautions(self) -> list[str]:
        """Warnings for the owner of the database, which need not be open."""

    async def look(self, model: Model) -> list[Difference]:
        """The differences from a model that `open` would not fix. It need not be open, and is not changed."""

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        """The columns of the one row of a plan."""

    def run_now(self, plan: Plan, parameters: Sequence[Any]) -> tuple[bytes | None, ...] | list[bytes | None] | None:
        """Run a statement without waiting; None if it has to wait, which is for `run_apart`."""

    async def run_apart(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        """Run a statement outside the event loop."""

    def read_from(self, urls: Sequence[str], model: Model) -> Callable[[Plan, Sequence[Any]], Awaitable[Any]]:
        """Begin to use replicas: what runs a read there if it can, or else here."""

    @property
    def replicas(self) -> Sequence[ReplicaState]:
        """How the replicas are that it uses; none, if it uses none."""

    @property
    def primary_reads(self) -> int:
        """Reads that no replica could answer."""

    @property
    def relay(self) -> RelayState | None:
        """How the relay of notices is; None without one."""

    async def write(self, script: Callable[[], Script[T]], locks: str = "") -> T:
        """Run a script in a transaction, and return its result once that is committed. It may run more than once.

        `locks` is a statement that takes locks first, where there are several writers.
        """

    def change(self, step: Step, lookup: Callable[[], Step]) -> Awaitable[ResultRow]:
        """Run a statement that is a change by itself. Returns its row once it is committed; None if nothing changed.

        `lookup` makes a statement that returns the same row once the change was made.
        """

    async def session(self, *, reading: bool = False) -> Session:
        """A transaction for model code; one that only reads does not wait for writers."""

    # the feed

    async def head(self) -> FeedHead:
        """The newest position of the feed; it covers all that was committed before the call."""

    async def peek(self) -> FeedPeek:
        """The newest position that was assigned so far; nothing is changed."""

    async def trim(self, before: datetime, rows: int, most: int = 1000) -> int:
        """Delete changes that are older than `before`, or not among the newest `rows`; never the newest of all.

        Deletes at most `most`, the oldest first, and returns how many.
        """

    def on_commit(self, wake: Callable[[], None] | None, heard: Callable[[str], bool] | None = None) -> None:
        """Set the callbacks that run in the loop: `wake` soon after a commit, `heard` with each notice that changes
        were numbered, here or elsewhere, where there are notices (`db/notice.py`); it returns whether that is valid.

        `wake` may be called without a commit. Both must be short.
        """

    async def ping(self) -> None:
        """Raises a Refusal if the store cannot answer."""

    async def insert(self, resource: ResourceDef, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert many rows of canonical values, for sample data."""


def insert_plan(resource: ResourceDef, names: Sequence[str], dialect: Dialect) -> Plan:
    """INSERT of a row of canonical values, one for each of the named fields."""
    fields = [resource.fields[name] for name in names]
    columns = join(", ", (identifier(field.column) for field in fields))
    bound = ((field, dialect.value(SlotBind(index, field.scalar))) for index, field in enumerate(fields))
    values = join(", ", (dialect.assigned(value, field) for field, value in bound))
    return dialect.plan(sql("INSERT INTO {} ({}) VALUES ({})", identifier(resource.table), columns, values))
