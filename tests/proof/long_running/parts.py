"""What the proofs share: a service that can be killed and comes back, and clients that cost little.

The long forms run with `make prove`; `make test` runs the same with fewer rounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import apsw
import asyncpg

from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model
from diptych.identity.tokens import load_tokens
from tests.support.fork_server import Process, start
from tests.support.running import PATIENCE, ROOT, Client, Said, diptych, environment


def tell(figures: str) -> None:
    """Print what was found; `make prove` shows it."""
    print(figures, file=sys.stderr, flush=True)


def token(database: str, *options: str) -> str:
    """An access token that lasts for the longest proof."""
    done = diptych("token", "--database", database, "--ttl", "86400", *options, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def tokens(database: str, *wanted: tuple[str | None, Sequence[str]], ttl: int = 86_400) -> list[str]:
    """Access tokens for users with roles, made in this process: a command takes a second for each."""

    async def work() -> list[str]:
        store = connect(Config(database=database))
        await store.open(model)
        try:
            found = await load_tokens(store, "")
            return [found.make(user, roles, None, ttl) for user, roles in wanted]
        finally:
            await store.close()

    return asyncio.run(work())


async def until(holds: Callable[[], bool], why: str, seconds: float = PATIENCE) -> None:
    """Wait for something to hold; `why` says what it means if it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, why
        await asyncio.sleep(0.01)


def rows(database: str, sql: str) -> list[tuple[Any, ...]]:
    """Rows as the database has them, past the service."""
    if database.startswith("sqlite:"):
        connection = apsw.Connection(database.removeprefix("sqlite:///"))
        try:
            return list(connection.execute(sql))
        finally:
            connection.close()

    async def work() -> list[tuple[Any, ...]]:
        session = await asyncpg.connect(database)
        try:
            return [tuple(row) for row in await session.fetch(sql)]
        finally:
            await session.close()

    return asyncio.run(work())


# the service


class Mortal:
    """`diptych serve` on a port that stays, with all its processes in a group of their own."""

    def __init__(self, database: str, named: str = "", **env: str) -> None:
        self.database = database
        self.port = 0
        self.starts = 0
        self.said: list[Said] = []
        """What it said, each time that it was started."""
        self._named = [named] if named else []
        self._env = env
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *options: str) -> None:
        """Serve; it is ready when this returns."""
        command = ["serve", *self._named, "--database", self.database, "--port", str(self.port), *options]
        self._process = start(command, environment(**self._env), ROOT, session=True, one_stream=True)
        assert self._process.stdout is not None
        said = Said()
        self.said.append(said)
        said.follow(self._process.stdout)
        self.port = int(said.wait(r"(?:Here   |GraphQL)  http://\S+?:(\d+)(?:/graphql)?\n")[1])
        assert Client(f"http://127.0.0.1:{self.port}").get("/health/ready").status == 200, said.text
        self.starts += 1

    def strike(self) -> None:
        """Kill all its processes, now."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """The same, and wait until they are gone."""
        self.strike()
        process, self._process = self._process, None
        if process is None:
            return
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def mortal(database: str, *options: str, named: str = "", **env: str) -> Iterator[Mortal]:
    """A service from its readiness to its end, whatever happened meanwhile."""
    service = Mortal(database, named, **env)
    try:
        service.start(*options)
        yield service
    finally:
        service.kill()


# clients


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    head: bytes
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error in either style, if it is one."""
        found = self.json()
        if "errors" in found and "code" not in found:
            return str(found["errors"][0]["extensions"]["code"])
        return str(found.get("code", ""))


