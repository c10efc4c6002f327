"""A request is answered alike by the direct path and by ASGI, byte for byte but for what is new in each answer."""

from __future__ import annotations

import asyncio
import gc
import re
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from diptych import Config, Diptych
from diptych.api.reply import Reply
from diptych.demo.model import model
from diptych.serve.http.direct import CompleteRequest
from diptych.serve.http.known_heads import KnownHead, KnownHeads
from tests.proof.fuzz.corpus import Corpus
from tests.proof.fuzz.drive import completed, exchange
from tests.proof.fuzz.ground import Ground, survey
from tests.proof.fuzz.mutate import Mutator
from tests.support.running import Client, NewDatabase, served
from tests.system.wire.here import here
from tests.system.wire.raw import PATIENCE, QUERY, SIZED, connect, drain, get, post
from tests.system.wire.test_heads import MALFORMED

CASES = 300
ATTEMPTS = 3
QUIET = 0.3
"""Seconds of silence after which the server is taken to wait for more."""
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
    """All that comes back for bytes sent piece by piece, each in a packet of its own.

    The server ends the connection, unless it waits for more; then the client ends it. Of a stream, it is what comes
    before the first silence.
    """
    with connect(client) as connection:
        for piece in pieces:
            with suppress(ConnectionError):
                connection.sendall(piece)
            if len(pieces) > 1:
                time.sleep(0.01)
        came = bytearray()
        connection.settimeout(QUIET)
        try:
            while part := connection.recv(65_536):
                came += part
        except TimeoutError:
            if b"text/event-stream" in came:
                return bytes(came)
            connection.settimeout(PATIENCE)
            with suppress(OSError):
                connection.shutdown(1)
            came += drain(connection)
        except ConnectionError:
            pass
        return bytes(came)


def assert_alike(doors: Doors, *pieces: bytes) -> None:
    """Both paths answer alike, at least in one of a few attempts: a busy machine may keep one of them waiting."""
    for _ in range(ATTEMPTS):
        direct, asgi = (known(sent(client, *pieces)) for client in (doors.direct, doors.asgi))
        if direct == asgi:
            return
    assert direct == asgi, pieces


@pytest.mark.parametrize("name", PIECES)
def test_both_paths_answer_alike(doors: Doors, name: str) -> None:
    raw = PIECES[name]
    assert_alike(doors, raw)
    for cut in sorted(Random(name).sample(range(1, len(raw)), 8)):
        assert_alike(doors, raw[:cut], raw[cut:])


def test_both_paths_refuse_alike(doors: Doors) -> None:
    for raw in MALFORMED.values():
        assert_alike(doors, raw)


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


WATCH = b'{"query":"subscription { userChanged { kind } }"}'
WAITING = {
    "GET": get("/users?first=2", close=False),
    "HEAD": get("/users?first=2", close=False).replace(b"GET", b"HEAD", 1),
    "POST": post(SIZED, close=False),
    "HTTP/1.0": b"GET /users?first=2 HTTP/1.0\r\nHost: x\r\n\r\n",
    "a stream": post(f"Content-Length: {len(WATCH)}", "Accept: text/event-stream", close=False, body=WATCH),
}
BEHIND = {
    "GET": [get("/users?first=1")],
    "HEAD": [get("/users?first=1").replace(b"GET", b"HEAD", 1)],
    "POST in pieces": [post(SIZED)[:-5], post(SIZED)[-5:]],
    "HTTP/1.0": [b"GET /users?first=1 HTTP/1.0\r\nHost: x\r\n\r\n"],
    "a malformed HEAD": [b"HEAD /users HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
    "a malformed GET": [b"GET /users HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
}


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("first", WAITING)
def test_a_request_that_waits_has_its_own_response_whatever_is_pipelined_behind_it(
    doors: Doors, first: str, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    respond = Diptych.respond

    def slowly(self: Diptych, arrived: CompleteRequest) -> Awaitable[Reply]:
        reply = respond(self, arrived)

        async def later() -> Reply:
            await asyncio.sleep(0.06)
            return reply if isinstance(reply, Reply) else await reply

        return later()

    monkeypatch.setattr(Diptych, "respond", slowly)
    assert_alike(doors, WAITING[first], *BEHIND[behind])


WHOLE = [
    get("/users?first=2", close=False),
    get("/users?first=2", close=False).replace(b"GET", b"HEAD", 1),
    post(SIZED, close=False),
    get("/users?first=1", SIZED, close=False) + QUERY,
]
EDITS = (b"", b" ", b"\r\n", b"\n", b"\r", b":", b"0", b"9", b"/", b"?", b"#", b"\x00", b"\xff", b"HEAD", b"POST", b"x")


def edited(raw: bytes, random: Random) -> bytes:
    """The same request with a small mistake, a part of it, or more than it."""
    at, size = random.randrange(len(raw)), random.choice((0, 1, 1, 2, 4))
    match random.randrange(6):
        case 0:
            return raw[:at]
        case 1:
            return raw + random.choice(WHOLE)[: random.randrange(1, 200)]
        case 2:  # the same head, with another request line
            return random.choice(WHOLE).partition(b"\r\n")[0] + b"\r\n" + raw.partition(b"\r\n")[2]
        case _:
            return raw[:at] + random.choice(EDITS) + raw[at + size :]


def test_both_paths_answer_alike_after_the_head_is_known(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request follows others with the same headers on its connection, which are then in the cache of heads."""
    hits = Counter[bool]()
    find = KnownHeads.find

    def counted(self: KnownHeads, data: bytes, last: KnownHead | None) -> Any:
        found = find(self, data, last)
        hits[found is not None] += 1
        return found

    monkeypatch.setattr(KnownHeads, "find", counted)
    random = Random(11)
    for _ in range(40):
        whole = random.choice(WHOLE)
        assert_alike(doors, whole, whole, edited(whole, random), whole, get("/health/live"))
    assert hits[True] > 40 and hits[False] > 10


def test_a_connection_keeps_no_head_of_very_many_headers(new_sqlite: NewDatabase) -> None:
    """Also not while a stream runs on it, which may last for days: 20,000 of them would be more than half a gigabyte."""
    many = ["Accept: text/event-stream", *(f"{number:x}:" for number in range(120))]
    with here(Diptych(model, config=Config(database=new_sqlite()))) as (client, app), connect(client) as connection:
        for target, status in (("/health/live", 406), ("/posts/changes", 200)):
            connection.sendall(get(target, *many, close=False))
            assert connection.recv(65_536).startswith(b"HTTP/1.1 %d" % status)
        assert app.connection_limits.known_heads._heads.used, "it is known"
        app.connection_limits.known_heads._heads.clear()
        kept = [len(head.headers) for head in gc.get_objects() if type(head) is KnownHead]
    assert max(kept, default=0) < len(many)
