"""What a request costs is told by a real server: over HTTP, over sockets and in streams."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.contract.live.clients import EventStream, WebSocket
from tests.contract.price.test_told import COST, USERS
from tests.support.running import Client, NewDatabase, served
from tests.system.test_docs import Reader, exchanges


@pytest.fixture(scope="module")
def admin(new_sqlite: NewDatabase) -> Iterator[Client]:
    with served(new_sqlite(), "--sample") as found:
        yield found.token_of("admin")


def test_the_page_on_reading_shows_what_is_told(admin: Client) -> None:
    reader = Reader(admin)
    found = list(exchanges("reading.md"))
    assert len(found) == 3
    for each in found:
        answer = reader.send(each)
        assert answer.status == each.status, answer
        assert {name: answer.headers.get(name.lower()) for name in each.shown} == each.shown
        assert reader.agrees(each.answer, answer.json()), answer


def test_sockets_and_streams_tell_too(admin: Client) -> None:
    follow = "subscription { userChanged { kind user { posts(first: 4) { id } } } }"
    told = {"price": 5, "allowed": 5000, "depth": 2}

    def add(name: str) -> None:
        assert admin.post("/users", {"name": name, "email": f"{name}@x"}).status == 201

    with WebSocket(admin.port, token=admin.token) as socket:
        socket.begin()
        socket.send(type="subscribe", id="1", payload={"query": USERS, "extensions": {"cost": True}})
        assert socket.receive()["payload"]["extensions"] == {"cost": COST}
        assert socket.receive() == {"id": "1", "type": "complete"}
        socket.send(type="subscribe", id="2", payload={"query": follow, "extensions": {"cost": True}})
        assert socket.receive(pings=True)["type"] == "ping"  # the subscription holds
        socket.send(type="subscribe", id="3", payload={"query": follow})
        assert socket.receive(pings=True)["type"] == "ping"
        add("one")
        found = {message["id"]: message["payload"] for message in (socket.receive(), socket.receive())}
        assert found["2"]["extensions"] == {"cost": told}
        assert found["2"]["data"] == found["3"]["data"] and "extensions" not in found["3"]
    body = json.dumps({"query": follow, "extensions": {"cost": True}}).encode()
    with EventStream(admin.port, "/graphql", method="POST", body=body, token=admin.token) as stream:
        add("two")
        assert stream.change()["extensions"] == {"cost": told}
    target = "/users/changes?fields=posts[first=4](id)"
    with EventStream(admin.port, target, token=admin.token, headers={"Prefer": "cost"}) as stream:
        assert stream.headers["cost"] == "price=5, allowed=5000, depth=2"
        assert stream.headers["preference-applied"] == "cost"
