"""The connection pool of PostgreSQL, last in, first out.

There is no reset between two requests: a read leaves nothing behind. A caller acquires a permit first
(`fair/semaphore.py`); with it, a connection is free or can be made.

A connection can be returned in any state, also when its task was cancelled in the middle of a statement. One that is
not clean (a statement is being cancelled, a transaction is open, code of a model used it) is reset in the background
first, and dropped if that takes too long. So a connection from the pool is always clean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg

from diptych.db.postgres.link import Link
from diptych.db.postgres.sessions import PostgresConnection
from diptych.db.write_health import Reason, WriteHealth
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.fair.eager import in_task
from diptych.fair.semaphore import WAITED, FairSemaphore

_PATIENCE, _FIRST_PATIENCE = 0.8, 2.0
"""Seconds for which a caller waits until a connection is made, of a server that is known to be unreachable or not;
after that it is made for the next caller. It waits for longer while others get answers: the server is only slow."""
_ALIVE = 1.0
"""Seconds after an answer for which the server is taken to be there."""
_MOMENT = 0.2
"""Seconds for which others wait for the one who tries whether the server is there again."""
_MENDING = 3.0
"""Seconds after which a connection that is not clean is dropped."""

_AWAY = "The database cannot answer now."


def reason_of(error: BaseException | None) -> Reason:
    """Why the database accepts no changes, if that is what an error says."""
    if isinstance(error, asyncpg.DiskFullError):
        return "full"
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return "read-only"
    return "failing" if isinstance(error, asyncpg.PostgresSystemError) else ""


class Pool:
    """At most `size` connections, made on demand; `waiting` callers may wait, for `wait` seconds each."""

    acts = False
    """Is it recorded who makes changes?"""

    def __init__(
        self,
        connect: Callable[[], Awaitable[PostgresConnection]],
        size: int,
        wait: float,
        waiting: int = 1_000,
        settings: str | None = "",
    ) -> None:
        self.size = size
        self.most_waiting = waiting
        self.semaphore: FairSemaphore[Link] = FairSemaphore(size, waiting, wait, unclaimed=self._keep)
        self.health = WriteHealth(reason_of)
        self._connect = connect
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._free: list[Link] = []
        self._mending: set[asyncio.Task[None]] = set()
        self._trying: set[asyncio.Task[PostgresConnection]] = set()
        """Connections that are being made."""
        self._making: set[asyncio.Task[PostgresConnection]] = set()
        """Those of them for which nobody waits."""
        self.is_unreachable = False
        """Did the last attempt to connect fail, or take too long? Then one caller at a time tries again."""
        self.answered = 0.0
        """When a connection was last returned, by the loop's clock."""
        self._closed = False
        self._links: list[Link] = []
        """All connections, and some that were closed."""
        self._aside: list[Link] = []
        """Those that were free when the server was found to hang."""
        self._stalled: asyncio.Future[None] = self._loop.create_future()
        """Done when the server was found to hang."""

    def add(self, connection: PostgresConnection) -> None:
        """Take over a connection that was made elsewhere."""
        self._free.append(self._link(connection))

    def _link(self, connection: PostgresConnection) -> Link:
        if len(self._links) > 2 * self.size:
            self._links = [link for link in self._links if not link.connection.is_closed()]
        link = Link(connection, self._settings)
        self._links.append(link)
        return link

    @property
    def _is_connected(self) -> bool:
        """Is there any connection, free or in use?"""
        return any(not link.connection.is_closed() for link in self._links)

    @property
    def is_stalled(self) -> bool:
        """Does the server hang? Then all callers are refused."""
        return self._stalled.done()

    @property
    def is_busy(self) -> bool:
        """Does anyone wait for an answer?"""
        return self.semaphore.free < self.size

    def stall(self) -> None:
        """Give up all reads, and refuse all that wait or come, until `go_on`."""
        self._stalled.set_result(None)
        self._free, self._aside = [], self._free
        for link in self._links:
            if link.reads:
                link.connection.terminate()
        self.semaphore.refuse_waiters(_AWAY)

    def go_on(self, run_of_server: str) -> None:
        """Use the connections again. Those to another run of the server than this one, if there is one, are ended."""
        if run_of_server:
            for link in self._links:
                if link.connection.run_of_server != run_of_server:
                    link.connection.terminate()
        self._free += self._aside
        self._aside = []
        if self._stalled.done():
            self._stalled = self._loop.create_future()

    @property
    def idle(self) -> int:
        """Connections that are free, or that could be made."""
        return self.semaphore.free

    def take_nowait(self) -> Link | None:
        """A free connection, if there is one and a permit."""
        if not self._free or self._closed or not self.semaphore.acquire_nowait(caller := CALLER.get()):
            return None
        link = self._free_link(caller)
        if link is None:
            self.semaphore.release(caller)
        return link

    async def take(self) -> Link:
        """Wait for a permit, and return the connection that came with it, a free one or a new one."""
        self._check()
        caller = CALLER.get()
        if self.semaphore.acquire_nowait(caller):
            return await self.claim(caller, None)
        self._check_queue()
        return await self.claim(caller, await self.semaphore.acquire(caller))

    def queue(self, caller: str) -> asyncio.Future[Link | None]:
        """Wait for a permit, which is to be claimed (`claim`) or forsaken (`FairSemaphore.forsake`)."""
        self._check()
        self._check_queue()
        return self.semaphore.enqueue(caller)

    def _check(self) -> None:
        if self._closed:
            raise Refusal(Code.UNAVAILABLE, "The database is closed.")
        if self.is_stalled:
            raise Refusal(Code.UNAVAILABLE, _AWAY)

    def _check_queue(self) -> None:
        if self.is_unreachable and not self._is_connected:
            raise Refusal(Code.UNAVAILABLE, _AWAY)

    async def claim(self, caller: str, link: Link | None) -> Link:
        """The connection for a permit: the one that came with it, a free one or a new one."""
        if link is None or not link.protocol.is_connected():
            return self._free_link(caller) or await self._new(caller)
        if self.is_stalled:  # it was found to hang meanwhile
            self.give(link)
            raise Refusal(Code.UNAVAILABLE, _AWAY)
        return link

    def pass_on(self, caller: str, link: Link | None) -> None:
        """Release a permit that is not used, with the connection that came with it."""
        if not self.semaphore.release(caller, 0.0, link) and link is not None:
            self._keep(link)

    def _keep(self, link: Link) -> None:
        """Take back a connection that was handed to a caller who was cancelled."""
        if self._closed:
            link.connection.terminate()
        else:
            self._free.append(link)

    def _free_link(self, caller: str) -> Link | None:
        while self._free:
            link = self._free.pop()
            if link.protocol.is_connected():
                link.caller = caller
                link.since = self._loop.time()
                return link
        return None

    async def _new(self, caller: str) -> Link:
        try:
            await in_task()  # asyncpg.connect() has a timeout
            link = self._link(await self._make())
        except BaseException as error:
            self.semaphore.release(caller)
            if isinstance(error, asyncpg.PostgresError):  # it takes no connections now
                raise Refusal(Code.UNAVAILABLE, _AWAY) from error
            raise
        link.caller = caller
        link.since = self._loop.time()
        return link

    async def _make(self) -> PostgresConnection:
        """A new connection. Nobody waits long for a server that does not answer: the attempt goes on without its
        caller, and while it does, others are refused after a moment."""
        trying = [attempt for attempt in self._trying if not attempt.done()]
        if trying and self.is_unreachable:
            done, _ = await asyncio.wait(trying, timeout=_MOMENT, return_when=asyncio.FIRST_COMPLETED)
            if self.is_unreachable:
                for attempt in done:
                    if not attempt.cancelled():
                        attempt.result()  # it fails for this caller as it did for the other
                raise Refusal(Code.UNAVAILABLE, _AWAY)
        making = self._making.pop() if self._making else self._try()
        begun, is_made = self._loop.time(), False
        try:
            patience = _PATIENCE if self.is_unreachable else _FIRST_PATIENCE
            either = (making, self._stalled)
            await asyncio.wait(either, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            while not making.done() and not self.is_stalled and self._loop.time() - self.answered < _ALIVE:
                await asyncio.wait(either, timeout=_ALIVE, return_when=asyncio.FIRST_COMPLETED)
            is_made = making.done()
        finally:
            WAITED.set(WAITED.get() + self._loop.time() - begun)  # no caller is charged for it
            if not is_made:  # it takes too long, or its caller was cancelled: the next one gets it
                self._making.add(making)
                making.add_done_callback(self._made)
        if is_made:
            return making.result()
        self.is_unreachable = True
        raise Refusal(Code.UNAVAILABLE, _AWAY)

    def _try(self) -> asyncio.Task[PostgresConnection]:
        task = self._loop.create_task(self._connect_noted())
        self._trying.add(task)
        task.add_done_callback(self._trying.discard)
        return task

    async def _connect_noted(self) -> PostgresConnection:
        try:
            connection = await self._connect()
        except BaseException:
            self.is_unreachable = True
            if not self._is_connected:  # there is nothing to wait for
                self.semaphore.refuse_waiters(_AWAY)
            raise
        self.is_unreachable = False
        return connection

    def _made(self, making: asyncio.Task[PostgresConnection]) -> None:
        """Keep a connection for which nobody waits any more."""
        if making not in self._making:  # someone waits for it again
            return
        self._making.discard(making)
        if making.cancelled() or making.exception() is not None:
            return
        if self._closed or len(self._free) >= self.size:
            making.result().terminate()
        else:
            self.add(making.result())

    def give(self, link: Link) -> None:
        """Return a connection to the pool, in whatever state; a broken one makes room for a new one."""
        link.used = True
        protocol = link.protocol
        if self._closed or not protocol.is_connected():
            self._put_back(link)
            return
        # a transaction may still begin while a statement is being cancelled
        if not (link.foreign or protocol._is_cancelling() or protocol.is_in_transaction()):
            self.answered = now = self._loop.time()
            since, link.since = link.since, now
            if not self.semaphore.release(link.caller, now - since, link):
                self._free.append(link)
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
        if self._closed:
            link.connection.terminate()
        elif not link.connection.is_closed():
            self._free.append(link)
        self.semaphore.release(link.caller, self._loop.time() - link.since)

    def terminate_free(self) -> None:
        """Cut the free connections, without a word to the server."""
        for link in self._free:
            link.connection.terminate()

    async def close(self) -> None:
        """Close the free connections; those in use are closed when they are returned."""
        self._closed = True
        self.semaphore.close()
        for making in self._making:
            making.cancel()
        await asyncio.gather(*self._mending, *self._making, return_exceptions=True)
        for link in (*self._free, *self._aside):
            try:
                await link.connection.close(timeout=_MENDING)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                link.connection.terminate()
        self._free.clear()
