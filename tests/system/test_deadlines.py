"""A request has an end: it is answered in time or refused, and a client that goes away sets free what it held.

Real servers and real sockets; what makes a statement slow is a lock that someone else holds.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import apsw
import asyncpg
import pytest

from diptych import Diptych
from diptych.config import Config
from diptych.demo.model import model
from diptych.serve.http.deadlines import Deadlines
from tests.support.machine import Machine
from tests.support.running import NewDatabase, Postgres, Service, served

LONG = 30.0
"""What a statement may take in these tests: whatever ends sooner was not ended by that."""
Locked = Callable[[str], AbstractContextManager[None]]


@contextmanager
def sqlite_locked(database: str) -> Iterator[None]:
    """Someone else holds the write lock."""
    other = apsw.Connection(database.removeprefix("sqlite:///"))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def postgres_locked(database: str) -> Iterator[None]:
    """Someone else holds a lock that not even readers get past."""
    begun, end = threading.Event(), threading.Event()

    async def hold() -> None:
        other = await asyncpg.connect(database)
        try:
            await other.execute("BEGIN; LOCK TABLE users, posts IN ACCESS EXCLUSIVE MODE")
            begun.set()
            await asyncio.to_thread(end.wait)
        finally:
            await other.close()

    holder = threading.Thread(target=asyncio.run, args=(hold(),))
    holder.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        end.set()
        holder.join()


def locked(database: str) -> AbstractContextManager[None]:
    return sqlite_locked(database) if database.startswith("sqlite:") else postgres_locked(database)


def send(service: Service, raw: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=30)
    connection.sendall(raw)
    return connection


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def create(token: str, name: str) -> bytes:
    body = json.dumps({"name": name, "email": f"{name}@example.org"}).encode()
    head = f"POST /users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def status(connection: socket.socket) -> int:
    with connection:
        return int(connection.recv(65_536).split()[1])


def names(service: Service) -> list[str]:
    return sorted(row["name"] for row in service.get("/users?fields=name").json()["data"])


def waiting(postgres: Postgres, database: str) -> int:
    """How many connections of the service wait for a lock."""
    name = database.partition("?")[0].rpartition("/")[2]
    found = postgres.execute(
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND wait_event_type = 'Lock' "
        "AND application_name = 'diptych'"
    )
    return int(found[0][0])


def until(true: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.02)


# clients that go away


def test_a_client_that_goes_away_frees_its_connection(postgres: Postgres) -> None:
    database = postgres.create()
    with served(database, "--pool-size", "3", "--statement-timeout", "30", "--request-timeout", "30") as service:
        admin = service.token_of("admin")
        assert admin.post("/users", {"name": "Ann", "email": "ann@example.org"}).status == 201
        assert names(service) == ["Ann"]
        for requests in ([get("/users?first=1"), get("/posts")], [create(admin.token, "Bob"), get("/users")]):
            with postgres_locked(database):
                gone = [send(service, raw) for raw in requests]
                until(lambda: waiting(postgres, database) == 2)  # the pool has none for the same caller now
                for connection in gone:
                    connection.close()
                until(lambda: waiting(postgres, database) == 0, seconds=1.5)  # lock_timeout would take 2 s
                machine, begun = Machine(), time.monotonic()
                assert service.get("/health/ready").status == 200
                took = time.monotonic() - begun
                assert took < machine.limit(1)
            assert names(service) == ["Ann"]
        assert admin.post("/users", {"name": "Cid", "email": "cid@example.org"}).status == 201


def test_a_client_that_goes_away_leaves_the_line_of_the_writer(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with served(database, "--statement-timeout", "30", "--request-timeout", "30") as service:
        admin = service.token_of("admin")
        with sqlite_locked(database):
            first = send(service, create(admin.token, "Ann"))
            time.sleep(0.2)  # the writer has it, and waits for the lock
            gone, stays = send(service, create(admin.token, "Bob")), send(service, create(admin.token, "Cid"))
            time.sleep(0.2)
            gone.close()
            assert service.get("/health/ready").status == 200  # by now the server has seen it
            time.sleep(0.1)
        assert (status(first), status(stays)) == (201, 201)
        assert names(service) == ["Ann", "Cid"]


# requests that take too long


def test_a_request_that_takes_too_long_is_a_timeout(database: str) -> None:
    with served(database, "--statement-timeout", "30", "--request-timeout", "0.5") as service:
        admin = service.token_of("admin")
        query = {"query": 'mutation { createUser(input: {name: "Bob", email: "b@example.org"}) { id } }'}
        with locked(database):
            for target, body in (("/users", {"name": "Ann", "email": "a@example.org"}), ("/graphql", query)):
                machine, begun = Machine(), time.monotonic()
                answer = admin.post(target, body)
                took = time.monotonic() - begun
                assert 0.4 < took < machine.limit(1.5)
                found = answer.json()
                assert (found["code"] if target == "/users" else found["errors"][0]["extensions"]["code"]) == "TIMEOUT"
                assert answer.status == 504 if target == "/users" else answer.status in (200, 504)
        until(lambda: names(service) == [] or database.startswith("sqlite:"))
        assert admin.post("/users", {"name": "Ann", "email": "ann@example.org"}).status == 201


def test_a_body_that_does_not_come_is_refused(new_sqlite: NewDatabase) -> None:
    with served(new_sqlite(), "--request-timeout", "0.4") as service:
        token = service.token_of("admin").token
        assert status(send(service, create(token, "Ann")[:-3])) == 400  # no fault of ours
        assert service.get("/users").status == 200


def test_a_busy_database_says_when_to_come_back(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with served(database, "--statement-timeout", "0.3") as service:
        admin = service.token_of("admin")
        with sqlite_locked(database):
            answer = admin.post("/users", {"name": "Ann", "email": "a@example.org"})
        assert (answer.status, answer.json()["code"]) == (503, "UNAVAILABLE")
        assert answer.headers["retry-after"] == "1"


# the deadlines themselves, and other servers


async def lasting(deadlines: Deadlines, seconds: float) -> str:
    task = deadlines.enter()
    try:
        await asyncio.sleep(seconds)
        return "done"
    except asyncio.CancelledError:
        if not deadlines.is_over(task):
            raise
        return "over"
    finally:
        deadlines.leave(task)


def test_each_request_has_its_own_time() -> None:
    async def work() -> None:
        deadlines = Deadlines(0.2)
        for _ in range(2):
            short = [asyncio.create_task(lasting(deadlines, 0.01 * number)) for number in range(10)]
            long = asyncio.create_task(lasting(deadlines, 60))
            await asyncio.sleep(0.1)
            later = asyncio.create_task(lasting(deadlines, 0.15))
            assert await asyncio.gather(*short, long, later) == [*["done"] * 10, "over", "done"]
            assert long.cancelling() == 0
            await asyncio.sleep(0.05)
        assert not len(deadlines) and deadlines._timer is None

    asyncio.run(work())


def test_whoever_else_cancels_a_request_is_obeyed() -> None:
    async def work() -> None:
        deadlines = Deadlines(10)
        task = asyncio.create_task(lasting(deadlines, 60))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        deadlines.stop()

    asyncio.run(work())


def test_deadlines_outlive_a_loop() -> None:
    deadlines = Deadlines(0.1)

    async def left_over() -> None:
        assert await lasting(deadlines, 0) == "done"

    async def too_long() -> None:
        assert await lasting(deadlines, 60) == "over"

    asyncio.run(left_over())
    asyncio.run(too_long())


def test_any_server_gets_the_answer(new_sqlite: NewDatabase) -> None:
    """An ASGI server that knows nothing of ours: no protocol to ask, `send` is a plain function."""
    database = new_sqlite()

    async def work() -> list[dict[str, Any]]:
        app = Diptych(model, config=Config(database=database, request_timeout=0.3, statement_timeout=LONG))
        sent: list[dict[str, Any]] = []

        async def never() -> dict[str, Any]:
            await asyncio.sleep(60)
            return {}

        async def send(message: Any) -> None:
            sent.append(message)

        await app.start()
        try:
            head = [(b"content-type", b"application/json"), (b"content-length", b"5")]
            scope = {"type": "http", "method": "POST", "path": "/graphql", "query_string": b"", "headers": head}
            await app(scope, never, send)
            task = asyncio.create_task(app(scope, never, send))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            await app.stop()
        return sent

    start, body = asyncio.run(work())
    assert start["status"] == 400
    assert json.loads(body["body"])["errors"][0]["extensions"]["code"] == "BAD_REQUEST"
