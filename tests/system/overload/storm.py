"""Requests of which no two are alike, each as long as a client can make it: whatever remembers them grows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from urllib.parse import quote

from diptych.serve.http.request import Request
from tests.contract.http.data import ANN
from tests.support.in_process import Service, encoded

Storm = Callable[[Service, int], None]
LONG = 50_000
"""Characters of what is long."""


def _text(number: int, long: int = LONG) -> str:
    return f"{number:08}" * (long // 8)


def filter_values(service: Service, number: int) -> None:
    where = {"name": {"eq": _text(number)}}
    service.get("/users?" + encoded(first="1", where=where))
    service.query("query($w: UserWhere) { usersConnection(first: 1, where: $w) { nodes { id } } }", {"w": where})


def padded_tokens(service: Service, number: int) -> None:
    token = service.token(ANN) if not number % 50 else _tokens.setdefault(id(service), service.token(ANN))
    for header in ("Bearer " + " " * (LONG + number) + token, "Bearer " + token + "\t" * (LONG + number)):
        assert service.get("/health/live", headers={"authorization": header}).status == 200


_tokens: dict[int, str] = {}


def bad_tokens(service: Service, number: int) -> None:
    assert service.get("/users", headers={"authorization": f"Bearer {_text(number)}"}).status == 401


def users(service: Service, number: int) -> None:
    """Each asks for the same list, in which a rule asks who they are."""
    token = service.token(f"0190a000-0001-7000-8000-{number:012x}")
    assert service.get("/posts?first=1&fields=title", token=token).status == 200
    assert service.get("/orders?first=1&fields=total", token=token).status == 200


def scopes(service: Service, number: int) -> None:
    names = sorted(service.handler.engine.model.scopes)
    chosen = [name for at, name in enumerate(names) if number >> at & 1]
    token = service.token(ANN, scopes=chosen)
    service.data("{ __typename }", token=token)
    for _ in range(2):
        service.get("/users?first=1", token=token)
        service.send(
            "PATCH", f"/users/{ANN}", headers={"content-type": "application/json"}, body=b'{"name":"Ann"}', token=token
        )


def documents(service: Service, number: int) -> None:
    literals = " ".join(
        f'a{at}: users(first: 1, where: {{name: {{eq: "{_text(number, 4_000)}"}}}}) {{ id }}' for at in range(3)
    )
    for _ in range(2):
        assert service.query("{ " + literals + " }").status == 200


def comments(service: Service, number: int) -> None:
    """Documents that differ in what is ignored."""
    for _ in range(2):
        assert service.query(f"{{ __typename }} #{_text(number)}").status == 200


def shapes(service: Service, number: int) -> None:
    """One document, of which each request has variables of another shape."""
    terms = [{"name": {"eq" if number >> at & 1 else "contains": "x"}} for at in range(12)]
    service.data("query($w: UserWhere) { users(first: 1, where: $w) { id } }", {"w": {"or": terms}})


def query_strings(service: Service, number: int) -> None:
    alias = "a" + _text(number, 4_000)
    for _ in range(2):
        assert service.get(f"/users?first=1&fields={alias}:name").status == 200
    assert service.get(f"/users?first=1&after={_text(number)}").status == 400


def headers(service: Service, number: int) -> None:
    for name in ("accept", "prefer", "if-none-match", "x-request-id"):
        value = f"application/json, x/{_text(number)}" if name == "accept" else _text(number)
        assert service.get("/users?first=1", headers={name: value}).status == 200
    body = {"content-type": f"application/json; x={_text(number)}"}
    service.send("POST", "/graphql", headers=body, body=b'{"query":"{ __typename }"}')


def addresses(service: Service, number: int) -> None:
    async def read(_: int) -> bytes:
        return b""

    async def ask() -> None:
        for host in (f"10.{number >> 8 & 255}.{number & 255}.1", f"2001:db8:{number:x}::1", _text(number)):
            await service.handler.handle(
                Request("GET", "/users", f"first=1&fields=a{number}:name", {}, read, "", (host, 1))
            )

    service.runner.run(ask())


def persisted(service: Service, number: int) -> None:
    text = f"{{ __typename }} #{number} {_text(number)}"
    name = hashlib.sha256(text.encode()).hexdigest()
    request = {"query": text, "extensions": {"persistedQuery": {"version": 1, "sha256Hash": name}}}
    assert service.post(request).status == 200


def writes(service: Service, number: int) -> None:
    token = service.token(ANN)
    kind = {"content-type": "application/json", "idempotency-key": f'"{number}"'}
    body = {"authorId": ANN, "title": f"t{number}", "body": _text(number, 8_000), "published": bool(number % 2)}
    answer = service.send("POST", "/posts", headers=kind, body=json.dumps(body).encode(), token=token)
    assert answer.status == 201, answer.body
    id = answer.json()["id"]
    changed = {"content-type": "application/json", "if-match": ", ".join(f'"{at}"' for at in range(1 + number % 50))}
    service.send("PATCH", f"/posts/{id}", headers=changed, body=b'{"title":"u"}', token=token)
    assert service.send("DELETE", f"/posts/{id}", token=token).status == 204


def changes(service: Service, number: int) -> None:
    where = quote(json.dumps({"name": {"eq": _text(number)}}))
    service.get(f"/users/changes?first=1&where={where}")
    for _ in range(2):
        service.get(f"/users/changes?first=1&fields=kind,a{number}:id")


STORMS: tuple[Storm, ...] = (
    filter_values,
    padded_tokens,
    bad_tokens,
    users,
    scopes,
    documents,
    comments,
    shapes,
    query_strings,
    headers,
    addresses,
    persisted,
    writes,
    changes,
)


def blow(service: Service, numbers: range, storms: tuple[Storm, ...] = STORMS) -> None:
    """Send as many requests of every kind."""
    for number in numbers:
        for storm in storms:
            storm(service, number)
