"""Batches of reads: reads of one statement that wait for connections share one, and a round trip.

    answer = batches.join(statement, parameters)        a future of the row, or None for a read that runs by itself

While no other run of its statement is under way, a read runs by itself. Others wait, by caller: each caller with reads
that wait has a place in the fair queue of the pool. The one whose turn it is takes as many reads along as fit a batch:
its own first, then those of other callers. PostgreSQL gets them in one packet, each runs with a snapshot of its own,
and the driver has one answer to take apart. Under load, that is most of what a read costs here.

Nobody loses by it. Each caller keeps its place in the queue until all its reads are under way. Only statements whose
last runs were fast are batched, and none of a caller that held connections for long. A batch that takes longer than a
moment is cancelled. Then, and if one of its reads fails or returns no row (answers could not be told apart), its reads
run again, each by itself. No read waits for a batch while connections are free, for longer than a tick.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import asyncpg

from diptych.db.postgres.pool import Link, Pool
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.fair.expiring import ExpiringSet, Ticker
from diptych.lru import LRUCache

_WIDE = 4
"""Connections that run one statement before further runs of it wait for one of them."""
_MOST = 8
"""Reads of a batch, at most."""
_BUDGET = 0.008
"""Seconds that a batch may take, by the last runs of its statement."""
_FAST = _BUDGET / 2
_GROWTH = 1.05
"""The least of the last runs counts; each run lets it grow, so that it is forgotten after some fifty."""
_LATE = 0.05
"""Seconds after which a batch is cancelled."""
_ALONE = 1.0
"""Seconds for which a statement is not batched after that, or after a batch that failed."""
_TICK = 0.005
_STATEMENTS, _STATEMENT_BYTES, _PER_STATEMENT = 1_000, 4 << 20, 500
_POLLS = 3
"""Iterations of the loop that a batch has after its time, to read an answer that is there."""

Answer = asyncio.Future[Any]
"""Done with the row of a read; with None if it is to run by itself."""


class _Line:
    """The reads of one caller that wait for a connection, and its place in the queue of the pool."""

    __slots__ = ("place", "reads")

    def __init__(self, place: asyncio.Future[Link | None]) -> None:
        self.place = place
        self.reads: deque[tuple[Answer, Sequence[Any]]] = deque()


class Statement:
    """The runs of one statement."""

    __slots__ = ("alone_until", "running", "seconds", "sql", "waiting")

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.running = 0
        self.seconds = float("inf")
        """What a run takes, waiting for the network and for our loop included: the least of the last runs."""
        self.alone_until = 0.0
        """By the loop's clock."""
        self.waiting: dict[str, _Line] = {}

    def begin(self) -> float:
        """Note that a run begins."""
        self.running += 1
        return time.perf_counter()

    def ran(self, begun: float, runs: int = 1) -> None:
        """Note that runs ended which began then."""
        self.running -= 1
        self.seconds = min((time.perf_counter() - begun) / runs, self.seconds * _GROWTH)


