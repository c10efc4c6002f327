"""Batches: runs of one statement that wait for connections share one, and a round trip.

    answer = batches.join(statement, work)        a future of the row, or None for work that is to run by itself

While no other run of its statement is under way, one runs by itself. Others wait, by caller: each caller with work that
waits has a place in the fair queue of the pool. The one whose turn it is takes as much along as fits a batch: its own
first, then that of other callers. PostgreSQL gets all of it in one packet, and the driver has one answer to take apart.
Under load, that is most of what a short statement costs here.

Nobody loses by it. Each caller keeps its place in the queue until all its work is under way. Only statements whose last
runs were fast are batched, and none of a caller that held connections for long. What a batch has no answer for runs
again, by itself. Nobody waits for a batch while connections are free, for longer than a tick.

`ReadBatches` and `WriteBatches` say what the answers of a batch are.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from diptych.db.postgres.link import Link
from diptych.db.postgres.pool import Pool
from diptych.errors import Refusal
from diptych.fair.caller import CALLER
from diptych.fair.expiring import Ticker
from diptych.fair.queue import full, most_of_one
from diptych.lru import LRUCache

_WIDE = 4
"""Connections that run one statement before further runs of it wait for one of them."""
_MOST = 8
"""Runs of a batch, at most."""
_GROWTH = 1.05
"""The least of the last runs counts; each run lets it grow, so that it is forgotten after some fifty."""
_PAUSE, _LONGEST_PAUSE = 0.005, 1.0
"""Seconds for which a statement is not batched after a batch without all answers; they double each time, and halve when
a batch has all of them."""
_TICK = 0.005
_STATEMENTS, _STATEMENT_BYTES, _PER_STATEMENT = 1_000, 4 << 20, 500

Answer = asyncio.Future[Any]
"""Done with the row of a run, or what else the batch says of it; with None if it is to run by itself."""
W = TypeVar("W")


class _Line(Generic[W]):
    """The work of one caller that waits for a connection, and its place in the queue of the pool."""

    __slots__ = ("caller", "place", "work")

    def __init__(self, caller: str, place: asyncio.Future[Link | None]) -> None:
        self.caller = caller
        self.place = place
        self.work: deque[tuple[Answer, W]] = deque()


class Statement(Generic[W]):
    """The runs of one statement."""

    __slots__ = ("alone_until", "pause", "running", "seconds", "sql", "waiting")

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.running = 0
        self.seconds = float("inf")
        """What a run takes, waiting for the network and for our loop included: the least of the last runs."""
        self.alone_until = 0.0
        """By the loop's clock."""
        self.pause = _PAUSE
        self.waiting: dict[str, _Line[W]] = {}

    def begin(self) -> float:
        """Note that a run begins."""
        self.running += 1
        return time.perf_counter()

    def ran(self, begun: float, runs: int = 1) -> None:
        """Note that runs ended which began then."""
        self.running -= 1
        self.seconds = min((time.perf_counter() - begun) / runs, self.seconds * _GROWTH)


