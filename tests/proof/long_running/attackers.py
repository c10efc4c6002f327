"""Attackers, as a process of their own: every known way to take more than one's share, all at once, for some seconds.

    python -m tests.proof.long_running.attackers '{"port": 8000, "seconds": 20, …}'

Each attack has a bounded rate, so that its own CPU time is not what is measured, and comes from an address of its own
(127.0.0.2, .3, …) or with a token of its own. Whatever is answered is fine; answers are counted by attack and status.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from diptych.model.operators import MAX_SEARCHED
from tests.proof.long_running.followers import frame
from tests.proof.long_running.parts import Wire

PATIENCE = 15.0
_UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: graphql-transport-ws",
)


@dataclass
class Given:
    """What the attackers are given."""

    port: int
    seconds: float
    user: str
    bearer: str
    post: str
    """A post of the user, with a long body."""
    scoped: list[str]
    """Tokens, each of another set of scopes."""
    client: str
    """A client that has a secret."""
    secret: str
    page: str
    """The query by which another client sends people to the page where they sign in."""
    scale: float = 1.0
    """How much of everything that is held open."""
    form: dict[str, str] = field(default_factory=dict)
    """What the form on that page holds."""
    cookie: str = ""
    counts: Counter[str] = field(default_factory=Counter)


def request(line: str, *headers: str, body: Any = None, bearer: str = "", kind: str = "application/json") -> bytes:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    signed = [f"Authorization: Bearer {bearer}"] if bearer else []
    sized = [f"Content-Type: {kind}", f"Content-Length: {len(data)}"] if body is not None else []
    return "\r\n".join((f"{line} HTTP/1.1", "Host: localhost", *signed, *headers, *sized, "", "")).encode() + data


# requests, by their number

Make = Callable[[Given, int], bytes]


def search(given: Given, number: int) -> bytes:
    """Text search that finds nothing in long texts, for the longest texts, which nearly match everywhere."""
    rest = f"b{number}"
    part = "a" * (MAX_SEARCHED - len(rest))
    found = {"body": {"contains": part + rest if number % 2 else rest + part}}
    return request("GET /posts?first=1&where=" + quote(json.dumps(found)))


def filter_value(given: Given, number: int) -> bytes:
    return request("GET /users?first=1&where=" + quote(json.dumps({"name": {"eq": f"{number:08}" * 5_000}})))


def padded_token(given: Given, number: int) -> bytes:
    return request("GET /users?first=1", f"Authorization: Bearer {' ' * (50_000 + number % 5_000)}{given.bearer}")


def write(given: Given, number: int) -> bytes:
    body = {"authorId": given.user, "title": f"hog {number}", "body": "x" * 5_000, "published": False}
    return request("POST /posts", body=body, bearer=given.bearer)


def patch(given: Given, number: int) -> bytes:
    """A few bytes, to a row that is long."""
    return request(f"PATCH /posts/{given.post}", body={"title": f"t{number}"}, bearer=given.bearer)


def keyed(given: Given, number: int) -> bytes:
    """A key, under which a long answer is kept."""
    return request(
        f"PATCH /posts/{given.post}",
        f'Idempotency-Key: "{time.time_ns()}-{number}"',
        body={"title": f"k{number}"},
        bearer=given.bearer,
    )


def token(given: Given, number: int) -> bytes:
    secret = given.secret if number % 2 else "wrong"
    form = {"grant_type": "client_credentials", "client_id": given.client, "client_secret": secret}
    return request("POST /oauth/token", body=urlencode(form).encode(), kind="application/x-www-form-urlencoded")


def login(given: Given, number: int) -> bytes:
    """A failed attempt with the password of an account."""
    form = {**given.form, "email": "ann@example.org", "password": f"wrong {number}"}
    body = urlencode(form).encode()
    return request("POST /oauth/login", f"Cookie: {given.cookie}", body=body, kind="application/x-www-form-urlencoded")


def openapi(given: Given, number: int) -> bytes:
    return request("GET /openapi.json", bearer=given.scoped[number % len(given.scoped)])


def document(given: Given, number: int) -> bytes:
    fields = " ".join(f"a{number}x{at}: name" for at in range(25))
    return request("POST /graphql", body={"query": f"{{ users(first: 1) {{ {fields} }} }}"})


def heavy(given: Given, number: int) -> bytes:
    """A filter through relations to many and back."""
    deep: Any = {"body": {"contains": f"zz{number}"}}
    for _ in range(2):
        deep = {"author": {"posts": {"some": {"comments": {"some": deep}}}}}
    return request("GET /comments?first=1&where=" + quote(json.dumps(deep)))


RATES: dict[Make, float] = {
    search: 4,
    filter_value: 10,
    padded_token: 10,
    write: 30,
    patch: 10,
    keyed: 5,
    token: 20,
    login: 5,
    openapi: 5,
    document: 10,
    heavy: 4,
}
"""Requests of each kind in a second."""


# connections


@asynccontextmanager
async def open_wire(given: Given, host: str) -> AsyncIterator[Wire]:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE):
        _, wire = await loop.create_connection(Wire, "127.0.0.1", given.port, local_addr=(host, 0))
    try:
        yield wire
    finally:
        wire.close()


async def send_at(given: Given, make: Make, rate: float, host: str) -> None:
    """Send at a steady rate; what has no answer after some seconds is left alone."""
    begun, tasks, number = time.monotonic(), set(), 0
    while time.monotonic() - begun < given.seconds:
        task = asyncio.create_task(_send_one(given, make, number, host))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
        await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
    await asyncio.gather(*tasks)


async def _send_one(given: Given, make: Make, number: int, host: str) -> None:
    try:
        async with open_wire(given, host) as wire, asyncio.timeout(PATIENCE):
            answer = await wire.ask(make(given, number))
            given.counts[f"{make.__name__} {answer.status}"] += 1
    except (OSError, TimeoutError) as error:
        given.counts[f"{make.__name__} {type(error).__name__}"] += 1


async def hold(given: Given, name: str, host: str, first: list[bytes], pause: float) -> None:
    """Open a connection, say something, each time that something came back or a while is over, and keep it open."""
    with contextlib.suppress(OSError, TimeoutError):
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", given.port, local_addr=(host, 0)), PATIENCE
        )
        try:
            for each in first:
                writer.write(each)
                with contextlib.suppress(TimeoutError):
                    said = await asyncio.wait_for(reader.read(65_536), pause)
                    given.counts[f"{name} refused"] += said.count(b'"type":"error"')
            given.counts[f"{name} held"] += 1
            while await reader.read(65_536):
                pass
            given.counts[f"{name} ended"] += 1
        finally:
            writer.close()


async def hold_many(given: Given, name: str, many: int, first: Callable[[int], list[bytes]], host: str) -> None:
    """The same for very many, opened one after the other in the first half of the time."""
    tasks = []
    for number in range(max(1, int(many * given.scale))):
        tasks.append(asyncio.create_task(hold(given, name, host, first(number), 0.5)))
        await asyncio.sleep(given.seconds / 2 / many / given.scale)
    await asyncio.sleep(given.seconds / 2)
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _subscribe(id: int, query: str, variables: Any = None) -> bytes:
    payload = {"query": query, "variables": variables}
    return frame(json.dumps({"type": "subscribe", "id": str(id), "payload": payload}).encode())


def streams(number: int) -> list[bytes]:
    """A socket of nobody with a hundred subscriptions."""
    some = b"".join(_subscribe(at, "subscription { postChanged { kind } }") for at in range(100))
    return [request("GET /graphql", *_UPGRADE), frame(b'{"type":"connection_init"}'), some]


def heavy_streams(number: int) -> list[bytes]:
    """A subscription whose filter goes through relations, with a long value."""
    query = "subscription($w: CommentWhere) { commentChanged(where: $w) { kind } }"
    where = {
        "author": {
            "posts": {"some": {"comments": {"some": {"body": {"contains": (f"z{number}" * 200)[:MAX_SEARCHED]}}}}}
        }
    }
    return [
        request("GET /graphql", *_UPGRADE),
        frame(b'{"type":"connection_init"}'),
        _subscribe(1, query, {"w": where}),
    ]


def filters(number: int) -> list[bytes]:
    """A socket with a hundred different filters."""
    query = "subscription($w: PostWhere) { postChanged(where: $w) { kind } }"
    some = b"".join(_subscribe(at, query, {"w": {"title": {"eq": f"{number}-{at}"}}}) for at in range(100))
    return [request("GET /graphql", *_UPGRADE), frame(b'{"type":"connection_init"}'), some]


def handshake(number: int) -> list[bytes]:
    """A handshake that announces a body which never comes."""
    return [request("GET /graphql", *_UPGRADE, "Content-Length: 10")]


def idle(number: int) -> list[bytes]:
    """A socket that says nothing."""
    return [request("GET /graphql", *_UPGRADE)]


HELD: dict[Callable[[int], list[bytes]], int] = {
    streams: 200,
    heavy_streams: 500,
    filters: 50,
    handshake: 500,
    idle: 500,
}
"""Connections of each kind."""


async def read_form(given: Given) -> None:
    """Get the page where people sign in, with the token that its form needs."""
    reader, writer = await asyncio.open_connection("127.0.0.1", given.port)
    writer.write(request(f"GET /oauth/authorize?{given.page}", "Connection: close"))
    answer = (await asyncio.wait_for(reader.read(), PATIENCE)).decode()
    writer.close()
    hidden = re.findall(r'name="(request|token)" value="([^"]*)"', answer)
    given.form = {name: html.unescape(value) for name, value in hidden}
    found = re.search(r"set-cookie: ([^;]+)", answer, re.IGNORECASE)
    assert found is not None and len(given.form) == 2, answer
    given.cookie = found[1]


async def attack(given: Given) -> None:
    """All of it at once, each from an address of its own."""
    await read_form(given)
    print("ready", flush=True)
    work: list[Awaitable[None]] = []
    for at, (make, rate) in enumerate(RATES.items()):
        work.append(send_at(given, make, rate, f"127.0.0.{2 + at}"))
    for at, (first, many) in enumerate(HELD.items()):
        work.append(hold_many(given, first.__name__, many, first, f"127.0.0.{102 + at}"))
    await asyncio.gather(*work)


def main() -> None:
    os.nice(10)
    given = Given(**json.loads(sys.argv[1]))
    asyncio.run(attack(given))
    given.counts["CPU in ms"] = int(time.process_time() * 1000)
    print(json.dumps(given.counts))


if __name__ == "__main__":
    main()
