"""The settings of every session of PostgreSQL: set after connecting, or verified where a pooler shares sessions.

They are no start-up parameters, since PgBouncer refuses those. In pool mode `session` each connection sets them once.
In pool mode `transaction` a pooler gives every transaction any of its sessions, so nothing can be set once: the role
must have the settings, and a start that finds others is refused. Prepared statements must be tracked by the pooler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import asyncpg

from diptych.errors import StartError
from diptych.fair.backoff import Backoff

LOCK_TIMEOUT = 2_000
"""Milliseconds for which a statement waits for a lock."""
PoolMode = Literal["session", "transaction"]
RUN_OF_SERVER = (
    "pg_postmaster_start_time()::text || ' ' || coalesce((SELECT stats_reset::text FROM pg_stat_bgwriter), '')"
)
"""An expression that is another one after a start, and after a crash, which resets statistics: ids of processes and of
transactions may be used again then."""
_SAME = {"Etc/UTC": "UTC"}
_FOUND = "SELECT name, setting FROM pg_settings WHERE name = ANY ($1::text[])"
_ENDED = (
    asyncpg.AdminShutdownError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""Errors of a new connection whose backend is terminated while its session is set up."""
_CONNECTS = 8
"""Attempts to connect, if that happens. A server that accepts no connections is not asked again."""
_BACKOFF = Backoff(first=0.02, factor=2.0, longest=0.2)
"""Before the third attempt and those after it."""
_NEXT_HOST = 0.2
"""Seconds until the next host is tried, while one has not answered."""
_TIMEOUT = 5.0
"""Seconds until a server that does not answer is given up."""
_TRACKED = "SELECT pg_backend_pid(), EXISTS (SELECT FROM pg_prepared_statements WHERE name = $1::text)"


class PostgresConnection(asyncpg.Connection):
    """A connection that knows the backend of its session."""

    process: int = 0
    """Its process id, as the server itself gives it: a pooler makes up another one. 0 if it changes."""
    run_of_server: str = ""
    """What identifies the server, from one start or crash to the next (`RUN_OF_SERVER`)."""


def session_settings(timeout: float) -> dict[str, str]:
    """The settings that every session must have, `timeout` is that of a statement in seconds."""
    return {
        "jit": "off",
        "statement_timeout": str(int(timeout * 1000)),
        "lock_timeout": str(LOCK_TIMEOUT),
        "idle_in_transaction_session_timeout": "10000",
        "TimeZone": "UTC",
        "standard_conforming_strings": "on",
        "default_transaction_isolation": "read committed",
    }


def set_all(settings: dict[str, str]) -> str:
    """The statements that set them."""
    return "; ".join(f"SET {name} = '{value}'" for name, value in settings.items())


class Connector:
    """Makes the connections to one database, also through a pooler."""

    def __init__(self, url: str, timeout: float, mode: PoolMode = "session", direct: str = "") -> None:
        self.url = url
        self.shares = mode == "transaction"
        """Does a pooler give every transaction any of its sessions?"""
        self.direct = direct or ("" if self.shares else url)
        """The address for sessions of one's own; "" if there is none."""
        self._timeout = timeout
        self._settings = session_settings(timeout)
        self._setting = set_all(self._settings)

    @property
    def set_up(self) -> str | None:
        """The statements that set up a session; None if sessions are shared."""
        return None if self.shares else self._setting

    def other(self, url: str) -> Connector:
        """A connector with the same settings for another server."""
        return Connector(url, self._timeout, "transaction" if self.shares else "session")

    async def connect(self) -> PostgresConnection:
        """A connection for requests."""
        return await _retry(lambda: self._connect(self.url, "diptych", shares=self.shares))

    async def connect_directly(self, name: str) -> PostgresConnection:
        """A connection with a session of its own."""
        if not self.direct:
            raise StartError(
                "This needs a session of its own: set direct_database to the address of PostgreSQL without the pooler."
            )
        return await _retry(lambda: self._connect(self.direct, name))

    async def check(self, connection: PostgresConnection) -> None:
        """Refuse a pooler that does not fit the pool mode."""
        if self.shares:
            await _check_prepared_statements(connection)
            await _check_settings(connection, self._settings)
        elif connection.process != connection.get_server_pid():
            with suppress(TimeoutError):  # its sessions are all in use
                other = await self.connect()
                try:
                    await _check_own_session(connection, other)
                finally:
                    await other.close()

    async def _connect(self, url: str, name: str, *, shares: bool = False) -> PostgresConnection:
        """Connect to the first of its hosts that is fit; one that does not answer delays the next for a moment only."""
        hosts = hosts_of(url)
        if len(hosts) < 2:
            return await self._connect_host(url, name, shares=shares)
        return await first_of([partial(self._connect_host, url, name, shares=shares, **host) for host in hosts])

    async def _connect_host(self, url: str, name: str, *, shares: bool, **host: Any) -> PostgresConnection:
        # without its own cache, asyncpg has the server parse a prepared statement again for every run
        connection: PostgresConnection = await asyncpg.connect(
            url,
            **host,
            server_settings={"application_name": name},
            statement_cache_size=16,
            timeout=_TIMEOUT,
            connection_class=PostgresConnection,
        )
        try:
            if not shares:
                await connection.execute(self._setting, timeout=_TIMEOUT)
            ((process, run),) = await connection.fetch(f"SELECT pg_backend_pid(), {RUN_OF_SERVER}", timeout=_TIMEOUT)
            connection.process, connection.run_of_server = 0 if shares else process, run
        except BaseException:
            connection.terminate()
            raise
        return connection


