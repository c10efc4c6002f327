"""PgBouncer in front of a PostgreSQL of the tests.

The program is the one on the path, or the one that `PGBOUNCER_BIN` names: transaction mode needs 1.21 or newer, which not
every system has.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.running import PATIENCE, free_port, stop

NEEDED = (1, 21)
"""The first version that tracks prepared statements."""
_INI = """
[databases]
* = host={host} port={port}{user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = {auth}
logfile = {folder}/log
"""


def program() -> str | None:
    """The newest PgBouncer there is, if any."""
    named = os.environ.get("PGBOUNCER_BIN")
    return named or shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


@lru_cache
def version(path: str) -> tuple[int, int]:
    """The version of a program."""
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said)
    assert found, said
    return int(found[1]), int(found[2])


def newer() -> str:
    """A program that tracks prepared statements; the test is skipped if there is none."""
    found = program()
    if found is None or version(found) < NEEDED:
        pytest.skip("there is no PgBouncer 1.21 or newer on this machine; PGBOUNCER_BIN can name one")
    return found


@contextmanager
def pgbouncer(database: str, path: str = "", user: str = "postgres", **settings: object) -> Iterator[str]:
    """PgBouncer in front of a server; gives the URL of the database behind it. Its own defaults hold, but for settings.

    Everyone is `user` behind it; without one, everyone is who they say.
    """
    path = path or program() or ""
    if not path:
        assert os.environ.get("PGBOUNCER") != "required", "there must be a PgBouncer, and there is none"
        pytest.skip("there is no PgBouncer on this machine")
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-"))  # where its user may look
    address = urlsplit(database)
    host, name = parse_qs(address.query)["host"][0], address.path.lstrip("/")
    port = free_port()
    how = {"user": f" user={user}", "auth": "any"} if user else {"user": "", "auth": "trust"}
    ini = _INI.format(host=host, port=address.port or 5432, listen=port, folder=folder, **how)
    (folder / "ini").write_text(ini + "".join(f"{key} = {value}\n" for key, value in settings.items()))
    owner = []
    if os.geteuid() == 0:  # it refuses to run as root: as the user of PostgreSQL
        owner = ["-u", Path(host).owner()]
        shutil.chown(folder, owner[1])
        shutil.chown(folder / "ini", owner[1])
    process = subprocess.Popen(
        [path, *owner, str(folder / "ini")], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(port)
        yield f"postgresql://postgres@127.0.0.1:{port}/{name}"
    finally:
        stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