class StatementBatches(Ticker, Generic[W]):
    """The runs of statements on one pool."""

    __slots__ = ("_pool", "_statements", "_waiting")
    fast: float
    """Seconds that a run may take, by the last runs of its statement, to be batched."""
    budget: float
    """Seconds that the runs of a batch may take together, by the last runs."""

    def __init__(self, pool: Pool, name: str) -> None:
        super().__init__(_TICK)
        self._pool = pool
        self._statements: LRUCache[Statement[W]] = LRUCache(name, _STATEMENTS, _STATEMENT_BYTES)
        self._waiting: dict[str, int] = {}
        """Runs that wait, by caller; not those who have none."""

    @abstractmethod
    async def _answers(self, statement: Statement[W], link: Link, work: Sequence[W]) -> Sequence[Any]:
        """Run a batch: what is said of each run, None if it is to run by itself. An error means that of all."""

    def statement(self, sql: str) -> Statement[W]:
        """The statement of this text."""
        statement = self._statements.get(sql)
        if statement is None:
            statement = Statement(sql)
            self._statements.put(sql, statement, len(sql) + _PER_STATEMENT)
        return statement

    def join(self, statement: Statement[W], work: W) -> Answer | None:
        """The answer that a batch will have; None at once if the work is to run by itself."""
        if not statement.running or self._size(statement) < 2:
            return None
        caller, pool = CALLER.get(), self._pool
        if pool.semaphore.is_slow(caller):
            return None
        waiting = self._waiting.get(caller, 0)
        if waiting >= most_of_one(pool.most_waiting):
            raise full()
        line = statement.waiting.get(caller)
        if line is None:
            line = self._line(statement, caller)
        answer: Answer = asyncio.get_running_loop().create_future()
        line.work.append((answer, work))
        self._waiting[caller] = waiting + 1
        return answer

    def _size(self, statement: Statement[W]) -> int:
        """How many runs of a statement may be a batch."""
        if statement.seconds > self.fast or asyncio.get_running_loop().time() < statement.alone_until:
            return 1
        return min(_MOST, int(self.budget / statement.seconds))

    def _line(self, statement: Statement[W], caller: str) -> _Line[W]:
        """A place in the queue of the pool for the work of a caller."""
        line: _Line[W] = _Line(caller, self._pool.queue(caller))
        statement.waiting[caller] = line
        line.place.add_done_callback(partial(self._serve, statement, caller))
        if statement.running < _WIDE:  # what comes in this iteration of the loop joins
            asyncio.get_running_loop().call_soon(self._pool.semaphore.wake)
        self.start()
        return line

    def _serve(self, statement: Statement[W], caller: str, place: asyncio.Future[Link | None]) -> None:
        """Begin a batch for a caller whose turn it is."""
        line = statement.waiting.pop(caller)
        if (error := place.exception()) is not None:
            self._refuse(line, error)
            return
        size = max(1, self._size(statement))
        batch = self._taken(line, size)
        if line.work:
            self._wait_again(statement, caller, line)
        for other, theirs in list(statement.waiting.items()) if len(batch) < size else ():
            if len(batch) < size and other != caller and not self._pool.semaphore.is_slow(other):
                batch += self._taken(theirs, size - len(batch))
                if not theirs.work and self._pool.semaphore.withdraw(other, theirs.place):
                    del statement.waiting[other]
        if batch:
            begun = statement.begin()
            self._begin(self._run_batch(statement, begun, caller, place.result(), batch))
        else:
            self._pool.pass_on(caller, place.result())

    def _taken(self, line: _Line[W], most: int) -> list[tuple[Answer, W]]:
        """The next work of a line, without that for which nobody waits any more."""
        found: list[tuple[Answer, W]] = []
        before = len(line.work)
        while line.work and len(found) < most:
            work = line.work.popleft()
            if not work[0].done():
                found.append(work)
        left = self._waiting.pop(line.caller, 0) - before + len(line.work)
        if left:
            self._waiting[line.caller] = left
        return found

    def _wait_again(self, statement: Statement[W], caller: str, line: _Line[W]) -> None:
        """Queue for the rest of a line."""
        try:
            self._line(statement, caller).work = line.work
        except Refusal as refusal:
            self._refuse(line, refusal)

    def _refuse(self, line: _Line[W], error: BaseException) -> None:
        for answer, _ in self._taken(line, len(line.work)):
            answer.set_exception(Refusal(error.code, error.message) if isinstance(error, Refusal) else error)

    def _begin(self, batch: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a batch, in a task of its own: it goes on if one of its callers goes away."""
        task = asyncio.get_running_loop().create_task(batch)
        _RUNNING.add(task)
        task.add_done_callback(_RUNNING.discard)
        return task

    async def _run_batch(
        self, statement: Statement[W], begun: float, caller: str, link: Link | None, batch: list[tuple[Answer, W]]
    ) -> None:
        answers: Sequence[Any] = ()
        try:
            link = await self._pool.claim(caller, link)
            try:
                answers = await self._answers(statement, link, [work for _, work in batch])
            finally:
                self._pool.give(link)
        except (Exception, asyncio.CancelledError):  # each has its own error when it runs by itself
            answers = [None] * len(batch)
        finally:
            statement.ran(begun, len(batch))
            self._judge(statement, is_good=None not in answers)
            for (answer, _), said in zip(batch, answers, strict=True):
                if not answer.done():
                    answer.set_result(said)

    @staticmethod
    def _judge(statement: Statement[W], *, is_good: bool) -> None:
        """Leave a statement alone for a while after a batch without all answers."""
        if is_good:
            statement.pause = max(_PAUSE, statement.pause / 2)
        else:
            statement.alone_until = asyncio.get_running_loop().time() + statement.pause
            statement.pause = min(_LONGEST_PAUSE, statement.pause * 2)

    def tick(self) -> bool:
        """Let those go on who wait though connections are free."""
        self._pool.semaphore.wake()
        return bool(self._waiting)


_RUNNING: set[asyncio.Task[None]] = set()
"""The batches that run: the event loop refers to its tasks weakly."""
