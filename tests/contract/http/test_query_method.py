"""QUERY (RFC 10008): a safe method with a body, the same Ask as GET with a query string."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from diptych.api.rest.query import read_query
from diptych.api.rest.query_body import read_query_body
from diptych.api.rest.target import find_target
from diptych.api.rest.translate import translate
from diptych.demo.model import model
from tests.contract.http.data import ANN
from tests.support.in_process import Answer, Service

HEADERS = {"content-type": "application/json"}
WHERE = {"and": [{"published": {"eq": True}}, {"comments": {"some": {"body": {"contains": "o"}}}}]}
BODIES: list[dict[str, Any]] = [
    {},
    {"where": WHERE},
    {"where": {"title": {"in": ["First", "Second"]}}, "sort": "-createdAt,title", "first": 3, "count": "exact"},
    {"fields": "title,comments[first=2](body)", "sort": ["title", "-id"], "last": 2},
    {"fields": ["title", "author(name)"], "offset": 1, "first": 2},
]


def query(service: Service, url: str, body: Any, token: str | None = None, **more: str) -> Answer:
    headers = {**HEADERS, **{name.replace("_", "-"): value for name, value in more.items()}}
    return service.send("QUERY", url, body=json.dumps(body).encode(), headers=headers, token=token)


def parameters(body: dict[str, Any]) -> str:
    texts = {name: ",".join(value) if isinstance(value, list) else value for name, value in body.items()}
    return urlencode({**texts, **({"where": json.dumps(body["where"])} if "where" in body else {})})


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", ["/posts", f"/users/{ANN}/posts"])
def test_a_query_is_the_ask_and_the_answer_of_a_get(shop: Service, path: str, body: dict[str, Any]) -> None:
    target = find_target(path, model)
    assert target is not None
    view = model.view(model.signature(model.viewer(frozenset({"admin"}), ANN)))
    wishes = [
        translate(target, given, view)
        for given in (read_query(parameters(body), target), read_query_body(body, target))
    ]
    assert wishes[0].asks == wishes[1].asks
    token = shop.token(ANN, "admin")
    got, asked = shop.get(f"{path}?{parameters(body)}", token=token), query(shop, path, body, token)
    assert (asked.status, asked.body, asked.headers["etag"]) == (got.status, got.body, got.headers["etag"])
    assert "link" not in asked.headers and asked.headers["cache-control"] == "private, no-cache"
    assert query(shop, path, body, token, if_none_match=asked.headers["etag"]).status == 304


def test_pages_follow_by_their_cursors(shop: Service) -> None:
    first = query(shop, "/posts", {"first": 2, "sort": "title"}).json()
    cursor = first["page"]["next"]
    second = query(shop, "/posts", {"first": 2, "sort": "title", "after": cursor}).json()
    assert (
        cursor
        and [*first["data"], *second["data"]] == query(shop, "/posts", {"first": 4, "sort": "title"}).json()["data"]
    )
    assert query(shop, "/posts", {"first": 2, "sort": "title", "after": None}).json() == first


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({"nope": 1, "first": "2"}, ["/nope", "/first"]),
        ({"first": 0}, ["/first"]),
        ({"where": {"nope": {"eq": 1}}}, ["/where/nope"]),
        ({"where": {"title": {"eq": 5}}}, ["/where/title/eq"]),
        ({"sort": 5, "fields": [1], "count": True}, ["/sort", "/fields", "/count"]),
        ({"fields": "title,"}, ["/fields"]),
        ({"after": "nonsense"}, ["/after"]),
        ([], [""]),
    ],
)
def test_faults_point_into_the_body(shop: Service, body: Any, faults: list[str]) -> None:
    answer = query(shop, "/posts", body)
    assert (answer.status, answer.code, answer.places) == (422, "BAD_USER_INPUT", faults), answer.body


def test_lists_alone_take_it_and_say_so(shop: Service) -> None:
    assert query(shop, f"/users/{ANN}", {}).status == 405
    assert query(shop, "/posts/changes", {}).status == 405
    assert query(shop, "/posts?first=1", {}).status == 400
    assert query(shop, "/posts", {}, content_type="text/plain").status == 415
    assert query(shop, "/orders", {}).status == 401
    head = shop.send("OPTIONS", "/posts").headers
    assert head["accept-query"] == "application/json" and "QUERY" in head["allow"].split(", ")


def test_graphql_takes_queries_and_no_mutations(shop: Service) -> None:
    body = {"query": "{ users(first: 1) { name } }"}
    assert query(shop, "/graphql", body).json() == shop.query(body["query"]).json()
    answer = query(shop, "/graphql", {"query": 'mutation { deleteUser(id: "1") { id } }'}, shop.token(ANN, "admin"))
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
