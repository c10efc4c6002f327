"""What a store does: it has tables that fit the model, runs Plans, and keeps the keys of the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from diptych.compile.catalogue import Catalogue
from diptych.compile.dialect import Dialect
from diptych.compile.differences import Difference
from diptych.compile.fragment import finish, identifier, join, sql
from diptych.compile.plan import Plan, SlotBind
from diptych.db.feed import Head
from diptych.db.fitting import Fitted
from diptych.db.script import Row, Script, Step
from diptych.model.defs import ResourceDef
from diptych.model.model import Model

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A secret of the service: `kind` is what it is for."""

    kid: str
    kind: str
    secret: str
    created_at: str


class Session(Protocol):
    """An open transaction. Whoever has it must `end` it, which undoes what was not committed."""

    async def drive(self, script: Callable[[], Script[T]]) -> T: ...

    async def rows(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]: ...

    async def commit(self) -> None: ...

    async def end(self) -> None: ...


class Store(Protocol):
    """A database. `open` makes the tables at first start, and refuses one whose tables do not fit."""

    dialect: Dialect
    numbers: bool
    """Do changes get their positions by a look at the feed, rather than by their commit?"""
    look_every: float
    """Seconds between two looks at the feed, for what nobody tells of."""

    @property
    def places(self) -> int:
        """Statements that it runs at a time, outside the loop."""
        ...

    async def open(self, model: Model, *, add_columns: bool = False, accept: bool = False) -> Fitted:
        """Make it ready for a model: `add_columns` adds what its tables lack, `accept` records anew what its columns
        mean (`db/fitting.py`)."""
        ...

    async def close(self) -> None: ...

    async def catalogue(self) -> Catalogue:
        """What the database tells of itself. It need not be open, and is not changed."""
        ...

    def cautions(self) -> list[str]:
        """What its owner should mend, a sentence each. It need not be open."""
        ...

    async def look(self, model: Model) -> list[Difference]:
        """What differs from a model, and stays so without a change. It need not be open, and is not changed."""
        ...

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        """The columns of the one row that a plan gives."""
        ...

    async def write(self, script: Callable[[], Script[T]], locks: str = "") -> T:
        """Run a script in a transaction; its result comes when that is committed. It may run more than once.

        `locks` is a statement that takes locks before the first one of the script, where there are several writers.
        """
        ...

    def change(self, step: Step, found: Callable[[], Step]) -> Awaitable[Row]:
        """Run a statement that is a change by itself. Its row comes when that is committed; None if nothing changed.

        `found` gives a statement that gives the same row once the change was made.
        """
        ...

    async def session(self, *, reading: bool = False) -> Session:
        """A transaction for code that is not ours; one that only reads takes no turn among the writers."""
        ...

    # the feed

    async def head(self) -> Head:
        """The newest position of the feed: all that was committed before this is told up to there."""
        ...

    async def mark_at(self, position: int) -> int | None:
        """The mark of the change at a position; None if that is not kept."""
        ...

    async def touched(self, after: int, upto: int, most: int) -> list[tuple[str, str]] | None:
        """The rows that changed between two positions, as (table, id); None if there are more than so many."""
        ...

    async def trim(self, before: datetime, rows: int, most: int = 1000) -> int:
        """Forget changes that are older than a moment, or not among the newest so many; never the newest of all.

        Takes at most so many, the oldest first, and gives how many it took.
        """
        ...

    def on_commit(self, wake: Callable[[], None] | None) -> None:
        """Have something called in the loop, soon after anything was committed here or, if possible, elsewhere.

        It may be called for nothing, and must be short.
        """
        ...

    async def ping(self) -> None:
        """Raises a Refusal if the store cannot answer."""
        ...

    async def keys(self, kind: str) -> list[KeyRow]: ...

    async def add_key(self, row: KeyRow) -> None:
        """Keep a key, unless there is one of that name."""
        ...

    async def is_empty(self, table: str) -> bool: ...

    async def insert(self, resource: ResourceDef, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert many rows of canonical values, for sample data."""
        ...


def insert_statement(resource: ResourceDef, names: Sequence[str], dialect: Dialect) -> str:
    """INSERT with a place for each of the named fields."""
    fields = [resource.fields[name] for name in names]
    columns = join(", ", (identifier(field.column) for field in fields))
    places = join(", ", (dialect.value(SlotBind(index, field.scalar)) for index, field in enumerate(fields)))
    statement = sql("INSERT INTO {} ({}) VALUES ({})", identifier(resource.table), columns, places)
    return finish(statement, dialect.placeholder)[0]


def insert_values(resource: ResourceDef, names: Sequence[str], row: Sequence[Any], dialect: Dialect) -> list[Any]:
    """The canonical values of a row in the form that the database takes."""
    converters = (dialect.convert(resource.fields[name].scalar) for name in names)
    return [value if value is None or convert is None else convert(value)
            for value, convert in zip(row, converters, strict=True)]  # fmt: skip
