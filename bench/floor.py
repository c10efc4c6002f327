"""The floor: the least that any server in Python can do for these requests, and so what we measure against.

A bare ASGI app on uvicorn: decode the body, look the document up in a dict, run the one ideal statement, send
its bytes with the headers that the service sends too. No token is checked, no rule is evaluated outside the
statement, no document is parsed, nothing is limited; the viewer is a constant.

    python -m bench.floor --database sqlite:///… --port 8001 --viewer <user id>
"""

from __future__ import annotations

import argparse
import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Protocol

import apsw
import asyncpg
import msgspec
import uvicorn

from bench.cases import DOCUMENTS
from bench.ideal import FIRST, STATEMENTS, page_of
from bench.store import Store, connect_postgres, connect_sqlite, store_of_url

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

NAMES = {document: name for name, document in DOCUMENTS.items()}
NO_USER = b'{"data":{"user":null}}'
CONNECTIONS = 8

COMMON: Headers = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"Authorization, Accept"),
]
PROBLEM: Headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]


class Body(msgspec.Struct):
    """What a GraphQL POST holds."""

    query: str
    variables: dict[str, str | None] = {}


decode = msgspec.json.Decoder(Body).decode


class Database(Protocol):
    """Runs a named ideal statement."""

    async def open(self) -> None:
        """Connects."""

    async def run(self, name: str, *values: str) -> Any:
        """The value of the one row, its values if it has several, or None where there is no row."""


class Sqlite:
    """Inline in the event loop, on one connection, by one cursor."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.statements = STATEMENTS["sqlite"]
        self.cursor: apsw.Cursor

    async def open(self) -> None:
        """Connects."""
        self.cursor = connect_sqlite(self.store).cursor()

    async def run(self, name: str, *values: str) -> Any:
        """`.get` drains the statement, so that no read transaction stays open."""
        return self.cursor.execute(self.statements[name], values).get


Prepared = dict[str, "asyncpg.prepared_stmt.PreparedStatement[Any]"]


class Postgres:
    """A few held connections, each with its prepared statements; who finds none free waits in line."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.free: list[Prepared] = []
        self.waiting: deque[asyncio.Future[Prepared]] = deque()

    async def open(self) -> None:
        """Connects and prepares."""
        for _ in range(CONNECTIONS):
            connection = await connect_postgres(self.store)
            statements = STATEMENTS["postgres"].items()
            self.free.append({name: await connection.prepare(sql) for name, sql in statements})

    async def run(self, name: str, *values: str) -> Any:
        """One round trip."""
        prepared = self.free.pop() if self.free else await self._wait()
        try:
            row = await prepared[name].fetchrow(*values)
            return row[0] if row and len(row) == 1 else row
        finally:
            if self.waiting:
                self.waiting.popleft().set_result(prepared)
            else:
                self.free.append(prepared)

    def _wait(self) -> asyncio.Future[Prepared]:
        turn: asyncio.Future[Prepared] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        return turn


async def _body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _reply(send: Send, status: int, headers: Headers, body: bytes) -> None:
    headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _etag(body: bytes) -> tuple[bytes, bytes]:
    """SHA-256 has instructions of its own on today's processors: 11 µs for 16 KB, where BLAKE2b takes 27."""
    return b"etag", b'"%b"' % sha256(body).hexdigest()[:32].encode()


class Floor:
    """The ASGI app."""

    def __init__(self, store: Store, viewer: str) -> None:
        self.viewer = viewer
        self.first = FIRST[store.kind]
        self.database: Database = Sqlite(store) if store.kind == "sqlite" else Postgres(store)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Chooses by path."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        path: str = scope["path"]
        if path == "/graphql":
            await self._graphql(receive, send)
        elif path.startswith("/users/"):
            await self._user(path[7:], send)
        elif path == "/orders":
            await self._orders(scope["query_string"], send)
        else:
            await _reply(send, 404, PROBLEM, b"{}")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.database.open()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _graphql(self, receive: Receive, send: Send) -> None:
        request = decode(await _body(receive))
        name = NAMES[request.query]
        value = request.variables.get("after" if name == "Q3" else "id") or self.first
        body = await self.database.run(name, value, self.viewer)
        await _reply(send, 200, COMMON, body or NO_USER)

    async def _user(self, user_id: str, send: Send) -> None:
        body = await self.database.run("R1", user_id, self.viewer)
        if body is None:
            await _reply(send, 404, PROBLEM, b"{}")
        else:
            await _reply(send, 200, [*COMMON, _etag(body)], body)

    async def _orders(self, query: bytes, send: Send) -> None:
        arguments = dict(part.split("=", 1) for part in query.decode().split("&"))
        after = arguments.get("after")
        rows, count = await self.database.run("R2", after or self.first)
        page = page_of(rows, count, has_previous=after is not None)
        body = page.body()
        await _reply(send, 200, [*COMMON, _etag(body), (b"link", page.link())], body)


def main() -> None:
    """Serves until it is told to stop."""
    parser = argparse.ArgumentParser(description="the floor: one ideal statement per request")
    parser.add_argument("--database", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--viewer", required=True)
    arguments = parser.parse_args()
    app = Floor(store_of_url(arguments.database), arguments.viewer)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=arguments.port,
        loop="uvloop",
        http="httptools",
        lifespan="on",
        access_log=False,
        server_header=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
