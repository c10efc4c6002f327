"""What a request costs is told to whoever asks, whichever way it is sent, and to nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.demo.model import model
from tests.contract.http.data import ANN, ROWS
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import Command

USERS = "{ users(first: 2) { posts(first: 3) { title } } }"
FIELDS = "/users?first=2&fields=posts[first=3](title)"
COST = {"price": 8, "allowed": 5000, "depth": 2}
HEADER = "price=8, allowed=5000, depth=2"


@pytest.fixture(scope="module")
def shop() -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, "sqlite:///:memory:", runner, ROWS) as found:
        yield found


# the query style


def asked(service: Service, query: str, extensions: Any = None, **more: Any) -> Any:
    request = {"query": query, **more, **({} if extensions is None else {"extensions": extensions})}
    answer = service.post(request, token=service.token(ANN, "admin"))
    assert answer.status == 200, answer.body
    return answer.json()


def test_a_post_tells_behind_the_data(shop: Service) -> None:
    for _ in range(3):  # cold, noted, remembered
        found = asked(shop, USERS, {"cost": True})
        assert list(found) == ["data", "extensions"]
        assert found["extensions"] == {"cost": COST}
        assert found["data"] == asked(shop, USERS)["data"]


@pytest.mark.parametrize(
    "extensions", [{}, {"cost": False}, {"cost": None}, {"cost": 1}, {"cost": "true"}, {"costs": True}]
)
def test_who_does_not_ask_is_told_nothing(shop: Service, extensions: Any) -> None:
    assert asked(shop, USERS, extensions) == asked(shop, USERS)
    assert "extensions" not in asked(shop, USERS, extensions)


def test_a_get_tells_too_and_the_answer_is_private(shop: Service) -> None:
    answer = shop.get_query({"query": USERS, "extensions": '{"cost":true}'})
    assert answer.json()["extensions"] == {"cost": COST}
    assert answer.headers["cache-control"] == "private, no-cache"
    assert answer.headers["etag"] != shop.get_query({"query": USERS}).headers["etag"]


def test_the_price_is_that_of_the_values(shop: Service) -> None:
    query = "query($n: Int!, $m: Int! = 3) { users(first: $n) { posts(first: $m) { title } } }"
    for size in (2, 3, 10):
        found = asked(shop, query, {"cost": True}, variables={"n": size})
        assert found["extensions"]["cost"]["price"] == size * 4
    answer = shop.post(
        {"query": query, "variables": {"n": 500}, "extensions": {"cost": True}},
        accept="application/graphql-response+json",
    )
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
    assert answer.json() == shop.query(query, {"n": 500}).json()  # the same as without


def test_what_is_not_read_costs_nothing(shop: Service) -> None:
    for query in ("{ __typename }", "{ __schema { queryType { name } } }"):
        assert asked(shop, query, {"cost": True})["extensions"]["cost"] == {"price": 0, "allowed": 5000, "depth": 0}


def test_a_mutation_tells_too(shop: Service) -> None:
    make = 'createUser(input: {name: "Zed", email: "%s"}) { posts(first: 4) { id } }'
    found = asked(shop, f"mutation {{ a: {make % 'a@x'} b: {make % 'b@x'} }}", {"cost": True})
    assert found["extensions"]["cost"] == {"price": 12, "allowed": 5000, "depth": 2}
    answer = shop.post(
        {"query": f"mutation {{ a: {make % 'a@x'} }}", "extensions": {"cost": True}}, token=shop.token(ANN, "admin")
    )
    assert answer.code == "CONFLICT" and "extensions" not in answer.json()  # what fails tells what is wrong


def test_a_refusal_tells_both_numbers_in_both_styles(shop: Service) -> None:
    dear = shop.query("{ users(first: 100) { posts(first: 50) { id } } }")
    assert dear.json()["errors"][0]["extensions"] == {
        "code": "TOO_COMPLEX",
        "price": 5100,
        "allowed": 5000,
        "list": "users.posts",
        "first": 49,
    }
    rest = shop.get("/users?first=100&fields=posts[first=50](id)").json()
    assert (rest["code"], rest["price"], rest["allowed"]) == ("TOO_COMPLEX", 5100, 5000)
    assert (rest["list"], rest["first"]) == ("users.posts", 49)
    deep, fields = "id", "id"
    for _ in range(6):
        deep, fields = f"author {{ posts(first: 1) {{ {deep} }} }}", f"author(posts[first=1]({fields}))"
    told = shop.query(f"{{ posts(first: 1) {{ {deep} }} }}").json()["errors"][0]["extensions"]
    assert told == {"code": "TOO_DEEP", "depth": 13, "allowed": 10}
    rest = shop.get(f"/posts?first=1&fields={fields}").json()
    assert (rest["code"], rest["depth"], rest["allowed"]) == ("TOO_DEEP", 13, 10)


def test_nothing_is_looked_at_where_there_are_no_extensions(shop: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*given: Any) -> Any:
        raise AssertionError(given)

    monkeypatch.setattr("diptych.serve.endpoint.graphql.asks_cost", looked)
    assert "data" in asked(shop, USERS)
    with pytest.raises(AssertionError):
        asked(shop, USERS, {"cost": True})


# the resource style


def sent(service: Service, method: str, url: str, body: Any = None, prefer: str = "cost", **headers: str) -> Answer:
    given = {"prefer": prefer, "content-type": "application/json", **headers}
    data = b"" if body is None else json.dumps(body).encode()
    return service.send(method, url, headers=given, body=data, token=service.token(ANN, "admin"))


def test_a_read_tells_in_a_header(shop: Service) -> None:
    answer = sent(shop, "GET", FIELDS)
    assert (answer.headers["cost"], answer.headers["preference-applied"]) == (HEADER, "cost")
    assert answer.headers["cache-control"] == "private, no-cache"
    plain = shop.get(FIELDS, token=shop.token(ANN, "admin"))
    assert plain.body == answer.body and "cost" not in plain.headers
    assert sent(shop, "HEAD", FIELDS).headers["cost"] == HEADER
    same = sent(shop, "GET", FIELDS, **{"if-none-match": answer.headers["etag"]})
    assert (same.status, same.headers["cost"]) == (304, HEADER)
    assert sent(shop, "GET", f"/users/{ANN}").headers["cost"] == "price=1, allowed=5000, depth=1"
    assert sent(shop, "GET", f"/users/{ANN}/posts?first=4").headers["cost"] == "price=5, allowed=5000, depth=2"


def test_preferences_go_together(shop: Service) -> None:
    answer = sent(shop, "GET", FIELDS, prefer="change-cursor, cost")
    assert answer.headers["preference-applied"] == "change-cursor, cost"
    assert answer.headers["change-cursor"] and answer.headers["cost"] == HEADER
    made = sent(shop, "POST", "/users", {"name": "Una", "email": "una@x"})
    gone = sent(
        shop, "DELETE", made.headers["location"] + "?fields=posts[first=2](id)", prefer="cost, return=representation"
    )
    assert gone.status == 200 and gone.headers["preference-applied"] == "return=representation, cost"
    assert gone.headers["cost"] == "price=4, allowed=5000, depth=2"


def test_changes_tell_too(shop: Service) -> None:
    made = sent(shop, "POST", "/users", {"name": "Vic", "email": "vic@x"})
    where = made.headers["location"]
    assert made.headers["cost"] == "price=2, allowed=5000, depth=1"
    assert sent(shop, "PATCH", where, {"name": "Vi"}).headers["cost"] == "price=2, allowed=5000, depth=1"
    patch = sent(
        shop,
        "PATCH",
        where,
        [{"op": "replace", "path": "/name", "value": "V"}],
        **{"content-type": "application/json-patch+json"},
    )
    assert (patch.status, patch.headers["cost"]) == (200, "price=2, allowed=5000, depth=1")
    put = sent(shop, "PUT", f"{where}?fields=posts[first=7](id)", {"name": "Vic", "email": "vic@x"})
    assert put.headers["cost"] == "price=9, allowed=5000, depth=2"
    gone = sent(shop, "DELETE", where)
    assert (gone.status, gone.headers["cost"]) == (204, "price=1, allowed=5000, depth=1")
    many = sent(shop, "POST", "/users", [{"name": "W", "email": f"w{n}@x"} for n in range(5)])
    assert many.headers["cost"] == "price=10, allowed=5000, depth=1"


def test_an_answer_that_is_kept_holds_no_cost(shop: Service) -> None:
    first = sent(shop, "POST", "/users", {"name": "Xi", "email": "xi@x"}, **{"idempotency-key": "k1"})
    assert "cost" in first.headers
    again = sent(shop, "POST", "/users", {"name": "Xi", "email": "xi@x"}, prefer="nothing", **{"idempotency-key": "k1"})
    assert again.headers["idempotency-replayed"] == "true" and "cost" not in again.headers
    assert "preference-applied" not in again.headers


def test_the_log_tells_what_a_page_costs(shop: Service) -> None:
    answer = sent(shop, "GET", "/posts/changes?first=3&fields=author(name)")
    assert answer.headers["cost"] == "price=6, allowed=5000, depth=2"
    assert sent(shop, "GET", "/posts/changes?first=3&fields=title").headers["cost"] == "price=3, allowed=5000, depth=1"


# the command line


def lines(done: Any, *words: str) -> list[str]:
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith(words)]


def test_explain_tells_the_price_and_how_it_comes_about(command: Command) -> None:
    told = ["Depth  4 of 10", "Price  111 of 5000 = 1 + 10 posts × (1 + 5 comments × 2)"]
    query = '{ user(id: "x") { posts(first: 10) { comments(first: 5) { author { name } } } } }'
    assert lines(command("explain", query), "Depth", "Price") == told
    url = "GET /users/x?fields=posts[first=10](comments[first=5](author(name)))"
    assert lines(command("explain", url), "Depth", "Price") == told


@pytest.mark.parametrize(
    ("request_", "body", "told"),
    [
        ("{ __typename }", None, ["Depth  0 of 10", "Price  0 of 5000"]),
        ("GET /users/x", None, ["Depth  1 of 10", "Price  1 of 5000"]),
        ("GET /users?first=7&count=exact", None, ["Depth  1 of 10", "Price  27 of 5000 = 20 + 7 users × 1"]),
        (
            '{ a: users(first: 3) { id } b: post(id: "x") { id } }',
            None,
            ["Depth  1 of 10", "Price  4 of 5000 = 1 + 3 users × 1"],
        ),
        (
            "POST /users?fields=posts[first=2](id)",
            '{"name": "A", "email": "a@x"}',
            ["Depth  2 of 10", "Price  4 of 5000 = 2 + 2 posts × 1"],
        ),
        ("DELETE /users/x", None, ["Depth  1 of 10", "Price  1 of 5000"]),
        (
            "POST /users",
            '[{"name": "A", "email": "a@x"}, {"name": "B", "email": "b@x"}]',
            ["Depth  1 of 10", "Price  4 of 5000 = 2 + 2"],
        ),
        (
            "subscription { postChanged { kind post { comments(first: 9) { id } } } }",
            None,
            ["Depth  2 of 10", "Price  10 for each change, of 5000 = 1 + 9 comments × 1"],
        ),
    ],
)
def test_explain_prices_all_that_can_be_sent(
    command: Command, request_: str, body: str | None, told: list[str]
) -> None:
    more = [] if body is None else ["--body", body]
    assert lines(command("explain", request_, "--as", "admin", *more), "Depth", "Price") == told


def test_explain_knows_the_limits_that_are_set(command: Command) -> None:
    done = command("explain", "GET /users?first=50", DIPTYCH_MAX_COMPLEXITY="40", DIPTYCH_MAX_DEPTH="3")
    assert lines(done, "Depth", "Price") == ["Depth  1 of 3", "Price  50 of 40 = 50 users × 1"]


def test_an_explanation_of_what_is_too_dear_names_the_page(command: Command) -> None:
    for request in (
        "{ users { posts { comments { author { posts { title } } } } } }",
        "GET /users?fields=posts(comments(author(posts(title))))",
    ):
        told = command("explain", request).stdout.splitlines()
        at = [line.startswith("Price") for line in told].index(True)
        assert told[at] == ("Price  24220 of 5000 = 20 users × (1 + 10 posts × (1 + 10 comments × (2 + 10 posts × 1)))")
        assert told[at + 1] == "       A `first` of at most 2 on users.posts, instead of 10, would help."
