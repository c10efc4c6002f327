"""PostgreSQL servers that replicate: a primary, and standbys made with `pg_basebackup`.

    with cluster(postgres, standbys=2) as servers:
        primary, *standbys = servers
        standbys[0].delay(1.5)               # it replays a commit 1.5 seconds after it was made
        primary.kill(); standbys[0].promote()

Every server is a process of its own with an address of 127.0.0.1, ended by its pid.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.running import PATIENCE, Postgres, free_port, scratch

_CONF = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
fsync = off
max_connections = 100
shared_buffers = 32MB
autovacuum = off
hot_standby_feedback = on
wal_receiver_status_interval = 1s
wal_retrieve_retry_interval = 100ms
log_min_messages = fatal
dynamic_shared_memory_type = mmap
"""


class Server:
    """One server of a cluster."""

    def __init__(self, bin_path: Path, user: str | None, folder: Path, port: int = 0) -> None:
        self._bin = bin_path
        self._user = user
        self.folder = folder
        self.port = free_port(port)
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs to its end."""
        subprocess.run(
            [str(self._bin / program), *arguments], user=self._user, cwd="/", check=True, capture_output=True
        )

    def configure(self, text: str) -> None:
        with (self.folder / "postgresql.auto.conf").open("a") as file:
            file.write(text)

    def start(self) -> None:
        self._process = subprocess.Popen(
            [str(self._bin / "postgres"), "-D", str(self.folder)],
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.execute("SELECT 1")
                return
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                assert time.monotonic() < until and self._process.poll() is None, "a server did not start"
                time.sleep(0.05)

    def kill(self) -> None:
        """End it as a power failure would: it says nothing to anyone."""
        if self._process is not None:
            kill_server(self.folder)
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None

    def signal(self, number: int) -> None:
        """Send a signal to all its processes."""
        assert self._process is not None
        _signal(self._process.pid, number)

    def promote(self) -> None:
        """Make it a primary, and wait until it is one."""
        self.execute("SELECT pg_promote(true, 60)")

    def wait_for_standby(self, *, synchronous: bool) -> None:
        """Have commits wait for its standbys or not; one must be there."""
        self.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{'*' if synchronous else ''}'")
        self.execute("SELECT pg_reload_conf()")
        until = time.monotonic() + PATIENCE
        wanted = "sync" if synchronous else "async"
        while [row[0] for row in self.execute("SELECT sync_state FROM pg_stat_replication")] not in ([wanted], []):
            assert time.monotonic() < until, "no standby is in step"
            time.sleep(0.05)

    def delay(self, seconds: float) -> None:
        """Replay commits this much later than they were made."""
        self.execute(f"ALTER SYSTEM SET recovery_min_apply_delay = '{int(seconds * 1000)}ms'")
        self.execute("SELECT pg_reload_conf()")

    def execute(self, sql: str, database: str = "postgres") -> list[Any]:
        """Run one statement; gives its rows."""

        async def work() -> list[Any]:
            connection = await asyncpg.connect(self.url(database), timeout=10)
            try:
                return await connection.fetch(sql)
            finally:
                await connection.close()

        with asyncio.Runner() as runner:
            return runner.run(work())

    def standby(self, folder: Path, port: int = 0) -> Server:
        """A new standby of it, which runs."""
        other = Server(self._bin, self._user, folder, port)
        connection = f"host=127.0.0.1 port={self.port} user=postgres application_name={folder.name}"
        self.run("pg_basebackup", "-D", str(folder), "-R", "-X", "stream", "-c", "fast", "-d", connection)
        other.configure(f"port = {other.port}\nsynchronous_standby_names = ''\n")
        other.start()
        return other


def kill_server(folder: Path) -> None:
    """End all processes of the server in a folder, and remove the shared memory that it can no longer remove itself."""
    try:
        lines = (folder / "postmaster.pid").read_text().splitlines()
        pid, memory = int(lines[0]), lines[6].split()
        if Path(f"/proc/{pid}/cwd").readlink() != folder:  # it has ended before, and the pid is another's now
            return
        _signal(pid, signal.SIGSTOP)
        _signal(pid, signal.SIGKILL)
        _wait_for_end(pid)
    except (FileNotFoundError, ProcessLookupError, IndexError):  # it runs no more, or not yet
        return
    subprocess.run(["ipcrm", "-m", memory[1]], check=False, capture_output=True)


def _wait_for_end(pid: int) -> None:
    """Wait until a process is gone, or has only to be waited for."""
    until = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)


def _signal(parent: int, number: int) -> None:
    """Send a signal to a server and all its processes."""
    os.kill(parent, number if number != signal.SIGKILL else signal.SIGSTOP)  # it starts no more of them
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with suppress(ProcessLookupError):
            os.kill(int(child), number)
    os.kill(parent, number)


def new_primary(postgres: Postgres, folder: Path) -> Server:
    """A new, empty server, which runs."""
    own = postgres._server
    if own.system_user is not None:
        shutil.chown(folder, own.system_user)
    server = Server(own.bin_path, own.system_user, folder / "primary")
    server.run("initdb", "-D", str(server.folder), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N")
    server.configure(_CONF.format(port=server.port))
    server.start()
    return server


@contextmanager
def cluster(postgres: Postgres, standbys: int) -> Iterator[list[Server]]:
    """A primary and so many standbys."""
    folder = Path(scratch("cluster-"))
    servers: list[Server] = []
    try:
        servers.append(new_primary(postgres, folder))
        for number in range(standbys):
            servers.append(servers[0].standby(folder / f"standby{number}"))
        yield servers
    finally:
        for server in servers:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)
