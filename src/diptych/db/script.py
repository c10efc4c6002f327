"""A write as a script: a generator that yields the statements of one transaction and is sent their rows.

    def script() -> Script[bytes]:
        row = yield Step("UPDATE … RETURNING …", (…))
        if row is None:
            raise Refusal(…)                            everything is rolled back
        return row[1]                                   everything is committed, then this is the result

It knows nothing of the store that runs it, or of threads and tasks: SQLite's writer runs many scripts in one
transaction, PostgreSQL retries one after a deadlock. So a script must have no effects but its statements. The
violation of a constraint is thrown into it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from msgspec import Struct

T = TypeVar("T")
ResultRow = Sequence[Any] | None


class Step(Struct, frozen=True, eq=False):
    """One statement with its values; `marked` if the last column of its row names the transaction."""

    sql: str
    parameters: Sequence[Any]
    marked: bool = False
    many: Sequence[Sequence[Any]] = ()
    """If it runs several times in one go: the values of each time, instead of `parameters`. All rows are sent back."""
    makes: str = ""
    """The id of the row that it makes, if it may share a transaction with steps of other requests."""


Script = Generator[Step, ResultRow, T]
ViolationKind = Literal["unique", "reference", "conflict", "lock", "check", "size", "depth", "moved"]


@dataclass(eq=False)
class Violation(Exception):
    """A statement would break a constraint (a duplicate, a dangling reference), or waits too long for a locked row.

    See `db/violations.py`.
    """

    kind: ViolationKind
    table: str = ""
    columns: tuple[str, ...] = ()


class Again(Exception):
    """Others changed what the script read between two of its statements: it must be retried."""


def one_step(step: Step) -> Script[ResultRow]:
    """The script of one statement: its row, or None if there is none, or if it would break a constraint."""
    try:
        return (yield step)
    except Violation:
        return None
