"""A process that reads and changes one row without a pause, and prints how it was answered: `python -m …asker PORT TOKEN POST`.

It does nothing else, so what it measures is the service. It ends when its standard input does.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from typing import Any

THREADS = 4


class Asker:
    """One client, a connection for each request."""

    def __init__(self, port: int, token: str, post: str) -> None:
        self._port = port
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self._post = post
        self.statuses: dict[int, int] = {}
        self.refusals: list[tuple[float, str]] = []
        """Seconds, and what was said."""
        self.interrupted: list[tuple[float, str]] = []
        """The same of changes that came after one that was done: they may have been under way when the primary was lost."""
        self._is_refused = False
        self.in_doubt = 0
        self.noise: list[float] = []
        """Seconds of responses that need no database: how busy the machine is."""

    def run(self, over: threading.Event) -> None:
        while not over.wait(0.01):
            self._ask("GET", "/posts?first=3", None)
            self._ask("PATCH", f"/posts/{self._post}", b'{"body": "asked"}')
            self._ask("GET", "/health/live", None)

    def _ask(self, method: str, target: str, body: bytes | None) -> None:
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(method, target, body, self._headers)
            response = connection.getresponse()
            said = response.read()
        finally:
            connection.close()
        if target == "/health/live":
            self.noise.append(time.monotonic() - begun)
            return
        self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
        if b"not known" in said:  # its commit was interrupted, and it has looked for the outcome
            self.in_doubt += 1
        elif response.status == 503:
            was_under_way = method != "GET" and not self._is_refused
            (self.interrupted if was_under_way else self.refusals).append((time.monotonic() - begun, said.decode()))
        self._is_refused = response.status == 503


def main() -> None:
    askers = [Asker(int(sys.argv[1]), sys.argv[2], sys.argv[3]) for _ in range(THREADS)]
    over = threading.Event()
    threads = [threading.Thread(target=asker.run, args=(over,)) for asker in askers]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
    found: list[dict[str, Any]] = [
        {name: getattr(asker, name) for name in ("statuses", "refusals", "interrupted", "in_doubt", "noise")}
        for asker in askers
    ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
