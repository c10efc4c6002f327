"""One caller follows more than its share; another follows one thing, and is told of it as if it were alone."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.contract.live.clients import EventStream, WebSocket
from tests.proof.long_running.crowd import share
from tests.proof.long_running.parts import tokens
from tests.support.running import Client, Service
from tests.system.overload.town import post, user

PER_SOCKET = 100
TITLES = "/posts/changes?fields=title"
CHEAP = "subscription($m: String!) { postChanged(where: {title: {eq: $m}}) { rowId } }"


def heavy(levels: int = 2) -> str:
    """A subscription whose filter looks at thousands of rows for each change, and holds for none of them."""
    deep = "{body: {contains: $m}}"
    for _ in range(levels):
        deep = f"{{author: {{posts: {{some: {{or: [{{title: {{contains: $m}}}}, {{comments: {{some: {deep}}}}}]}}}}}}}}"
    return f"subscription($m: String!) {{ postChanged(where: {deep}) {{ rowId }} }}"


@contextmanager
def subscribed(
    service: Service, bearer: str, number: int, document: str, mark: str = "zz"
) -> Iterator[list[WebSocket]]:
    """So many subscriptions of one caller, each with another value, on as few sockets as it takes."""
    sockets = [WebSocket(service.port, token=bearer) for _ in range(-(-number // PER_SOCKET))]
    try:
        for socket in sockets:
            socket.begin()
        for each in range(number):
            sockets[each // PER_SOCKET].subscribe(str(each), document, m=f"{mark}{each}")
        for socket in sockets:  # each of them begins with the cursor from which it holds, or with a refusal
            wanted = min(PER_SOCKET, number - sockets.index(socket) * PER_SOCKET)
            while wanted:
                message = socket.receive(pings=True)
                wanted -= message["type"] == "error" or len(message["payload"]["cursors"])
        yield sockets
    finally:
        for socket in sockets:
            socket.socket.close()


class Stage:
    """A caller who follows one thing, one who writes, and one who wants everything."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.bad, self.good, writes = tokens(service.database, *((user(each), ()) for each in (1, 2, 3)))
        self._writer = Client(service.url, writes)
        self._writes = 0

    def write(self) -> None:
        """Change a post of user 3."""
        self._writes += 1
        body = json.dumps({"title": f"t{self._writes}"}).encode()
        sent = {"content-type": "application/merge-patch+json"}
        answer = self._writer.request("PATCH", f"/posts/{post(3)}?fields=id", sent, body)
        assert answer.status == 200, answer.body

    def delays(self, number: int, pause: float = 0.0) -> list[float]:
        """How long after the answer to a change the one who follows it hears of it, in order."""
        found = []
        with EventStream(self.service.port, TITLES, token=self.good) as stream:
            assert stream.status == 200
            while "id" not in stream.next_event():
                pass
            for _ in range(number):
                self.write()
                answered = time.perf_counter()
                assert stream.change()["post"]["title"] == f"t{self._writes}"
                found.append(time.perf_counter() - answered)
                time.sleep(pause)
        return sorted(found)

    def log(self) -> float:
        """How long a page of the log takes."""
        begun = time.perf_counter()
        answer = Client(self.service.url, self.good).get("/posts/changes?first=5&fields=title")
        assert answer.status == 200, answer.body
        return time.perf_counter() - begun


@contextmanager
def stalls(service: Service) -> Iterator[list[float]]:
    """How long the process took to say that it lives, all the time."""
    found: list[float] = []
    over = threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        while not over.is_set():
            begun = time.perf_counter()
            connection.request("GET", "/health/live")
            assert connection.getresponse().read()
            found.append(time.perf_counter() - begun)
            time.sleep(0.002)
        connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def figures(**times: list[float]) -> str:
    """p50, p99 and the longest of some times, for people."""

    def shown(each: list[float]) -> str:
        each = sorted(each)
        return f"p50 {share(each, 0.5) * 1e3:.1f} p99 {share(each, 0.99) * 1e3:.1f} longest {each[-1] * 1e3:.1f} ms"

    return "; ".join(f"{name.replace('_', ' ')} {shown(each)}" for name, each in times.items())
