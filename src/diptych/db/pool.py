"""Connections to PostgreSQL that are held, and handed out last in, first out.

There is no reset between two requests: a read leaves nothing behind. Every connection has its own prepared
statements. Who finds no connection free waits in line, and the next one that is released is handed over; one
timer for the whole line ends the waits that take too long.

A connection can be given back in any state, also when a task that used it was cancelled in the middle of a
statement. One that is not clean (a statement is being cancelled, a transaction is open, code of a model used it) is
set right in the background first, and dropped if that takes too long: whoever takes a connection finds it clean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement

from diptych.errors import Code, Refusal

_STATEMENTS = 512
_MENDING = 3.0
"""Seconds after which a connection that is not clean is dropped."""


class Link:
    """A connection with its prepared statements; of very many the oldest goes."""

    __slots__ = ("connection", "foreign", "statements", "used")

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection
        self.statements: dict[str, PreparedStatement] = {}
        self.used = False
        """Was it given back before? Then it may have broken while it was idle."""
        self.foreign = False
        """Did it run statements that are not ours, which may have changed its settings?"""

    async def row(self, sql: str, parameters: Sequence[Any]) -> Any:
        """The one row of a statement, or None."""
        statement = self.statements.get(sql)
        if statement is None:
            statement = await self._prepare(sql)
        try:
            return await statement.fetchrow(*parameters)
        except asyncpg.InvalidCachedStatementError:  # a table was changed since: what was prepared is void
            self.statements.clear()
            return await (await self._prepare(sql)).fetchrow(*parameters)

    async def _prepare(self, sql: str) -> PreparedStatement:
        if len(self.statements) >= _STATEMENTS:
            del self.statements[next(iter(self.statements))]
        statement = self.statements[sql] = await self.connection.prepare(sql)
        return statement

    @property
    def is_clean(self) -> bool:
        """Can anyone use it as it is? (A transaction may still begin while a statement is being cancelled.)"""
        connection: Any = self.connection
        return not (self.foreign or connection._protocol._is_cancelling() or connection.is_in_transaction())

    async def clean(self) -> None:
        """End what is under way, undo what was not committed, and forget what others have set."""
        connection: Any = self.connection
        await connection._protocol._wait_for_cancellation()
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK")
        if self.foreign:
            await connection.reset()
            self.foreign = False


class Pool:
    """At most `size` connections, made when they are needed."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], size: int, wait: float) -> None:
        self.size = size
        self.wait = wait
        self._connect = connect
        self._free: list[Link] = []
        self._line: deque[tuple[float, asyncio.Future[Link | None]]] = deque()
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._mending: set[asyncio.Task[None]] = set()
        self._closed = False

    def add(self, connection: asyncpg.Connection) -> None:
        """Take over a connection that was made elsewhere."""
        self._count += 1
        self._free.append(Link(connection))

    @property
    def idle(self) -> int:
        """Connections that are at hand, or that could be made."""
        return len(self._free) + self.size - self._count

    async def take(self) -> Link:
        """A connection: one that is free, a new one, or the next that is given back."""
        while not self._closed:
            while self._free:
                link = self._free.pop()
                if not link.connection.is_closed():
                    return link
                self._count -= 1
            if self._count < self.size:
                return await self._new()
            handed = await self._stand_in_line()
            if handed is not None:
                return handed
        raise Refusal(Code.UNAVAILABLE, "The database is closed.")

    async def _new(self) -> Link:
        self._count += 1
        try:
            return Link(await self._connect())
        except BaseException as error:
            self._count -= 1
            self._call_next(None)
            if isinstance(error, asyncpg.PostgresError):  # it takes no connections now
                raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.") from error
            raise

    def give(self, link: Link) -> None:
        """Give a connection back, in whatever state it is; a broken one makes room for a new one."""
        link.used = True
        if link.connection.is_closed() or link.is_clean or self._closed:
            self._put_back(link)
            return
        task = asyncio.get_running_loop().create_task(self._mend(link))
        self._mending.add(task)
        task.add_done_callback(self._mending.discard)

    async def _mend(self, link: Link) -> None:
        try:
            async with asyncio.timeout(_MENDING):
                await link.clean()
        except BaseException as error:
            link.connection.terminate()
            if not isinstance(error, Exception):
                raise
        finally:
            self._put_back(link)

    def _put_back(self, link: Link) -> None:
        if not link.connection.is_closed():
            if self._closed:
                link.connection.terminate()
            elif not self._call_next(link):
                self._free.append(link)
            return
        self._count -= 1
        self._call_next(None)

    def _call_next(self, link: Link | None) -> bool:
        """Hand a connection (or, with None, the right to make one) to whoever has waited longest."""
        while self._line:
            _, turn = self._line.popleft()
            if not turn.done():
                turn.set_result(link)
                return True
        return False

    async def _stand_in_line(self) -> Link | None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Link | None] = loop.create_future()
        self._line.append((loop.time() + self.wait, turn))
        if self._timer is None:
            self._timer = loop.call_later(self.wait, self._send_home)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                handed = turn.result()  # it came too late for this one: it is the next one's
                if handed is not None:
                    self.give(handed)
                else:
                    self._call_next(None)
            raise

    def _send_home(self) -> None:
        """End the waits that took too long, and look again when the next one would."""
        self._timer = None
        loop = asyncio.get_running_loop()
        while self._line and self._line[0][0] <= loop.time():
            _, turn = self._line.popleft()
            if not turn.done():
                turn.set_exception(Refusal(Code.UNAVAILABLE, "The database is busy."))
        if self._line:
            self._timer = loop.call_at(self._line[0][0], self._send_home)

    async def close(self) -> None:
        """Close all that are free; those that are in use are closed when they are given back."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._call_next(None):
            pass
        await asyncio.gather(*self._mending, return_exceptions=True)
        for link in self._free:
            try:
                await link.connection.close(timeout=_MENDING)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                link.connection.terminate()
        self._free.clear()