class Wire(asyncio.Protocol):
    """A connection that stays open: one request at a time, and its answer."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end or self._waiter is None:
            return
        low = head.lower()
        at = low.find(b"\r\ncontent-length: ")
        length = int(low[at + 18 :].partition(b"\r\n")[0]) if at >= 0 else 0
        if len(rest) >= length and not self._waiter.done():
            self._buffer = b""
            self._waiter.set_result(Answer(int(head[9:12]), low, rest[:length]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionResetError("the service has gone"))

    def ask(self, raw: bytes) -> asyncio.Future[Answer]:
        """The answer to a request that is sent now."""
        assert self.transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        if self.transport.is_closing():
            self._waiter.set_exception(ConnectionResetError("the service has gone"))
        else:
            self.transport.write(raw)
        return self._waiter

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


async def wire(port: int) -> Wire:
    _, found = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
    return found


async def wires(port: int, count: int) -> Sequence[Wire]:
    return await asyncio.gather(*(wire(port) for _ in range(count)))


def http(method: str, path: str, bearer: str, body: Any = None, *headers: str) -> bytes:
    """A whole request."""
    text = b"" if body is None else json.dumps(body).encode()
    signed = [f"Authorization: Bearer {bearer}"] if bearer else []
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *signed, *headers]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
    return "\r\n".join((*lines, "", "")).encode() + text


# writers that do not give up


PASSING = ("CONFLICT", "UNAVAILABLE", "TIMEOUT")
"""Codes after which a request is sent again. (A conflict: its twin is still under way.)"""


@dataclass
class Tally:
    """What the writers saw."""

    created: int = 0
    updated: int = 0
    replayed: int = 0
    retried: int = 0
    refused: int = 0
    """Answers that asked to try again."""
    cut: int = 0
    """Requests whose connection broke before there was an answer."""
    waited: int = 0
    """Attempts to connect while there was nobody."""
    on_answer: Callable[[], None] | None = None
    """What to do as soon as something more is acknowledged."""

    def count(self) -> None:
        """One more create was acknowledged."""
        self.created += 1
        if self.on_answer is not None:
            self.on_answer()


class Writer:
    """One client: creates posts under a key each, updates a post of its own with If-Match, and sends what was not
    acknowledged again until it is. It remembers all that it was told."""

    def __init__(self, name: str, port: Callable[[], int], bearer: str, user: str, tally: Tally) -> None:
        self.name = name
        self.port = port
        self.bearer = bearer
        self.user = user
        self.tally = tally
        self.dice = random.Random(name)
        self.told: dict[str, str] = {}
        """The id that was acknowledged, by title."""
        self.own = ""
        self.version = 0
        self._number = 0
        self._sent = 0
        self._wire: Wire | None = None
        self._before: tuple[bytes, str] | None = None

    async def run(self, done: asyncio.Event) -> None:
        """Write until it is enough. What was begun is finished."""
        try:
            await self._create()
            (self.own,) = self.told.values()
            self.version = 1
            while not done.is_set():
                kind = self.dice.random()
                if kind < 0.6:
                    await self._create()
                elif kind < 0.9:
                    await self._update(keyed=kind < 0.75)
                else:
                    await self._repeat()
        finally:
            if self._wire is not None:
                self._wire.close()

    async def _create(self) -> None:
        self._number += 1
        title = f"{self.name}-{self._number}"
        given = {"authorId": self.user, "title": title, "body": "x", "published": True}
        key = f"Idempotency-Key: create-{title}"
        if self.dice.random() < 0.5:
            request = http("POST", "/posts", self.bearer, given, key)
        else:
            query = "mutation($i: PostCreate!) { createPost(input: $i) { id } }"
            request = http("POST", "/graphql", self.bearer, {"query": query, "variables": {"i": given}}, key)
        answer = await self._insist(request)
        self.told[title] = _id(answer)
        self.tally.count()
        self._before = request, title

    async def _repeat(self) -> None:
        """Send what was acknowledged once more: it must be the same answer."""
        if self._before is not None:
            request, title = self._before
            answer = await self._insist(request)
            assert _id(answer) == self.told[title], f"{title} came back as another"
            assert b"idempotency-replayed: true" in answer.head
            self.tally.replayed += 1

    async def _update(self, *, keyed: bool) -> None:
        """Only this writer changes the post, so that 412 says that it was done before the connection broke."""
        match = f'If-Match: "{self.version}.x"'
        key = [f"Idempotency-Key: update-{self.name}-{self.version}"] if keyed else []
        request = http("PATCH", f"/posts/{self.own}", self.bearer, {"body": f"v{self.version}"}, match, *key)
        answer = await self._insist(request, also=() if keyed else (412,))
        if answer.status == 412:
            assert self._sent > 1, "refused at the first try"
            answer = await self._insist(http("GET", f"/posts/{self.own}", self.bearer))
            assert answer.json()["body"] == f"v{self.version}"
        assert answer.json()["version"] == self.version + 1, answer
        self.version += 1
        self.tally.updated += 1

    async def _insist(self, request: bytes, also: tuple[int, ...] = ()) -> Answer:
        """The answer to a request, which is sent until there is one."""
        self._sent = 0
        while True:
            try:
                if self._wire is None:
                    self._wire = await wire(self.port())
            except OSError:
                self.tally.waited += 1
                await asyncio.sleep(0.02)
                continue
            self._sent += 1
            self.tally.retried += self._sent > 1
            try:
                async with asyncio.timeout(30):
                    answer = await self._wire.ask(request)
            except OSError:
                self._wire = None
                self.tally.cut += 1
                continue
            code = answer.code if answer.status >= 400 or answer.body.startswith(b'{"errors"') else ""
            if not code or answer.status in also:
                return answer
            assert code in PASSING, answer
            self.tally.refused += 1
            await asyncio.sleep(self.dice.uniform(0.01, 0.05))


def _id(answer: Answer) -> str:
    found = answer.json()
    return str(found["data"]["createPost"]["id"] if "data" in found else found["id"])


def audit(database: str, writers: Sequence[Writer]) -> tuple[int, int]:
    """Hold what the writers were told against what is there. Gives how many were lost, and how many are there twice."""
    there: dict[str, list[tuple[str, int]]] = {}
    for title, key, version in rows(database, "SELECT title, id, version FROM posts"):
        there.setdefault(title, []).append((str(key), version))
    lost = [
        title
        for each in writers
        for title, key in each.told.items()
        if key not in [id for id, _ in there.get(title, [])]
    ]
    twice = [title for title, found in there.items() if len(found) > 1]
    unasked = set(there) - {title for each in writers for title in each.told}
    assert not unasked, "what was begun was finished, so that there is nothing else"
    for each in writers:
        ((_, version),) = there[f"{each.name}-1"]
        assert version == each.version, f"{each.name}: {version} in the database, {each.version} by its updates"
    return len(lost), len(twice)
