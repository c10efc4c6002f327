"""What must work through any proxy: requests in both styles, ETags, event streams, WebSockets, and caches if it has one."""

from __future__ import annotations

import json

from tests.contract.live.clients import EventStream, WebSocket
from tests.fit.scenario import Scenarios
from tests.support.running import Client, Service


def check_proxy(front: Client, service: Service, scenario: Scenarios, admin: str) -> None:
    """Try all scenarios but the cache."""
    signed = front.signed_in(admin)
    with scenario("read"):
        assert front.get("/authors?first=1").status == 200
        assert "errors" not in front.query("{ authors { name } }")
        assert front.get("/nothing").json()["code"] == "NOT_FOUND"
    with scenario("create"):
        made = signed.post("/authors", {"name": "Proxy"})
        assert made.status == 201 and made.headers["location"].startswith("/authors/")
    with scenario("update"):
        path = made.headers["location"]
        tag = signed.get(path).headers["etag"]
        headers = {"content-type": "application/merge-patch+json", "if-match": tag}
        assert signed.request("PATCH", path, headers, b'{"mood":"keen"}').status == 200
        assert signed.request("PATCH", path, headers, b'{"mood":"glad"}').status == 412
    with scenario("conditional GET"):
        answer = signed.get("/authors?first=1&fields=name")
        assert signed.get("/authors?first=1&fields=name", if_none_match=answer.headers["etag"]).status == 304
    with scenario("event stream"), EventStream(front.port, "/authors/changes", token=admin) as stream:
        assert stream.status == 200
        service.signed_in(admin).post("/authors", {"name": "Heard"})
        while "data" not in (event := stream.next_event()):
            pass
        assert json.loads(event["data"])["author"]["name"] == "Heard"
    with scenario("WebSocket"), WebSocket(front.port) as channel:
        channel.begin(authorization=f"Bearer {admin}")
        now = signed.request("GET", "/authors?first=1", {"prefer": "change-cursor"}).headers["change-cursor"]
        follow = "subscription($after: String) { authorChanged(after: $after) { kind author { name } } }"
        channel.subscribe("1", follow, after=now)
        service.signed_in(admin).post("/authors", {"name": "Seen"})
        assert channel.receive()["payload"]["data"]["authorChanged"]["author"]["name"] == "Seen"


def check_cache(front: Client, service: Service, scenario: Scenarios, admin: str) -> None:
    """What is public is kept, and nothing of anybody who is signed in."""
    with scenario("cache"):
        direct, signed = service.signed_in(admin), front.signed_in(admin)
        path = direct.post("/authors", {"name": "Old"}).headers["location"] + "?fields=name"
        assert front.get(path).json() == {"name": "Old"} == signed.get(path).json()
        direct.request("PATCH", path, {"content-type": "application/merge-patch+json"}, b'{"name":"New"}')
        assert front.get(path).json() == {"name": "Old"}, "it is public for two minutes"
        assert signed.get(path).json() == {"name": "New"}, "what is asked with a token is never kept"
        assert service.get(path).json() == {"name": "New"}