class ReadBatches(Ticker):
    """The reads of one pool, by statement."""

    __slots__ = ("_batches", "_pool", "_statements", "_waiting")

    def __init__(self, pool: Pool) -> None:
        super().__init__(_TICK)
        self._pool = pool
        self._statements: LRUCache[Statement] = LRUCache("runs of statements", _STATEMENTS, _STATEMENT_BYTES)
        self._batches: ExpiringSet[asyncio.Task[None]] = ExpiringSet(_LATE, partial(_end_late, _POLLS))
        self._waiting = 0
        """Reads that wait."""

    def statement(self, sql: str) -> Statement:
        """The statement of this text."""
        statement = self._statements.get(sql)
        if statement is None:
            statement = Statement(sql)
            self._statements.put(sql, statement, len(sql) + _PER_STATEMENT)
        return statement

    def join(self, statement: Statement, parameters: Sequence[Any]) -> Answer | None:
        """The row that a batch with this read will return, or None; None at once if it is to run by itself."""
        if not statement.running or self._size(statement) < 2:
            return None
        caller, pool = CALLER.get(), self._pool
        if pool.semaphore.is_slow(caller):
            return None
        line = statement.waiting.get(caller)
        if line is None:
            line = self._line(statement, caller)
        elif self._waiting >= pool.most_waiting:
            raise Refusal(Code.UNAVAILABLE, "Too many wait for the database; try again.")
        answer: Answer = asyncio.get_running_loop().create_future()
        line.reads.append((answer, parameters))
        self._waiting += 1
        return answer

    def _size(self, statement: Statement) -> int:
        """How many runs of a statement may be a batch."""
        if statement.seconds > _FAST or asyncio.get_running_loop().time() < statement.alone_until:
            return 1
        return min(_MOST, int(_BUDGET / statement.seconds))

    def _line(self, statement: Statement, caller: str) -> _Line:
        """A place in the queue of the pool for the reads of a caller."""
        statement.waiting[caller] = line = _Line(self._pool.queue(caller))
        line.place.add_done_callback(partial(self._serve, statement, caller))
        if statement.running < _WIDE:  # others that come in this iteration of the loop join
            asyncio.get_running_loop().call_soon(self._pool.semaphore.wake)
        self.start()
        return line

    def _serve(self, statement: Statement, caller: str, place: asyncio.Future[Link | None]) -> None:
        """Begin a batch for a caller whose turn it is."""
        line = statement.waiting.pop(caller)
        if (error := place.exception()) is not None:
            self._refuse(line, error)
            return
        size = max(1, self._size(statement))
        reads = self._taken(line, size)
        if line.reads:
            self._wait_again(statement, caller, line)
        for other, theirs in list(statement.waiting.items()) if len(reads) < size else ():
            if len(reads) < size and other != caller and not self._pool.semaphore.is_slow(other):
                reads += self._taken(theirs, size - len(reads))
                if not theirs.reads and self._pool.semaphore.withdraw(other, theirs.place):
                    del statement.waiting[other]
        if not reads:
            self._pool.pass_on(caller, place.result())
            return
        begun = statement.begin()
        batch = asyncio.get_running_loop().create_task(self._run_batch(statement, begun, caller, place.result(), reads))
        self._batches.begin(batch)
        batch.add_done_callback(self._batches.end)

    def _taken(self, line: _Line, most: int) -> list[tuple[Answer, Sequence[Any]]]:
        """The next reads of a line, without those that nobody waits for any more."""
        found: list[tuple[Answer, Sequence[Any]]] = []
        while line.reads and len(found) < most:
            read = line.reads.popleft()
            self._waiting -= 1
            if not read[0].done():
                found.append(read)
        return found

    def _wait_again(self, statement: Statement, caller: str, line: _Line) -> None:
        """Queue for the rest of a line."""
        try:
            self._line(statement, caller).reads = line.reads
        except Refusal as refusal:
            self._refuse(line, refusal)

    def _refuse(self, line: _Line, error: BaseException) -> None:
        for answer, _ in self._taken(line, len(line.reads)):
            answer.set_exception(Refusal(error.code, error.message) if isinstance(error, Refusal) else error)

    async def _run_batch(
        self,
        statement: Statement,
        begun: float,
        caller: str,
        link: Link | None,
        reads: list[tuple[Answer, Sequence[Any]]],
    ) -> None:
        """Run reads, in a task of its own: they go on if the caller of one of them goes away."""
        rows: Sequence[Any] = [None] * len(reads)
        try:
            link = await self._pool.claim(caller, link)
            link.reads = True
            try:
                found = await link.read_many(statement.sql, [parameters for _, parameters in reads])
                if len(found) == len(reads):
                    rows = found
                else:
                    self._leave_alone(statement)
            except asyncpg.InvalidCachedStatementError:  # a table was altered: what was prepared is void
                link.statements.clear()
            finally:
                link.reads = False
                self._pool.give(link)
        except (Exception, asyncio.CancelledError):  # each has its own error when it runs by itself
            self._leave_alone(statement)
        finally:
            statement.ran(begun, len(reads))
            for (answer, _), row in zip(reads, rows, strict=True):
                if not answer.done():
                    answer.set_result(row)

    @staticmethod
    def _leave_alone(statement: Statement) -> None:
        statement.alone_until = asyncio.get_running_loop().time() + _ALONE

    def tick(self) -> bool:
        """Let those go on who wait though connections are free."""
        self._pool.semaphore.wake()
        return self._waiting > 0


def _end_late(polls: int, batch: asyncio.Task[None]) -> None:
    """Cancel a batch that has had its time, unless its answer is there and only has to be read."""
    if batch.done():
        return
    if polls:
        asyncio.get_running_loop().call_soon(_end_late, polls - 1, batch)
    else:
        batch.cancel()
