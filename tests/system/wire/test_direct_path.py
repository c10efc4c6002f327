"""A request is answered alike by the direct path and by ASGI, byte for byte but for what is new in each answer."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from diptych import Config, Diptych
from diptych.demo.model import model
from tests.proof.fuzz.corpus import Corpus
from tests.proof.fuzz.drive import completed, exchange
from tests.proof.fuzz.ground import Ground, survey
from tests.proof.fuzz.mutate import Mutator
from tests.support.running import Client, NewDatabase, served
from tests.system.wire.here import here
from tests.system.wire.raw import QUERY, SIZED, connect, drain, get, post
from tests.system.wire.test_heads import MALFORMED

CASES = 300
_NEW = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # ids of new rows
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"  # when they were made
    rb"|(?<=\.)[0-9a-f]{24}|(?<=\")[0-9a-f]{24}(?=\")"  # entity tags of what holds them
    rb"|[A-Za-z0-9_-]{32,}(?:\.[A-Za-z0-9_-]+)*"  # cursors and tokens
    rb"|(?<=\r\ndate: )[^\r]+|(?<=\r\ncontent-length: )\d+|127\.0\.0\.1:\d+"
    rb"|(?<=number is )[0-9a-f]+"
)
PIECES = {
    "a GET": get("/users?first=2"),
    "a HEAD": get("/users?first=2").replace(b"GET", b"HEAD", 1),
    "a query": post(SIZED),
    "a GET with a body": get("/users?first=1", SIZED) + QUERY,
    "a GET that expects": get("/users?first=1", "Expect: 100-continue"),
    "HTTP/1.0": b"GET /users?first=1 HTTP/1.0\r\nHost: x\r\n\r\n",
    "an absolute target": b"GET http://x/users?first=1 HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n",
    "two requests": get("/users?first=1", close=False) + get("/posts?first=1"),
    "three requests": get("/users?first=1", close=False) + post(SIZED, close=False) + get("/posts?first=1"),
    "a request, and one that is malformed": get("/users?first=1", close=False) + b"GET / HTTP/9.9\r\n\r\n",
    "a request, and half of one": post(SIZED, close=False) + b"GET /users HT",
    "a request, and an upgrade that is not supported": post(SIZED, close=False) + get("/", "Upgrade: h2c"),
    "a repeated header": get("/users?first=1", "Accept: application/json", "Accept: */*"),
    "a repeated header that is no list": get("/users?first=1", "Authorization: a", "Authorization: b"),
    "twenty requests": get("/health/live", close=False) * 19 + get("/health/live"),
}


class Doors(NamedTuple):
    """Two servers of equal databases: one that answers directly, one behind an ASGI middleware."""

    direct: Client
    asgi: Client
    ground: Ground


def behind(app: Diptych) -> Any:
    """The application behind a middleware, so that the server knows it by ASGI only."""

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    return middleware


@pytest.fixture(scope="module")
def doors(new_sqlite: NewDatabase) -> Iterator[Doors]:
    database = new_sqlite()
    with served(database, "--sample") as service:
        ground = survey(service)
    copy = database.removesuffix(".db") + "-copy.db"
    for suffix in ("", "-wal"):
        with suppress(FileNotFoundError):
            shutil.copy(Path(database.removeprefix("sqlite:///") + suffix), copy.removeprefix("sqlite:///") + suffix)
    apps = [Diptych(model, config=Config(database=name, planning_share=1.0)) for name in (database, copy)]
    with here(apps[0]) as direct, here(apps[1], behind) as asgi:
        yield Doors(direct.client, asgi.client, ground)


def known(raw: bytes) -> list[bytes]:
    """An answer without what is new in it; headers in any order."""
    head, _, rest = _NEW.sub(b"*", raw).partition(b"\r\n\r\n")
    return [*sorted(head.split(b"\r\n")), rest]


def sent(client: Client, *pieces: bytes) -> bytes:
    """All that comes back for bytes sent piece by piece, each in a packet of its own."""
    with connect(client) as connection:
        for piece in pieces:
            with suppress(ConnectionError):
                connection.sendall(piece)
            if len(pieces) > 1:
                time.sleep(0.01)
        with suppress(OSError):
            connection.shutdown(1)
        return drain(connection)


@pytest.mark.parametrize("name", PIECES)
def test_both_paths_answer_alike(doors: Doors, name: str) -> None:
    raw = PIECES[name]
    assert known(sent(doors.direct, raw)) == known(sent(doors.asgi, raw))
    for cut in sorted(Random(name).sample(range(1, len(raw)), 8)):
        direct, asgi = (known(sent(client, raw[:cut], raw[cut:])) for client in (doors.direct, doors.asgi))
        assert direct == asgi, cut


def test_both_paths_refuse_alike(doors: Doors) -> None:
    for name, raw in MALFORMED.items():
        assert known(sent(doors.direct, raw)) == known(sent(doors.asgi, raw)), name


def test_both_paths_answer_random_requests_alike(doors: Doors) -> None:
    random = Random(7)
    mutator = Mutator(Corpus(doors.ground, random), random)

    async def work() -> int:
        answered = 0
        for _ in range(CASES):
            raw = completed(mutator.draw())
            if b"event-stream" in raw or b"pgrade" in raw:  # streams are left as soon as they begin
                continue
            direct, asgi = [await exchange(client.port, raw) for client in (doors.direct, doors.asgi)]
            assert known(direct.came) == known(asgi.came), raw
            assert (direct.ended, direct.hung) == (asgi.ended, asgi.hung), raw
            answered += b"HTTP/1.1 20" in direct.came
        return answered

    assert asyncio.run(work()) > CASES // 10
