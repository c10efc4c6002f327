"""Group commit on SQLite, as the floor does it: writes that wait when the writer is free share a transaction.

Nothing is answered before COMMIT has returned, and COMMIT returns when the write-ahead log is on disk
(`synchronous=FULL`). Each write has a savepoint, so that one that fails takes none of the others with it.
Where the work is done is the question; both ways are here, and `batching.py` holds them against each other:

    Threaded   one writer thread runs the statements and COMMIT
    Inline     the event loop runs the statements itself, at once; only COMMIT, which waits for the disk, runs
               in a thread. While it does, new writes wait for the next batch

Either way the thread hands a whole batch back to the event loop with one call. On a quiet machine with two cores
Inline costs 137 µs of CPU for a request and Threaded 168; held to one core they change places: 148 and 137. The floor
is Threaded, the plain way to do it (`bench.floor --writer inline` is the other).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, Protocol

import apsw

Execute = Callable[..., apsw.Cursor]
Values = tuple[str | int | bytes | None, ...]
Statement = tuple[str, Values]


class Write(NamedTuple):
    """Statements that wait, the first of which gives the answer, and who waits for it."""

    statements: tuple[Statement, ...]
    answer: asyncio.Future[Any]


class Done(NamedTuple):
    """A statement that ran, with what it gave, to be told once it is committed."""

    answer: asyncio.Future[Any]
    result: Any


class Writer(Protocol):
    """Runs writes on a connection of its own. `batches` counts transactions by how many writes they held."""

    batches: Counter[int]

    def run(self, *statements: Statement) -> asyncio.Future[Any]:
        """What the one row of the first statement holds, once all are on disk."""


class Threaded:
    """All in one writer thread."""

    def __init__(self, connection: apsw.Connection, loop: asyncio.AbstractEventLoop) -> None:
        self.execute: Execute = connection.cursor().execute
        self.loop = loop
        self.batches: Counter[int] = Counter()
        self.waiting: SimpleQueue[Write] = SimpleQueue()
        Thread(target=self._work, name="writer", daemon=True).start()

    def run(self, *statements: Statement) -> asyncio.Future[Any]:
        """Leaves the write for the thread."""
        answer = self.loop.create_future()
        self.waiting.put(Write(statements, answer))
        return answer

    def _work(self) -> None:
        while True:
            batch = [self.waiting.get()]
            with suppress(Empty):
                while True:
                    batch.append(self.waiting.get_nowait())
            self.batches[len(batch)] += 1
            self.execute("BEGIN IMMEDIATE")
            done = [Done(write.answer, _run(self.execute, write)) for write in batch]
            self.loop.call_soon_threadsafe(_tell, done, _commit(self.execute))


class Inline:
    """Statements in the event loop, COMMIT in a thread; the two never use the connection at the same time."""

    def __init__(self, connection: apsw.Connection, loop: asyncio.AbstractEventLoop) -> None:
        self.execute: Execute = connection.cursor().execute
        self.loop = loop
        self.batches: Counter[int] = Counter()
        self.busy = False
        self.batch: list[Done] = []
        self.waiting: list[Write] = []
        self.commits: SimpleQueue[list[Done]] = SimpleQueue()
        Thread(target=self._work, name="commit", daemon=True).start()

    def run(self, *statements: Statement) -> asyncio.Future[Any]:
        """Runs the statements now, unless a commit is under way."""
        write = Write(statements, self.loop.create_future())
        if self.busy:
            self.waiting.append(write)
        else:
            self._add(write)
        return write.answer

    def _add(self, write: Write) -> None:
        """The first of a batch begins it; the commit comes after all that this turn of the loop brings."""
        if not self.batch:
            self.execute("BEGIN IMMEDIATE")
            self.loop.call_soon(self._send)
        self.batch.append(Done(write.answer, _run(self.execute, write)))

    def _send(self) -> None:
        batch, self.batch, self.busy = self.batch, [], True
        self.batches[len(batch)] += 1
        self.commits.put(batch)

    def _work(self) -> None:
        while True:
            batch = self.commits.get()
            self.loop.call_soon_threadsafe(self._committed, batch, _commit(self.execute))

    def _committed(self, batch: list[Done], error: apsw.Error | None) -> None:
        """Told first: to send the next commit off before that measures worse, since its batch is smaller."""
        _tell(batch, error)
        waiting, self.waiting, self.busy = self.waiting, [], False
        for write in waiting:
            self._add(write)


WRITERS: dict[str, Callable[[apsw.Connection, asyncio.AbstractEventLoop], Writer]] = {
    "threaded": Threaded,
    "inline": Inline,
}


def _run(execute: Execute, write: Write) -> Any:
    """What the first statement gives, or the error that one of them ends with."""
    execute("SAVEPOINT one")
    try:
        (sql, values), *more = write.statements
        result = execute(sql, values).get
        for sql, values in more:
            execute(sql, values)
    except apsw.Error as error:
        execute("ROLLBACK TO one")
        result = error
    execute("RELEASE one")
    return result


def _commit(execute: Execute) -> apsw.Error | None:
    try:
        execute("COMMIT")
    except apsw.Error as error:
        execute("ROLLBACK")
        return error
    return None


def _tell(batch: list[Done], error: apsw.Error | None) -> None:
    """Wakes all that wait; one whose client went away is done already."""
    for answer, result in batch:
        if answer.done():
            continue
        failed = error or (result if isinstance(result, apsw.Error) else None)
        if failed is None:
            answer.set_result(result)
        else:
            answer.set_exception(failed)