def hosts_of(url: str) -> list[dict[str, Any]]:
    """The hosts of an address, each as arguments for `asyncpg.connect`."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    if "host" in query:
        names, ports = query["host"].split(","), query.get("port", "").split(",")
        ports = ports * len(names) if len(ports) == 1 else ports
        pairs = list(zip(names, ports, strict=False))
    else:
        pairs = [_host_and_port(host) for host in parts.netloc.rpartition("@")[2].split(",")]
    return [{"host": name, **({"port": int(port)} if port else {})} for name, port in pairs if name]


def _host_and_port(text: str) -> tuple[str, str]:
    """`[::1]:5432` and the like, taken apart."""
    name, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        name, port = text, ""
    return unquote(name).strip("[]"), port


async def first_of(attempts: Sequence[Callable[[], Awaitable[PostgresConnection]]]) -> PostgresConnection:
    """The first attempt that succeeds. Each begins when the one before it has failed, or has taken a moment."""
    running: set[asyncio.Task[PostgresConnection]] = set()
    error: BaseException | None = None
    left = list(attempts)
    try:
        while left or running:
            if left:
                running.add(asyncio.ensure_future(left.pop(0)()))
            done, running = await asyncio.wait(
                running, timeout=_NEXT_HOST if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                error = task.exception()
                if error is None:
                    for other in done - {task}:
                        _drop(other)
                    return task.result()
        assert error is not None
        raise error
    finally:
        for task in running:
            task.add_done_callback(_drop)
            task.cancel()


def _drop(task: asyncio.Future[PostgresConnection]) -> None:
    """Close a connection that came second."""
    if not task.cancelled() and task.exception() is None:
        task.result().terminate()


async def _retry(connect: Callable[[], Awaitable[PostgresConnection]]) -> PostgresConnection:
    """Connect; again, with backoff, if the backend is terminated while its session is set up."""
    for attempt in range(_CONNECTS - 1):
        try:
            return await connect()
        except asyncpg.TargetServerAttributeNotMatched:
            raise
        except _ENDED:
            if attempt:
                await asyncio.sleep(_BACKOFF.delay(attempt))
    return await connect()


async def _check_settings(connection: asyncpg.Connection, settings: dict[str, str]) -> None:
    """Refuse a role whose sessions have other settings; the message says what to run."""
    have: dict[str, str] = {name: value for name, value in await connection.fetch(_FOUND, list(settings))}
    wrong = {name for name, value in settings.items() if _SAME.get(have[name], have[name]) != value}
    if not wrong:
        return
    role = await connection.fetchval("SELECT quote_ident(session_user)")
    found = ", ".join(f"{name} is {have[name]} and must be {settings[name]}" for name in settings if name in wrong)
    orders = " ".join(f"ALTER ROLE {role} SET {name} = '{settings[name]}';" for name in settings if name in wrong)
    raise StartError(
        f'With pool_mode "transaction" the role must have the settings of its sessions: {found}. '
        f"Run {orders} Then have the pooler connect anew (RECONNECT in the console of PgBouncer)."
    )


async def _check_prepared_statements(connection: asyncpg.Connection) -> None:
    """Refuse a pooler that does not track prepared statements: it would run them in sessions that lack them.

    One that does renames them. Without a pooler, the server and the driver agree on the process id.
    """
    async with connection.transaction():
        statement = await connection.prepare("SELECT 'tracked'")
        ((process, is_verbatim),) = await connection.fetch(_TRACKED, statement.get_name())
    if is_verbatim and process != connection.get_server_pid():
        raise StartError(
            "The pooler in front of PostgreSQL does not track prepared statements. In transaction mode that needs "
            "PgBouncer 1.21 or newer, with max_prepared_statements above 0 (200, say)."
        )


async def _check_own_session(connection: PostgresConnection, other: PostgresConnection) -> None:
    """Refuse a pooler that gives two connections one session, since each sets up its own."""
    async with other.transaction():
        process = await other.fetchval("SELECT pg_backend_pid()")
    if process == connection.process:
        raise StartError(
            "The pooler in front of PostgreSQL gives a session to another connection after each transaction: "
            'set pool_mode = "transaction", or have it use session mode.'
        )
