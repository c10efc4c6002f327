"""The services of cells that are open: an LRU pool. One is opened by the first request of its tenant.

At the limit, the least recently used one that nobody uses is closed, and one whose mails wait after all others. If all
are in use, the request gets 503: a tenant cannot push out the requests of another. What fails to open is not tried
again for a moment, so a database that is down costs the others nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any

from diptych.api.reply import Reply
from diptych.errors import Code, Refusal, StartError
from diptych.serve.app import Diptych

log = logging.getLogger("diptych")
_OPENS = 4
"""Cells that are opened at the same time."""
_FAILED = 1.0
"""Seconds for which a cell that could not be opened is not tried again."""
_BEGINS = 1.0
"""Seconds in which a stream that was answered must begin."""
_WAITS, _PAUSE = 50, 0.02
"""How often a request looks for a cell that may be closed, and the seconds between two looks."""
_PATIENCE = 10.0
"""Seconds that the requests of a cell have to end, if its database has changed."""


class Cell:
    """The open service of one tenant."""

    def __init__(self, app: Diptych, now: float) -> None:
        self.app = app
        self.used_at = now
        self.held_until = 0.0
        """A stream may begin until then."""
        self.running = 0
        """Requests and streams that are under way, those left out that were answered at once."""

    def is_idle(self, now: float) -> bool:
        """May the cell be closed, since no request uses it and nothing holds it open?"""
        return not self.running and self.held_until <= now

    def waiting(self, reply: Awaitable[Reply]) -> Awaitable[Reply]:
        """A reply that has to wait; the cell stays open for it, from now on."""
        return _Held(self, reply)

    def hold(self, now: float) -> None:
        """Keep it open until the stream that was answered has begun."""
        self.held_until = now + _BEGINS

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep it open meanwhile."""
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


class _Held:
    """An awaitable that holds a cell until it is done, or dropped before it began."""

    def __init__(self, cell: Cell, reply: Awaitable[Reply]) -> None:
        self._cell: Cell | None = cell
        self._reply = reply
        cell.running += 1

    def __await__(self) -> Generator[Any, Any, Reply]:
        try:
            return (yield from self._reply.__await__())
        finally:
            self._release()

    def _release(self) -> None:
        cell, self._cell = self._cell, None
        if cell is not None:
            cell.running -= 1

    __del__ = _release


class CellPool:
    """The open cells; `make` gives the service of a tenant, not started yet."""

    def __init__(self, make: Callable[[str], Diptych], most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[str] = Counter()
        """Cells that were opened, closed, or could not be opened."""
        self._make = make
        self._most = most
        self._clock = clock
        self._cells: OrderedDict[str, Cell] = OrderedDict()
        self._opening: dict[str, asyncio.Task[Cell]] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, float] = {}
        self._turns = asyncio.Semaphore(_OPENS)
        self._starting = 0
        """Cells that have a turn now."""

    def __len__(self) -> int:
        return len(self._cells)

    def get(self, tenant: str) -> Cell | None:
        """The open cell of a tenant, used now."""
        cell = self._cells.get(tenant)
        if cell is not None:
            cell.used_at = self._clock()
            self._cells.move_to_end(tenant)
        return cell

    async def open(self, tenant: str) -> Cell:
        """The cell of a tenant, opened if need be; a Refusal if it cannot be."""
        while (cell := self.get(tenant)) is None:  # one that was opened may have been closed before its turn
            task = self._opening.get(tenant)
            if task is None:
                if self._clock() < self._failed.get(tenant, 0.0):
                    raise _not_now()
                task = self._opening[tenant] = asyncio.create_task(self._open(tenant))
                task.add_done_callback(lambda done: self._opened(tenant, done))
            await asyncio.shield(task)
        return cell

    def _opened(self, tenant: str, task: asyncio.Task[Cell]) -> None:
        self._opening.pop(tenant, None)
        if not task.cancelled():
            task.exception()  # those who waited have it; perhaps nobody does any more

    async def _open(self, tenant: str) -> Cell:
        async with self._turns:
            closing = self._closing.get(tenant)
            if closing is not None:
                await asyncio.wait((closing,))
            self._starting += 1
            try:
                await self._make_room()
                app = self._make(tenant)
                await app.start()
            except Refusal:
                raise
            except Exception as error:
                self.counts["failed"] += 1
                self._failed = {other: end for other, end in self._failed.items() if end > self._clock()}
                self._failed[tenant] = self._clock() + _FAILED
                log.error("the cell of %s cannot be opened: %s", tenant, error, exc_info=not _is_foreseen(error))
                raise _not_now() from None
            finally:
                self._starting -= 1
            self.counts["opened"] += 1
            cell = self._cells[tenant] = Cell(app, self._clock())
            return cell

    async def _make_room(self) -> None:
        """Close the least recently used cell, if there are as many as there may be."""
        for _ in range(_WAITS):
            if len(self._cells) + self._starting <= self._most:
                return
            now = self._clock()
            idle = [tenant for tenant, cell in self._cells.items() if cell.is_idle(now)]
            if idle:
                await asyncio.shield(self._close(min(idle, key=lambda tenant: self._cells[tenant].app.has_mails)))
            else:
                await asyncio.sleep(_PAUSE)
        raise Refusal(Code.UNAVAILABLE, "Too many tenants are served at the same time; try again.")

    def close_idle(self, seconds: float) -> None:
        """Begin to close the cells that nobody has used for a time."""
        now = self._clock()
        for tenant, cell in [*self._cells.items()]:
            if cell.is_idle(now) and cell.used_at <= now - seconds and not cell.app.has_mails:
                self._close(tenant)

    def retire(self, tenant: str) -> None:
        """Begin to close a cell whose database has changed: the next request opens it anew, where it is then.

        So does one that waits for it while it is being opened.
        """
        self._failed.pop(tenant, None)
        if tenant in self._cells:
            self._close(tenant)
        elif (task := self._opening.get(tenant)) is not None:
            task.add_done_callback(lambda _: self.retire(tenant))

    def _close(self, tenant: str) -> asyncio.Task[None]:
        cell = self._cells.pop(tenant)
        task = self._closing[tenant] = asyncio.create_task(self._end(tenant, cell))
        task.add_done_callback(lambda _: self._closing.pop(tenant, None))
        return task

    async def _end(self, tenant: str, cell: Cell) -> None:
        """Close a cell: streams end with their cursors, and requests may finish."""
        try:
            await cell.app.closing()
            end = self._clock() + _PATIENCE
            while cell.running and self._clock() < end:
                await asyncio.sleep(0.05)
            await cell.app.stop()
        except Exception:
            log.exception("the cell of %s could not be closed", tenant)
        self.counts["closed"] += 1

    async def closing(self) -> None:
        """End the streams of all cells."""
        await asyncio.gather(*(cell.app.closing() for cell in self._cells.values()))

    async def stop(self) -> None:
        """Close all cells."""
        for task in [*self._opening.values()]:
            task.cancel()
        for tenant in [*self._cells]:
            self._close(tenant)
        await asyncio.gather(*self._opening.values(), *self._closing.values(), return_exceptions=True)


def _is_foreseen(error: Exception) -> bool:
    """Is this an error whose message says enough, so that no traceback is logged?"""
    return isinstance(error, StartError | OSError)


def _not_now() -> Refusal:
    return Refusal(Code.UNAVAILABLE, "The service of this tenant cannot answer now; try again.")
