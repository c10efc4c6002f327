"""Actions and queries, in both styles, on both stores: one transaction, the caller's rules, typed on both sides."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.serve.http.request import Request
from tests.contract.calls.press import ANN, BOB, DRAFT, ROWS, SEEN, TILL, meddling, model
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def press(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(model, new_database(), runner, ROWS, statement_timeout=2.0) as service:
        yield service


def post(service: Service, url: str, body: Any = None, token: str | None = None, **headers: str) -> Answer:
    raw = b"" if body is None else json.dumps(body).encode()
    given = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    return service.send("POST", url, headers=given, body=raw, token=token)


def title(service: Service, article: str, token: str | None) -> Any:
    return service.get(f"/articles/{article}?fields=title,version", token=token).json()


def test_an_action_on_a_row(press: Service) -> None:
    ann = press.token(ANN)
    answer = post(
        press, f"/articles/{DRAFT}/publish?fields=title,published,version,author(name)", {"title": "new"}, ann
    )
    assert (answer.status, answer.json()) == (
        200,
        {"title": "new", "published": True, "version": 2, "author": {"name": "Ann"}},
    )
    assert answer.headers["etag"].startswith('"2.')
    again = press.data(
        "mutation($id: ID!) { publishArticle(id: $id) { title version } }", {"id": DRAFT}, token=press.token(ANN)
    )
    assert again == {"publishArticle": {"title": "new", "version": 2}}, "nothing was assigned that differs"


def test_arguments_are_checked_before_anything_runs(press: Service) -> None:
    ann = press.token(ANN)
    answer = post(press, f"/articles/{DRAFT}/publish", {"title": "x" * 11, "colour": 1}, ann)
    assert (answer.status, answer.code, sorted(answer.places)) == (422, "BAD_USER_INPUT", ["/colour", "/title"])
    asked = press.query(
        f'mutation($t: String) {{ publishArticle(id: "{DRAFT}", title: $t) {{ id }} }}', {"t": "x" * 11}, token=ann
    )
    assert (asked.status, asked.code, asked.places) == (422, "BAD_USER_INPUT", ["/variables/t"])
    assert post(press, f"/tills/{TILL}/take", {}, ann).places == ["/amount"]
    assert post(press, f"/tills/{TILL}/take", {"amount": None}, ann).places == ["/amount"]
    assert post(press, f"/tills/{TILL}/take", {"amount": "-1.00"}, ann).places == ["/amount"]
    assert post(press, f"/tills/{TILL}/take", [], ann).status == 422
    assert post(press, f"/tills/{TILL}/take?colour=1", {"amount": "1.00"}, ann).code == "BAD_REQUEST"
    assert title(press, DRAFT, ann) == {"title": "draft", "version": 1}


def test_a_row_that_cannot_be_read_has_no_actions(press: Service) -> None:
    for token in (None, press.token(BOB)):
        assert post(press, f"/articles/{DRAFT}/publish", None, token).status == 404
    assert post(press, "/articles/nonsense/publish", None, press.token(ANN)).status == 404
    told = press.query(f'mutation {{ publishArticle(id: "{DRAFT}") {{ id }} }}', token=press.token(BOB))
    assert told.json() == {
        "data": None,
        "errors": [
            {"message": "There is nothing here.", "path": ["publishArticle"], "extensions": {"code": "NOT_FOUND"}}
        ],
    }


def test_the_rules_of_the_caller_hold_inside(press: Service) -> None:
    answer = post(press, f"/articles/{SEEN}/publish", {"title": "mine"}, press.token(BOB))
    assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert title(press, SEEN, None) == {"title": "seen", "version": 1}


def test_trusted_code_is_not_held_back(press: Service) -> None:
    assert post(press, f"/articles/{SEEN}/judge", {"text": "fine"}, press.token(BOB)).status == 204
    found = press.get(f"/articles/{SEEN}?fields=review,version", token=press.token(ANN, "editor")).json()
    assert found == {"review": "fine", "version": 2}
    asked = f'mutation {{ judgeArticle(id: "{SEEN}", text: "well") }}'
    assert press.data(asked, token=press.token(BOB)) == {"judgeArticle": True}


@pytest.mark.parametrize(("name", "status", "code"), [("fail", 500, "INTERNAL"), ("refuse", 409, "CONFLICT")])
def test_what_is_raised_takes_back_everything(
    press: Service, name: str, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    ann = press.token(ANN)
    with caplog.at_level(logging.CRITICAL, "diptych"):
        answer = post(press, f"/articles/{DRAFT}/{name}", None, ann)
        both = press.query(
            f'mutation {{ createArticle(input: {{authorId: "{ANN}", title: "lost"}}) {{ id }} {name}Article(id: "{DRAFT}") {{ id }} }}',
            token=ann,
        )
    assert (answer.status, answer.code) == (status, code)
    assert b"tiger" not in answer.body + both.body
    assert both.code == code
    assert title(press, DRAFT, ann) == {"title": "draft", "version": 1}
    assert "lost" not in [row["title"] for row in press.rows("/articles", token=ann)]


def test_changes_and_actions_of_a_request_are_one_transaction(press: Service) -> None:
    data = press.data(
        f'mutation {{ a: createArticle(input: {{authorId: "{ANN}", title: "one"}}) {{ title }} '
        f'b: publishArticle(id: "{DRAFT}", title: "two") {{ title }} c: shredArticle(id: "{SEEN}") }}',
        token=press.token(ANN),
    )
    assert data == {"a": {"title": "one"}, "b": {"title": "two"}, "c": "seen"}
    assert press.get(f"/articles/{SEEN}", token=press.token(ANN)).status == 404


def test_an_answer_that_the_caller_may_not_see_is_refused_and_undone(press: Service) -> None:
    ann = press.token(ANN)
    answer = post(press, f"/articles/{DRAFT}/give", {"to": BOB}, ann)
    assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert title(press, DRAFT, ann) == {"title": "draft", "version": 1}
    assert post(press, f"/articles/{SEEN}/give?fields=author(name)", {"to": BOB}, ann).json() == {
        "author": {"name": "Bob"}
    }


def test_actions_of_the_class_are_for_their_role(press: Service) -> None:
    assert post(press, "/articles/reprint").status == 401
    assert post(press, "/articles/reprint", None, press.token(ANN)).status == 403
    assert press.query("mutation { reprintArticles { id } }").code == "UNAUTHENTICATED"
    assert press.query("mutation { reprintArticles { id } }", token=press.token(ANN)).code == "FORBIDDEN"
    editor = press.token(ANN, "editor")
    post(press, f"/articles/{DRAFT}/publish", None, editor)
    answer = post(press, "/articles/reprint?fields=title,author(name)", {"times": 2}, editor)
    rows = [{"title": text, "author": {"name": "Ann"}} for text in ("seen", "seen", "draft", "draft")]
    assert (answer.status, answer.json()) == (200, {"data": rows})


def test_what_nobody_reads_can_be_written_by_code(press: Service) -> None:
    assert post(press, "/notes/leave", {"text": "hello"}).status == 204
    assert press.data('mutation { leaveNotes(text: "again") }') == {"leaveNotes": True}
    assert press.get("/notes").status == 401


def test_queries(press: Service) -> None:
    ann = press.token(ANN)
    assert press.get("/articles/latest?limit=1&fields=title", token=ann).json() == {"data": [{"title": "seen"}]}
    assert press.get("/articles/latest?fields=title").json() == {"data": [{"title": "seen"}]}
    assert press.get("/articles/named?title=draft&fields=title", token=ann).json() == {"title": "draft"}
    assert press.get("/articles/named?title=draft").json() is None
    assert press.data(
        "query($n: Int! = 5) { latestArticles(limit: $n) { title } articles(first: 1) { id } "
        'none: namedArticles(title: "draft") { id } }'
    ) == {"latestArticles": [{"title": "seen"}], "articles": [{"id": SEEN}], "none": None}
    assert press.get("/articles/amount", token=press.token(ANN, "editor")).json() == 3
    assert press.get("/articles/amount", token=ann).status == 403


@pytest.mark.parametrize("alias", ["_id", "id", "__id", "__typename_"])
def test_an_alias_of_the_client_cannot_lose_the_rows_of_a_query(press: Service, alias: str) -> None:
    ann = press.token(ANN)
    titles = [row["title"] for row in press.data("{ latestArticles { title } }", token=ann)["latestArticles"]]
    assert titles
    asked = press.data(f"{{ latestArticles {{ {alias}: title }} }}", token=ann)
    assert asked == {"latestArticles": [{alias: title} for title in titles]}
    assert press.rows(f"/articles/latest?fields={alias}:title", token=ann) == asked["latestArticles"]


def test_a_list_shows_only_what_the_caller_may_read(press: Service) -> None:
    names = [row["title"] for row in press.get("/articles/hidden", token=press.token(BOB)).json()["data"]]
    assert names == ["bobs", "seen"]
    assert press.data("{ hiddenArticles { title } }") == {"hiddenArticles": [{"title": "seen"}]}


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("limit=0", ["/query/limit"]),
        ("limit=x", ["/query/limit"]),
        ("colour=1", ["/query/colour"]),
        ("fields=nothing", ["/query/fields"]),
        ("limit=1&limit=2", ["/query/limit"]),
    ],
)
def test_faulty_arguments_of_a_query(press: Service, url: str, places: list[str]) -> None:
    answer = press.get(f"/articles/latest?{url}")
    assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", places)


def test_a_query_is_cached_like_any_read(press: Service) -> None:
    first = press.get("/articles/latest")
    mark = first.headers["etag"]
    assert press.get("/articles/latest", headers={"if-none-match": mark}).status == 304
    assert press.send("HEAD", "/articles/latest").status == 200
    assert first.headers["cache-control"] == "private, no-cache"


def test_a_query_cannot_write(
    runner: asyncio.Runner, new_database: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    with in_process(meddling, new_database(), runner) as service:
        assert post(service, "/meddlers", {}).status == 201
        with caplog.at_level(logging.CRITICAL, "diptych"):
            assert service.get("/meddlers/meddle").status == 500
        assert service.rows("/meddlers?fields=text,version") == [{"text": "as it was", "version": 1}]


def test_methods(press: Service) -> None:
    for method, url, allow in (
        ("GET", f"/articles/{SEEN}/publish", "POST, OPTIONS"),
        ("POST", "/articles/latest", "GET, HEAD, OPTIONS"),
        ("DELETE", "/articles/reprint", "POST, OPTIONS"),
    ):
        answer = press.send(method, url)
        assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert press.send("OPTIONS", "/articles/latest").headers["allow"] == "GET, HEAD, OPTIONS"


def test_an_action_comes_once_with_its_key(press: Service) -> None:
    ann = press.token(ANN)
    answers = [post(press, f"/tills/{TILL}/take", {"amount": "1.50"}, ann, idempotency_key="k") for _ in range(3)]
    assert len({answer.body for answer in answers}) == 1
    assert press.get(f"/tills/{TILL}").json()["total"] == "1.50"
    assert (
        post(press, f"/tills/{TILL}/take", {"amount": "2.50"}, ann, idempotency_key="k").code == "IDEMPOTENCY_MISMATCH"
    )


def call(service: Service, url: str, body: Any, token: str | None = None) -> Any:
    """A request that is not yet awaited."""
    raw = json.dumps(body).encode()

    async def read(most: int) -> bytes:
        return raw

    headers = {b"content-type": b"application/json"}
    if token:
        headers[b"authorization"] = b"Bearer " + token.encode()
    return service.handler.handle(Request("POST", url, "", headers, read))


def test_actions_on_one_row_do_not_lose_each_other(press: Service) -> None:
    async def all_at_once() -> list[int]:
        replies = await asyncio.gather(*(call(press, f"/tills/{TILL}/take", {"amount": "1.00"}) for _ in range(20)))
        return [reply.status for reply in replies]

    assert press.runner.run(all_at_once()) == [200] * 20
    assert press.get(f"/tills/{TILL}").json()["total"] == "20.00"


@pytest.mark.slow
@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)  # only SQLite has one writer for all
def test_an_action_that_takes_too_long_holds_nobody_up_for_ever(press: Service) -> None:
    async def both() -> list[int]:
        slow = asyncio.create_task(call(press, f"/tills/{TILL}/wait", {"seconds": 3.0}))
        await asyncio.sleep(0.2)
        quick = await call(press, f"/tills/{TILL}/take", {"amount": "1.00"})
        return [(await slow).status, quick.status]

    began = time.monotonic()
    assert press.runner.run(both()) == [504, 200]
    assert time.monotonic() - began < 8
    assert press.get(f"/tills/{TILL}").json()["total"] == "1.00"


def test_a_caller_who_goes_away_frees_the_writer(press: Service) -> None:
    async def gone() -> int:
        slow = asyncio.create_task(call(press, f"/tills/{TILL}/wait", {"seconds": 30.0}))
        await asyncio.sleep(0.3)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        return int((await call(press, f"/tills/{TILL}/take", {"amount": "1.00"})).status)

    began = time.monotonic()
    assert press.runner.run(gone()) == 200
    assert time.monotonic() - began < 1.5
    assert press.get(f"/tills/{TILL}").json()["total"] == "1.00"


def test_the_schema_tells_of_them_exactly(press: Service) -> None:
    asked = "{ __schema { queryType { fields { name } } mutationType { fields { name args { name type { kind name ofType { name } } } } } } }"
    for token, there, absent in (
        (None, "publishArticle", "reprintArticles"),
        (press.token(ANN, "editor"), "reprintArticles", ""),
    ):
        found = press.data(asked, token=token)["__schema"]
        names = {field["name"] for field in found["mutationType"]["fields"]}
        assert there in names and absent not in names
        assert "latestArticles" in {field["name"] for field in found["queryType"]["fields"]}
