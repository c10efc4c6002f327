"""Requests, streams and connections leave no reference cycles: what is frozen is freed by its reference count."""

from __future__ import annotations

import gc
import json
import time
from collections import Counter
from typing import Any

from diptych import Config, Diptych
from diptych.demo.model import model
from tests.proof.long_running.attackers import request
from tests.proof.long_running.followers import frame
from tests.support.running import Client, NewDatabase
from tests.system.wire.here import here
from tests.system.wire.raw import connect, drain, get, post

_OURS = ("diptych.", "uvicorn.", "websockets.", "uvloop.", "_asyncio.")
_YOUNG = "diptych.api.graphql.parser."
"""Trees that graphql-core's visitors refer to. They end with the request; what is cached is tested in `test_tokens.py`."""
UPGRADE = request(
    "GET /graphql",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: graphql-transport-ws",
)
ROUNDS = 5


def query(text: str) -> bytes:
    body = json.dumps({"query": text}).encode()
    return post(f"Content-Length: {len(body)}", body=body)


REQUESTS = [
    get("/users?first=2"),
    get("/posts?first=2&fields=id,title,author(name)"),
    get("/nothing"),
    get("/users?first=x"),
    get("/openapi.json"),
    get("/users", "Authorization: Bearer x"),
    query("{ users(first: 1) { id posts(first: 1) { title } } }"),
    query("{ nothing }"),
    query("mutation { deletePost(id: 1) { id } }"),
    query("{"),
    b"GET / HTTP/9.9\r\n\r\n",
]
LEFT_EARLY = [
    post("Content-Length: 100", body=b"{", close=False),
    get("/posts/changes", "Accept: text/event-stream", close=False),
    UPGRADE,
]


def message(kind: str, id: str = "", query: str = "") -> bytes:
    more = {"id": id, "payload": {"query": query}} if query else {"id": id} if id else {}
    return frame(json.dumps({"type": kind, **more}).encode())


def some_of_everything(client: Client) -> None:
    for each in REQUESTS:
        with connect(client) as connection:
            connection.sendall(each)
            drain(connection)
    for each in LEFT_EARLY:
        with connect(client) as connection:
            connection.sendall(each)
            time.sleep(0.02)
    for ends in (True, False):
        with connect(client) as connection:
            connection.sendall(UPGRADE)
            connection.recv(65_536)
            streams = [message("subscribe", id, "subscription { postChanged { kind } }") for id in "abc"]
            connection.sendall(message("connection_init") + b"".join(streams))
            connection.sendall(message("subscribe", "q", "{ users(first: 1) { id } }") + message("complete", "a"))
            time.sleep(0.1)
            if ends:
                connection.sendall(frame(b"\x03\xe8", 8))
                drain(connection)


def in_cycles() -> Counter[str]:
    """The objects of the server that nothing but themselves refers to."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        kinds: list[type[Any]] = [type(each) for each in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return Counter(name for name in names if name.startswith(_OURS) and not name.startswith(_YOUNG))


def test_what_has_ended_leaves_no_reference_cycles(new_sqlite: NewDatabase) -> None:
    with here(Diptych(model, config=Config(database=new_sqlite(), sample=True))) as service:
        some_of_everything(service.client)
        time.sleep(0.5)
        gc.collect()
        gc.disable()
        try:
            for _ in range(ROUNDS):
                some_of_everything(service.client)
            time.sleep(0.5)
            found = in_cycles()
        finally:
            gc.enable()
    assert not {name: many for name, many in found.items() if many >= ROUNDS}
