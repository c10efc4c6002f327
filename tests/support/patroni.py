"""Patroni on this machine: an etcd, and servers that it makes primary or standby of each other, by the recipe of `deploy/`.

    with patroni(postgres, servers=3) as cluster:
        cluster.kill_leader()                # its PostgreSQL and its agent; another one becomes the leader
        cluster.mend()                       # what was killed is started again, and follows

Only addresses and folders differ from the recipe. Every process has an address of 127.0.0.1 and is ended by its pid.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml

from tests.support.cluster import kill_server
from tests.support.running import PATIENCE, ROOT, Postgres, free_port, scratch

RECIPE = ROOT / "deploy" / "patroni" / "db1.yml"
_SUPERUSER = "postgres:change-me"
_STREAMING = ("running", "streaming")


class PatroniServer:
    """One server, with its agent."""

    def __init__(self, name: str, folder: Path, etcd: int, postgres: Postgres) -> None:
        self.name = name
        self.port = free_port()
        self.folder = folder / name
        self._user = postgres._server.system_user
        self._config = folder / f"{name}.yml"
        self._log = folder / f"{name}.log"
        self._api = free_port()
        self._agent: subprocess.Popen[bytes] | None = None
        self._config.write_text(yaml.safe_dump(self._adapted(etcd, Path(postgres._server.bin_path))))

    def _adapted(self, etcd: int, programs: Path) -> dict[str, Any]:
        """The recipe, with the addresses and folders of this server."""
        text = RECIPE.read_text()
        for old, new in (
            ("name: db1", f"name: {self.name}"),
            ("0.0.0.0:8008", f"127.0.0.1:{self._api}"),
            ("db1:8008", f"127.0.0.1:{self._api}"),
            ("etcd1:2379, etcd2:2379, etcd3:2379", f"127.0.0.1:{etcd}"),
            ("0.0.0.0:5432", f"127.0.0.1:{self.port}"),
            ("db1:5432", f"127.0.0.1:{self.port}"),
            ("/var/lib/postgresql/18/tasks", str(self.folder)),
            ("/usr/lib/postgresql/18/bin", str(programs)),
        ):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        config: dict[str, Any] = yaml.safe_load(text)
        leaves_nothing = {"unix_socket_directories": "", "dynamic_shared_memory_type": "mmap"}
        config["postgresql"]["parameters"] = leaves_nothing
        config["postgresql"]["pgpass"] = f"{self.folder}.pgpass"
        return config

    def start(self) -> None:
        program = shutil.which("patroni")
        assert program is not None
        with self._log.open("ab") as log:
            self._agent = subprocess.Popen(
                [program, str(self._config)], user=self._user, cwd="/", stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """End the agent and all processes of the server as a power failure would."""
        if self._agent is not None:
            self._agent.kill()
            self._agent.wait(PATIENCE)
            self._agent = None
        kill_server(self.folder)

    def roles(self) -> list[tuple[str, str]]:
        """The role and the state of each server, as its agent sees them; empty while it does not answer."""
        with (
            suppress(OSError, ValueError),
            urllib.request.urlopen(f"http://127.0.0.1:{self._api}/cluster", None, 5) as sent,
        ):
            return sorted((each["role"], each["state"]) for each in json.load(sent)["members"])
        return []

    def is_leader(self) -> bool:
        with suppress(OSError):
            return bool(urllib.request.urlopen(f"http://127.0.0.1:{self._api}/primary", None, 5).status == 200)
        return False

    def said(self) -> str:
        return self._log.read_text()[-4000:] if self._log.exists() else ""


class Patroni:
    """All servers of one cluster."""

    def __init__(self, folder: Path, postgres: Postgres, servers: int) -> None:
        self._folder = folder
        self._killed: PatroniServer | None = None
        client, peer = free_port(), free_port()
        self._etcd = _etcd(folder, client, peer)
        self.servers = [PatroniServer(f"db{number + 1}", folder, client, postgres) for number in range(servers)]

    def start(self) -> None:
        for server in self.servers:
            server.start()
            if server is self.servers[0]:
                self._wait(lambda: self.leader() is not None, "nobody became the leader")
        self.mend()

    def url(self, user: str, database: str) -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"postgresql://{user}@{hosts}/{database}?target_session_attrs=read-write"

    def execute(self, *statements: str) -> None:
        """Run statements on the primary."""

        async def work() -> None:
            connection = await asyncpg.connect(self.url(_SUPERUSER, "postgres"))
            try:
                for sql in statements:
                    await connection.execute(sql)
            finally:
                await connection.close()

        asyncio.run(work())

    def leader(self) -> PatroniServer | None:
        return next((server for server in self.servers if server is not self._killed and server.is_leader()), None)

    def kill_leader(self) -> float:
        """Gives the seconds until another server is the leader."""
        self._killed = self.leader()
        assert self._killed is not None, "there is no leader"
        self._killed.kill()
        begun = time.monotonic()
        self._wait(lambda: self.leader() is not None, "nobody became the leader")
        return time.monotonic() - begun

    def mend(self) -> None:
        """Start what was killed, and wait until all follow, one of them in step."""
        if self._killed is not None:
            self._killed.start()
            self._killed = None
        wanted = ["leader", *["replica"] * (len(self.servers) - 2), "sync_standby"]
        self._wait(lambda: any(self._is_whole(server.roles(), wanted) for server in self.servers), "not all follow")

    def _is_whole(self, roles: list[tuple[str, str]], wanted: list[str]) -> bool:
        return [role for role, _ in roles] == wanted and all(state in _STREAMING for _, state in roles)

    def _wait(self, holds: Callable[[], bool], why: str) -> None:
        until = time.monotonic() + PATIENCE
        while not holds():
            said = "\n".join(f"{server.name}: {server.said()}" for server in self.servers)
            assert time.monotonic() < until, f"{why}\n{said}"
            time.sleep(0.1)

    def stop(self) -> None:
        for server in self.servers:
            server.kill()
        self._etcd.kill()
        self._etcd.wait(PATIENCE)


def _etcd(folder: Path, client: int, peer: int) -> subprocess.Popen[bytes]:
    """An etcd of one server."""
    mine, theirs = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    options = {
        "--name": "etcd1",
        "--data-dir": str(folder / "etcd"),
        "--listen-client-urls": mine,
        "--advertise-client-urls": mine,
        "--listen-peer-urls": theirs,
        "--initial-advertise-peer-urls": theirs,
        "--initial-cluster": f"etcd1={theirs}",
    }
    program = shutil.which("etcd")
    assert program is not None
    command = [program, *(part for option in options.items() for part in option)]
    allowed = {**os.environ, "ETCD_UNSUPPORTED_ARCH": {"aarch64": "arm64"}.get(os.uname().machine, "")}
    with (folder / "etcd.log").open("wb") as log:
        return subprocess.Popen(command, env=allowed, stdout=log, stderr=log, start_new_session=True)


@contextmanager
def patroni(postgres: Postgres, servers: int) -> Iterator[Patroni]:
    """A cluster of so many servers, from its start to its end; skipped where the programs are not there."""
    for program in ("etcd", "patroni"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    folder = Path(scratch("patroni-"))
    if postgres._server.system_user is not None:
        shutil.chown(folder, postgres._server.system_user)
    cluster = Patroni(folder, postgres, servers)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
