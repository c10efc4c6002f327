"""Real proxies in front of a service, with the configurations that the documentation shows."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fit.scenario import find_program
from tests.fit.tools import ALL
from tests.support.running import PATIENCE, ROOT, Client, free_port, stop

PAGE = ROOT / "docs" / "reference" / "proxies.md"
Command = Callable[[str, Path, str], list[str]]
"""The command line: of the program, a file with its configuration, and the address that it listens on."""


def shown(language: str, page: Path = PAGE) -> str:
    """The configuration that a page shows."""
    found = re.findall(rf"```{language}\n(.+?)```", page.read_text("utf-8"), re.DOTALL)
    assert len(found) == 1, language
    return str(found[0])


@contextmanager
def proxy(name: str, config: str, service: Client, folder: Path, command: Command) -> Iterator[Client]:
    """A proxy from its readiness to its end: 8080 in its configuration is its port, and 8000 that of the service."""
    program = find_program(name)
    if program is None:
        assert not ALL or os.environ.get("FIT_PROXIES") != "required", f"there is no {name}"
        pytest.skip(f"there is no {name} on this machine")
    port = free_port()
    text = config.replace("8080", str(port)).replace("8000", str(service.port))
    (folder / "config").write_text(text, "utf-8")
    with open(folder / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command(program, folder / "config", f"127.0.0.1:{port}"),
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            _wait(port, process, folder / "log")
            yield Client(f"http://127.0.0.1:{port}")
        finally:
            stop(process)


def _wait(port: int, process: subprocess.Popen[str], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None and time.monotonic() < deadline, log.read_text("utf-8")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
