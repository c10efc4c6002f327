"""The floor: the least that any server in Python can do for these requests, and so what we measure against.

A bare ASGI app on uvicorn: decode the body, look the document up in a dict, run the one ideal statement, send
its bytes with the headers that the service sends too. No token is checked, no rule is evaluated outside the
statement, no document is parsed, nothing is limited; the viewer is a constant. A write makes the id and the
time here, and tells the feed of it, without a trigger; on SQLite writes share commits (`writer.py`), on PostgreSQL each
is a statement that commits itself.

    python -m bench.floor --database sqlite:///… --port 8001 --viewer <user id>
"""

from __future__ import annotations

import argparse
import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from hashlib import sha256
from random import getrandbits
from typing import Any, Protocol

import apsw
import asyncpg
import msgspec
import uvicorn
from uuid_utils import uuid7

from bench.cases import DOCUMENTS
from bench.ideal import FIRST, STATEMENTS, page_of
from bench.store import Store, connect_postgres, connect_sqlite, store_of_url
from bench.writer import WRITERS, Writer

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


class Order(msgspec.Struct, rename="camel"):
    """The input of an order; a total has two digits behind the point."""

    customer_id: str
    total: str
    currency: str
    note: str


class OrderRow(msgspec.Struct):
    """A new order as the feed tells of it."""

    id: str
    created_at: str
    updated_at: str
    customer_id: str
    total: int
    currency: str
    note: str
    version: int = 1
    status: str = "pending"
    internal_note: None = None


class Variables(msgspec.Struct):
    """The variables of all cases."""

    id: str | None = None
    after: str | None = None
    input: Order | None = None


class Body(msgspec.Struct):
    """What a GraphQL POST holds."""

    query: str
    variables: Variables


decode = msgspec.json.Decoder(Body).decode
decode_order = msgspec.json.Decoder(Order).decode
encode = msgspec.json.Encoder().encode


class Database(Protocol):
    """Runs a named ideal statement."""

    async def open(self) -> None:
        """Connects."""

    async def run(self, name: str, *values: str) -> Any:
        """The value of the one row, its values if it has several, or None where there is no row."""

    async def create(self, name: str, order_id: str, order: Order) -> Any:
        """Makes an order by the named statement, and gives what it gives."""


class Sqlite:
    """Reads inline in the event loop, on one connection, by one cursor; writes on a connection of their own."""

    def __init__(self, store: Store, writer: str) -> None:
        self.store = store
        self.writer_name = writer
        self.statements = STATEMENTS["sqlite"]
        self.cursor: apsw.Cursor
        self.writer: Writer

    async def open(self) -> None:
        """Connects."""
        self.cursor = connect_sqlite(self.store).cursor()
        connection = connect_sqlite(self.store)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)  # it tells the feed by itself
        self.writer = WRITERS[self.writer_name](connection, asyncio.get_running_loop())

    async def run(self, name: str, *values: str) -> Any:
        """`.get` drains the statement, so that no read transaction stays open."""
        return self.cursor.execute(self.statements[name], values).get

    async def create(self, name: str, order_id: str, order: Order) -> Any:
        """A total is stored as an integer, in hundredths."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")[:26] + "Z"
        total = int(order.total.replace(".", "", 1))
        values = (order_id, now, order.customer_id, total, order.currency, order.note)
        row = encode(OrderRow(order_id, now, now, order.customer_id, total, order.currency, order.note))
        told = (getrandbits(31), now, order_id, row.decode())
        return await self.writer.run((self.statements[name], values), (self.statements["feed"], told))


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
            await connection.execute("SET session_replication_role = replica")  # it tells the feed by itself
            statements = STATEMENTS["postgres"].items()
            self.free.append({name: await connection.prepare(sql) for name, sql in statements})

    async def create(self, name: str, order_id: str, order: Order) -> Any:
        """Outside a transaction: the statement commits itself."""
        now = datetime.now(UTC)
        return await self.run(name, order_id, now, order.customer_id, order.total, order.currency, order.note)

    async def run(self, name: str, *values: object) -> Any:
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

    def __init__(self, store: Store, viewer: str, writer: str) -> None:
        self.viewer = viewer
        self.first = FIRST[store.kind]
        self.database: Database = Sqlite(store, writer) if store.kind == "sqlite" else Postgres(store)

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
            if scope["method"] == "POST":
                await self._post_order(receive, send)
            else:
                await self._orders(scope["query_string"], send)
        elif path == "/batches":
            await self._batches(send)
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
        name, variables = NAMES[request.query], request.variables
        if variables.input is not None:
            body = await self.database.create(name, str(uuid7()), variables.input)
        else:
            value = (variables.after if name == "Q3" else variables.id) or self.first
            body = await self.database.run(name, value, self.viewer)
        await _reply(send, 200, COMMON, body or NO_USER)

    async def _post_order(self, receive: Receive, send: Send) -> None:
        order, order_id = decode_order(await _body(receive)), str(uuid7())
        body = await self.database.create("W1-rest", order_id, order)
        await _reply(send, 201, [*COMMON, (b"location", b"/orders/" + order_id.encode())], body)

    async def _batches(self, send: Send) -> None:
        """How many writes the transactions so far held: size → transactions."""
        batches = self.database.writer.batches if isinstance(self.database, Sqlite) else {}
        await _reply(send, 200, COMMON, msgspec.json.encode(batches))

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
    parser.add_argument("--writer", choices=WRITERS, default="threaded", help="on SQLite (default threaded)")
    arguments = parser.parse_args()
    app = Floor(store_of_url(arguments.database), arguments.viewer, arguments.writer)
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
