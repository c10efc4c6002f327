"""A real nginx for tests, in front of a service, from its readiness to its end.

    with nginx(config, tmp_path) as front:           # `config` is what would stand in its http block
        answer = front.get("/articles")

`LISTEN` in the configuration is the address that it is given, and `FOLDER` a directory of its own. It listens on a socket
that is open before it starts, so there is no moment at which a client could come too early, and no port that another
process could take. Where there is no nginx, a test that needs it is skipped, unless `NGINX=required` says that there
must be one, as CI does.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.running import PATIENCE, ROOT, Client, stop

_MAIN = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log notice;
events {{ worker_connections 512; }}
http {{
    log_format asked '$request_method $uri $status $upstream_status $upstream_cache_status';
    access_log {folder}/access.log asked;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{config}
}}
"""


@dataclass(frozen=True)
class Front(Client):
    """nginx, and a client of it."""

    folder: Path = Path()

    @property
    def passed_on(self) -> int:
        """How many requests it has passed on to the service by now."""
        lines = (self.folder / "access.log").read_text().splitlines()
        return sum(line.split()[3] != "-" for line in lines)


def snippet(upstream: str) -> str:
    """What docs/reference/caching.md shows to whoever runs nginx, for the service at an address."""
    found: str
    (found,) = re.findall(
        r"```nginx\n(.+?)```", (ROOT / "docs" / "reference" / "caching.md").read_text("utf-8"), re.DOTALL
    )
    for shown, real in (
        ("/var/cache/nginx/diptych", "FOLDER/cache"),
        ("listen 80;", "listen LISTEN;"),
        ("http://127.0.0.1:8000", upstream),
    ):
        assert found.count(shown) == 1, shown
        found = found.replace(shown, real)
    return found


def plain(upstream: str) -> str:
    """The same by someone who does not know that requests with a token need no cache."""
    config, shown = snippet(upstream), "proxy_cache $diptych_cache;"
    assert config.count(shown) == 1
    return config.replace(shown, "proxy_cache diptych;")


@contextmanager
def nginx(config: str, folder: Path) -> Iterator[Front]:
    """nginx with this configuration."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        assert os.environ.get("NGINX") != "required", "there must be an nginx, and there is none"
        pytest.skip("there is no nginx on this machine")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        user = "user root;" if os.geteuid() == 0 else ""  # else its worker may not write into our folder
        text = config.replace("LISTEN", address).replace("FOLDER", str(folder))
        (folder / "nginx.conf").write_text(_MAIN.format(user=user, folder=folder, config=text))
        inherited = {**os.environ, "NGINX": f"{listener.fileno()};"}  # nginx's own variable, as in its live upgrades
        process = subprocess.Popen(
            [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")],
            env=inherited,
            pass_fds=[listener.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        yield Front(f"http://{address}", folder=folder)
    finally:
        stop(process)
        said = process.communicate(timeout=PATIENCE)[0]
    log = (folder / "error.log").read_text()
    assert not re.search(r"\[(warn|error|crit|alert|emerg)\]", said + log), said + log
