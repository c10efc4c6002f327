"""The bare floor: the ideal statements straight from an httptools protocol, without ASGI; and the constant body.

It answers as `floor.py` does, with the same headers, but parses HTTP itself and writes a response in one piece: what
is left is the loop, the HTTP parser, the body's decoder and the database. With `--constant` the first answer to each
case is kept and given to all that follow: the upper bound of the HTTP stack, which no server in Python can pass.

    python -m bench.bare --database sqlite:///… --port 8005 --viewer <user id>
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from hashlib import sha256
from typing import Any, cast

import httptools
import uvloop
from uuid_utils import uuid7

from bench.floor import NAMES, NO_USER, Database, Order, Postgres, Sqlite, decode, decode_order
from bench.ideal import FIRST, page_of
from bench.store import Store, store_of_url

HEAD = (
    b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncache-control: private, no-cache\r\n"
    b"vary: Authorization, Accept\r\n%bdate: %b\r\ncontent-length: %d\r\n\r\n%b"
)
OK, CREATED, MISSING = b"200 OK", b"201 Created", b"404 Not Found"
Answer = tuple[bytes, bytes, bytes]


class Bare:
    """What all connections share."""

    def __init__(self, store: Store, viewer: str, constant: bool) -> None:
        self.viewer = viewer
        self.first = FIRST[store.kind]
        self.kept: dict[str, bytes] | None = {} if constant else None
        self.sqlite = Sqlite(store, "threaded") if store.kind == "sqlite" else None
        self.database: Database = self.sqlite or Postgres(store)
        self.date = b""

    def tick(self) -> None:
        """The time of responses, once a second."""
        self.date = formatdate(usegmt=True).encode()
        asyncio.get_running_loop().call_later(1, self.tick)

    def response(self, name: str, answer: Answer) -> bytes:
        """The bytes of a response."""
        status, more, body = answer
        made = HEAD % (status, more, self.date, len(body), body)
        if self.kept is not None:
            self.kept[name] = made
        return made


class Connection(asyncio.Protocol):
    """One connection; a request at a time."""

    def __init__(self, bare: Bare) -> None:
        self.bare = bare
        self.write: Callable[[bytes], None]
        self.parser = httptools.HttpRequestParser(self)
        self.feed = self.parser.feed_data
        self.url = self.body = b""
        self.running: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.write = cast(asyncio.Transport, transport).write

    def data_received(self, data: bytes) -> None:
        self.feed(data)

    def on_message_begin(self) -> None:
        self.url = self.body = b""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        """Chooses by path and method."""
        path, _, query = self.url.partition(b"?")
        if path == b"/graphql":
            request = decode(self.body)
            name, variables = NAMES[request.query], request.variables
            if variables.input is not None:
                self._later(name, self._create(name, variables.input))
            else:
                value = (variables.after if name == "Q3" else variables.id) or self.bare.first
                self._read(name, _as_data, value, self.bare.viewer)
        elif path.startswith(b"/users/"):
            self._read("R1", _as_user, path[7:].decode(), self.bare.viewer)
        elif path != b"/orders":
            self.write(self.bare.response("", (MISSING, b"", b"{}")))
        elif self.parser.get_method() == b"POST":
            self._later("W1-rest", self._create("W1-rest", decode_order(self.body)))
        else:
            after = dict(part.split(b"=", 1) for part in query.split(b"&")).get(b"after", b"").decode()
            self._read("R2", _as_first_page if not after else _as_page, after or self.bare.first)

    def _read(self, name: str, shape: Callable[[Any], Answer], *values: str) -> None:
        """On SQLite at once, else in a task."""
        bare = self.bare
        if bare.kept and name in bare.kept:
            self.write(bare.kept[name])
        elif bare.sqlite is not None:
            found = bare.sqlite.cursor.execute(bare.sqlite.statements[name], values).get
            self.write(bare.response(name, shape(found)))
        else:
            self._later(name, self._fetch(name, shape, values))

    async def _fetch(self, name: str, shape: Callable[[Any], Answer], values: tuple[str, ...]) -> Answer:
        return shape(await self.bare.database.run(name, *values))

    async def _create(self, name: str, order: Order) -> Answer:
        order_id = str(uuid7())
        body = await self.bare.database.create(name, order_id, order)
        if name == "W1-rest":
            return CREATED, b"location: /orders/%b\r\n" % order_id.encode(), body
        return OK, b"", body

    def _later(self, name: str, work: Coroutine[Any, Any, Answer]) -> None:
        async def run() -> None:
            self.write(self.bare.response(name, await work))

        self.running = asyncio.get_running_loop().create_task(run())


def _as_data(body: bytes | None) -> Answer:
    return OK, b"", body or NO_USER


def _as_user(body: bytes | None) -> Answer:
    return (MISSING, b"", b"{}") if body is None else (OK, _etag(body), body)


def _as_page(found: tuple[bytes | None, int], *, has_previous: bool = True) -> Answer:
    page = page_of(*found, has_previous=has_previous)
    body = page.body()
    return OK, _etag(body) + b"link: %b\r\n" % page.link(), body


def _as_first_page(found: tuple[bytes | None, int]) -> Answer:
    return _as_page(found, has_previous=False)


def _etag(body: bytes) -> bytes:
    return b'etag: "%b"\r\n' % sha256(body).hexdigest()[:32].encode()


async def serve(store: Store, port: int, viewer: str, constant: bool) -> None:
    """Serves until it is ended."""
    bare = Bare(store, viewer, constant)
    await bare.database.open()
    bare.tick()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(bare), "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    """Serves until it is told to stop."""
    parser = argparse.ArgumentParser(description="the bare floor: ideal statements without ASGI")
    parser.add_argument("--database", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--viewer", required=True)
    parser.add_argument("--constant", action="store_true", help="keep the first answer to each case")
    given = parser.parse_args()
    uvloop.run(serve(store_of_url(given.database), given.port, given.viewer, given.constant))


if __name__ == "__main__":
    main()
