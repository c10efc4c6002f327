"""A change as a script: a generator that yields the statements of one transaction and is sent their rows.

    def script() -> Script[bytes]:
        row = yield Step("UPDATE … RETURNING …", (…))
        if row is None:
            raise Refusal(…)                            everything is undone
        return row[1]                                   everything is committed, then this is the result

It knows nothing of the store that runs it, or of threads and tasks: SQLite's writer runs many of them in one
transaction, PostgreSQL runs one after a deadlock again. So a script must do nothing but talk to its transaction.
What a statement violates is thrown into it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

T = TypeVar("T")
Row = Sequence[Any] | None


class Step(NamedTuple):
    """One statement with its values; `marked` if the last column of its row names the transaction."""

    sql: str
    parameters: Sequence[Any]
    marked: bool = False


Script = Generator[Step, Row, T]
Kind = Literal["unique", "reference", "conflict", "lock", "check", "size", "depth"]


@dataclass(eq=False)
class Violation(Exception):
    """A statement would break a constraint (two equal values, a reference that leads nowhere), or waits too long
    for a row that others are changing. See `db/violations.py`."""

    kind: Kind
    table: str = ""
    columns: tuple[str, ...] = ()


class Again(Exception):
    """Others changed what the script looked at between two of its statements: it must run again."""


def one_step(step: Step) -> Script[Row]:
    """The script of one statement: its row, or None if there is none, or if it would break a constraint."""
    try:
        return (yield step)
    except Violation:
        return None
