"""Whatever can pile up has an end; past it, a request is told at once when to come back."""

from __future__ import annotations

import http.client
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.proof.long_running.parts import tokens
from tests.support.running import Client, NewDatabase, Service, served
from tests.system.overload.test_flood import Caller, callers
from tests.system.overload.town import fill, slow, user
from tests.system.wire.raw import PATIENCE, SIZED, Told, connect, drain, exchange, get, post, told

STATEMENT = 0.5
"""Seconds that a statement may take."""


@pytest.fixture(scope="module")
def small(new_database: NewDatabase) -> Iterator[Service]:
    """A service with little room."""
    options = ("--max-waiting=4", "--max-requests=6", "--pool-size=4", "--request-timeout=3")
    with served(fill(new_database()), *options, f"--statement-timeout={STATEMENT}") as service:
        yield service


def answers(connections: list[socket.socket]) -> list[Told]:
    return [each for connection in connections for each in told(drain(connection))]


def ask(stack: ExitStack, client: Client, target: str) -> socket.socket:
    connection = stack.enter_context(connect(client))
    connection.sendall(get(target, f"Authorization: Bearer {client.token}"))
    return connection


def asked_at_once(stack: ExitStack, client: Client, number: int) -> list[socket.socket]:
    """Slow requests that are all under way before the first of them can end; on a busy machine, it takes some tries."""
    for _ in range(10):
        begun = time.monotonic()
        found = [ask(stack, client, slow()) for _ in range(number)]
        assert exchange(client, get("/health/live"))[0].status == 200  # what was sent before is read by now
        if time.monotonic() - begun < STATEMENT / 2:
            return found
        answers(found)
    raise AssertionError("the machine is too busy to send requests at once")


def test_the_line_for_the_database_has_an_end(small: Service) -> None:
    """Three of one caller run and two wait; the rest is refused at once, and others have their places still."""
    bad, good = callers(small)
    served = []
    for name in (1, 6, 7):  # on a busy machine it may take some tries, each by a caller without long statements before
        client = small.signed_in(tokens(small.database, (user(name), ()))[0])
        with ExitStack() as stack:
            found = answers(asked_at_once(stack, client, 11))
        count = Counter(each.status for each in found)
        assert count.total() == 11 and count[503] + count[504] == 11
        for each in found:
            if each.status == 503:
                assert (each.code, each.headers["retry-after"]) == ("UNAVAILABLE", "1")
        served.append(count[504])
        if served[-1] in (4, 5):  # the service itself may have had a place just then
            break
    assert served[-1] in (4, 5), served
    with ExitStack() as stack:
        under_way = asked_at_once(stack, bad, 8)
        assert ask_until(good, f"/users/{user(1)}") == 200
        assert ask_until(good, slow()) == 504
        assert {each.status for each in answers(under_way)} == {503, 504}
    with Caller(bad) as caller:  # nothing is left of it
        assert [caller.get("/users?first=1").status for _ in range(5)] == [200] * 5


def ask_until(client: Client, target: str) -> int:
    with Caller(client) as caller:
        return caller.get(target).status


def test_requests_under_way_have_an_end(small: Service) -> None:
    """In the style of the path; whoever asks how the service is, is told."""
    # callers who have asked for nothing yet: one that had long statements has one at a time
    bad, good = (small.signed_in(each) for each in tokens(small.database, (user(4), ()), (user(5), ())))
    with ExitStack() as stack:
        under_way = [ask(stack, each, slow()) for each in (bad, bad, bad, bad, bad, good)]
        deadline = time.monotonic() + PATIENCE
        while (found := exchange(small, post(SIZED))[0]).status != 503:
            assert time.monotonic() < deadline
        assert (found.code, found.headers["retry-after"]) == ("UNAVAILABLE", "1")
        rest, live, ready = (exchange(small, get(path))[0] for path in ("/users", "/health/live", "/health/ready"))
        assert (rest.status, rest.code) == (503, "UNAVAILABLE")
        assert rest.headers["content-type"] == "application/problem+json"
        assert (live.status, ready.status) == (200, 200)
        answers(under_way)
    assert small.get("/users").status == 200


def test_those_who_wait_for_a_body_keep_nobody_out(small: Service) -> None:
    with ExitStack() as stack:
        slowly = []
        for _ in range(60):
            connection = stack.enter_context(connect(small))
            connection.sendall(post("Content-Length: 100", close=False, body=b"{"))
            slowly.append(connection)
        assert small.get("/users").status == 200
        assert small.query("{ __typename }") == {"data": {"__typename": "Query"}}
    assert small.get("/users").status == 200


def test_connections_have_an_end(new_sqlite: NewDatabase) -> None:
    """One peer has three quarters of them, of which one that is idle makes room."""
    with served(new_sqlite(), "--max-connections=20", "--head-timeout=8") as service, ExitStack() as stack:
        busy = [stack.enter_context(connect(service)) for _ in range(15)]
        for each in busy:
            each.sendall(get("/users", close=False))
            assert each.recv(65_536).startswith(b"HTTP/1.1 200 ")
        connection = stack.enter_context(connect(service))
        (answer,) = told(drain(connection))
        assert (answer.status, answer.code, answer.headers["connection"]) == (503, "UNAVAILABLE", "close")
        assert answer.headers["retry-after"] == "1"
        busy.pop().close()
        deadline = time.monotonic() + PATIENCE
        while True:
            with Closing(service) as client:
                client.request("GET", "/health/live")
                if client.getresponse().status == 200:
                    break
            assert time.monotonic() < deadline
        for each in busy:
            each.sendall(get("/users", close=False))
            assert each.recv(65_536).startswith(b"HTTP/1.1 200 ")


class Closing(http.client.HTTPConnection):
    """A connection that is closed in the end."""

    def __init__(self, service: Service) -> None:
        super().__init__("127.0.0.1", service.port, timeout=PATIENCE)

    def __enter__(self) -> Closing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
