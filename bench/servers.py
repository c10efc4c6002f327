"""The servers under test: each its own process on a loopback port, started, awaited, measured, stopped.

Who they are, and how each is started, is in `contenders.py`. What a server writes goes to `bench/.data/<name>.log`, and
its end is told if it does not come up.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.cases import ROLE, VIEWER, Request
from bench.contenders import command, environment, header_of
from bench.home import DATA
from bench.store import Store

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 60.0
STOP_SECONDS = 10.0
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGESIZE")

# Stands in for the token where the service, which makes it, is left out: the parser reads as many bytes.
NO_TOKEN = "x" * 600


class BenchError(Exception):
    """Said in one sentence, without a traceback."""


@dataclass
class Server:
    """A running server. `cursors` holds for a table what this server calls the place after a row."""

    name: str
    port: int
    pid: int
    token: str
    header: str = "Authorization"
    cursors: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def headers(self, request: Request) -> dict[str, str]:
        """The headers of a request, the same for all servers."""
        common = {self.header: f"Bearer {self.token}"} if self.token else {}
        common["Accept"] = "application/json"
        return common if request.body is None else {**common, "Content-Type": "application/json"}

    def cpu_seconds(self) -> float:
        """User and system time so far, children included."""
        return tree_cpu_seconds(self.pid)

    def megabytes(self) -> float:
        """Memory that is resident, children included."""
        return sum(_resident(pid) for pid in _tree(self.pid)) / 1e6

    def ask(self, request: Request) -> tuple[int, bytes]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            body = request.body.encode() if request.body is not None else None
            connection.request(request.method, request.path, body, self.headers(request))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def service_token(store: Store) -> str:
    """A token of the viewer for a day, signed with the key of this database."""
    call = [sys.executable, "-m", "diptych", "token", "--database", store.url]
    call += ["--role", ROLE, "--user", VIEWER, "--ttl", "86400"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the service made no token: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def started(name: str, store: Store, token: str, options: Sequence[str] = ()) -> Iterator[Server]:
    """A server from its readiness to its end; `options` are more of its command line."""
    port = _free_port()
    log = DATA / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(name, store, port, options),
            cwd=ROOT,
            env={**os.environ, **environment(name)},
            stdout=output,
            stderr=output,
        )
    try:
        server = Server(name, port, process.pid, token, header_of(name))
        _await_ready(server, process, log)
        yield server
    finally:
        _stop(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_ready(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ready is who answers at all, unless it says itself that it is not (503)."""
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise BenchError(f"{server.name} ended at its start:\n{_tail(log)}")
        try:
            status, _ = server.ask(Request("GET", "/health/ready"))
            if status != http.client.SERVICE_UNAVAILABLE:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise BenchError(f"{server.name} was not ready after {READY_SECONDS:.0f} s:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tree_cpu_seconds(root: int) -> float:
    """User and system time of a process and of all below it, also of those that ended, from /proc."""
    return sum(_tree(root).values()) / TICKS


def _tree(root: int) -> dict[int, int]:
    """A process and all below it, each with its ticks of CPU."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(entry)):
            pid = int(entry.name)
            parents[pid], used[pid] = int(fields[1]), sum(int(ticks) for ticks in fields[11:15])
    members = {root}
    while more := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= more
    return {pid: used.get(pid, 0) for pid in members}


def _resident(pid: int) -> int:
    """Bytes; zero if it just ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _stat(entry: Path) -> list[str] | None:
    """The fields of /proc/<pid>/stat behind the name, which may hold anything; None if it just ended."""
    try:
        return (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
