"""Checks of a service's own: what they see, when they are asked, and that what they refuse does not run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from diptych import Code, Limits, Refusal, RequestMeasures
from diptych.config import SETTINGS, Config
from diptych.demo.model import model as default
from diptych.errors import DiptychError
from diptych.policy.limits import CHECKS, Checks
from diptych.serve.request_limits import request_limits
from tests.contract.calls.press import ANN, BOB, SEEN, TILL
from tests.contract.guard.conftest import Pressed
from tests.support.in_process import Answer, Service

_STORE = ("run", "write", "change", "session")


class Watchful:
    """A check that notes what it is shown, and refuses if it is told to."""

    def __init__(self) -> None:
        self.shown: list[RequestMeasures] = []
        self.refuses = False

    def __call__(self, asked: RequestMeasures, limits: Limits) -> None:
        assert isinstance(limits, Limits)
        self.shown.append(replace(asked))
        if self.refuses:
            raise Refusal(Code.CONFLICT, "Not on a Sunday.")


@dataclass(frozen=True)
class Way:
    """One way to ask: how, and what a check sees of it."""

    send: Callable[[Service, str], Answer | str]
    style: str
    resources: frozenset[str]
    operation: str = ""
    price: int = 1
    depth: int = 1


def query(document: str, variables: Any = None, accept: str = "") -> Callable[[Service, str], Answer | str]:
    more = {"accept": accept} if accept else {}
    return lambda service, token: service.query(document, variables, token=token, **more)


def subscribe(document: str) -> Callable[[Service, str], Answer | str]:
    def begin(service: Service, token: str) -> str:
        try:
            service.follow(document, token=token).close()
        except Refusal as refusal:
            return refusal.code.value
        return ""

    return begin


def request(method: str, url: str, body: Any = None, **headers: str) -> Callable[[Service, str], Answer | str]:
    raw = b"" if body is None else json.dumps(body).encode()
    given = {"content-type": "application/json", **headers} if raw else headers

    def send(service: Service, token: str) -> Answer:
        answer = service.send(method, url, headers=given, body=raw, token=token)
        return answer

    return send


ARTICLE, WRITER, TILLS = frozenset({"Article"}), frozenset({"Writer"}), frozenset({"Till"})
WAYS: dict[str, Way] = {
    "nothing of the model": Way(query("query Q { __typename }"), "graphql", frozenset(), "Q", 0, 0),
    "the schema": Way(query("query Q { __schema { queryType { name } } }"), "graphql", frozenset(), "Q", 0, 0),
    "a query": Way(query("query Q { articles(first: 3) { author { name } } }"), "graphql", ARTICLE | WRITER, "Q", 6, 2),
    "a query with a page size in a variable": Way(
        query("query Q($n: Int) { articles(first: $n) { id } }", {"n": 4}), "graphql", ARTICLE, "Q", 4
    ),
    "a query without a name": Way(query("{ writers(first: 2) { id } }"), "graphql", WRITER, "", 2),
    "a query as events": Way(
        query("query Q { articles(first: 3) { id } }", accept="text/event-stream"), "graphql", ARTICLE, "Q", 3
    ),
    "a query of the model's code": Way(
        query("query Q { latestArticles { author { name } } }"), "graphql", ARTICLE | WRITER, "Q", 300, 2
    ),
    "a mutation": Way(
        query(f'mutation M {{ updateArticle(id: "{SEEN}", patch: {{title: "x"}}) {{ author {{ name }} }} }}'),
        "graphql",
        ARTICLE | WRITER,
        "M",
        3,
        2,
    ),
    "an action": Way(
        query(f'mutation M {{ takeTill(id: "{TILL}", amount: "1.00") {{ total }} }}'), "graphql", TILLS, "M", 101
    ),
    "a subscription": Way(
        subscribe("subscription S { articleChanged { article { author { name } } } }"),
        "graphql",
        ARTICLE | WRITER,
        "S",
        2,
        2,
    ),
    "one row": Way(
        request("GET", f"/articles/{SEEN}?fields=author(name)"),
        "rest",
        ARTICLE | WRITER,
        operation="GET /articles/{id}",
        price=2,
        depth=2,
    ),
    "a list": Way(request("GET", "/articles?first=3"), "rest", ARTICLE, operation="GET /articles", price=3),
    "a list of one row": Way(
        request("GET", f"/writers/{ANN}/articles?first=3"),
        "rest",
        ARTICLE | WRITER,
        operation="GET /writers/{id}/articles",
        price=4,
        depth=2,
    ),
    "a change": Way(
        request("PATCH", f"/articles/{SEEN}?fields=author(name)", {"title": "y"}),
        "rest",
        ARTICLE | WRITER,
        operation="PATCH /articles/{id}",
        price=3,
        depth=2,
    ),
    "a JSON Patch": Way(
        request(
            "PATCH",
            f"/articles/{SEEN}",
            [{"op": "replace", "path": "/title", "value": "z"}],
            **{"content-type": "application/json-patch+json"},
        ),
        "rest",
        ARTICLE,
        operation="PATCH /articles/{id}",
        price=2,
    ),
    "an action in the resource style": Way(
        request("POST", f"/tills/{TILL}/take", {"amount": "1.00"}),
        "rest",
        TILLS,
        operation="POST /tills/{id}/take",
        price=101,
    ),
    "a query of the model's code in the resource style": Way(
        request("GET", "/articles/latest?fields=title"), "rest", ARTICLE, operation="GET /articles/latest", price=200
    ),
    "the log of changes": Way(
        request("GET", "/articles/changes?first=5"), "rest", ARTICLE, operation="GET /articles/changes", price=5
    ),
}


def outcome(answer: Answer | str) -> str:
    """The code of what refused it; of an answer, nothing."""
    if isinstance(answer, str):
        return answer
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        found = next((line for line in answer.body.decode().splitlines() if line.startswith("data: {")), "")
        errors = json.loads(found.removeprefix("data: ") or "{}").get("errors", ())
        return str(errors[0]["extensions"]["code"]) if errors else ""
    return answer.code if answer.status >= 400 else ""


@pytest.mark.parametrize("name", WAYS)
def test_a_check_sees_what_is_asked_however_well_it_is_known(name: str, serving: Pressed) -> None:
    way, check = WAYS[name], Watchful()
    service = serving(check)
    for user in (
        (ANN, ANN, ANN, ANN, BOB)
        if "change" not in name and "JSON" not in name and "mutation" not in name
        else (ANN,) * 4
    ):
        check.shown.clear()
        assert outcome(way.send(service, service.token(user))) == ""
        seen = check.shown[-1]
        assert (seen.style, seen.viewer.id, seen.resources) == (way.style, user, way.resources)
        assert (seen.price, seen.depth) == (way.price, way.depth)
        assert seen.operation == way.operation


@pytest.mark.parametrize("name", WAYS)
def test_what_a_check_refuses_does_not_run(name: str, serving: Pressed, monkeypatch: pytest.MonkeyPatch) -> None:
    way, check = WAYS[name], Watchful()
    service = serving(check)
    ran: list[str] = []
    token = service.token(ANN)

    def counted(word: str) -> Any:
        call = getattr(service.app.store, word)

        def counting(*given: Any, **more: Any) -> Any:
            ran.append(word)
            return call(*given, **more)

        return counting

    for word in _STORE:
        monkeypatch.setattr(service.app.store, word, counted(word))
    for _ in range(4):  # cold, noted, remembered, and as it goes on
        check.refuses = True
        ran.clear()
        answer = way.send(service, token)
        assert outcome(answer) == "CONFLICT"
        assert not ran
        if isinstance(answer, Answer):
            assert b"Not on a Sunday." in answer.body
        check.refuses = False
        assert outcome(way.send(service, token)) == ""


def test_a_check_is_asked_before_anything_is_parsed(serving: Pressed) -> None:
    check = Watchful()
    service = serving(check)
    assert service.query("query Q { a { b c } d }} }").code == "GRAPHQL_PARSE_FAILED"
    (first,) = check.shown
    assert (first.tokens, first.operation, first.depth, first.least, first.price, first.resources) == (
        12,
        "Q",
        1,
        1,
        0,
        frozenset(),
    )
    check.refuses = True
    assert service.query("query R { a }} }").code == "CONFLICT"


def test_a_check_decides_by_who_asks(serving: Pressed) -> None:
    """A plan is shared by all who have the same role, and the check is not."""

    def not_bob(asked: RequestMeasures, limits: Limits) -> None:
        if asked.viewer.id == BOB:
            raise Refusal(Code.FORBIDDEN, "Not you.")

    service = serving(not_bob)
    ann, bob = service.token(ANN), service.token(BOB)
    for _ in range(4):
        assert service.query("{ writers { name } }", token=ann).status == 200
        assert service.query("{ writers { name } }", token=bob).code == "FORBIDDEN"
        assert service.get("/writers", token=ann).status == 200
        assert service.get("/writers", token=bob).code == "FORBIDDEN"


def test_a_check_may_have_its_own_words_for_what_diptych_would_refuse(serving: Pressed) -> None:
    """Those of Diptych come first in one list, so a check never sees more than the limits allow."""
    check = Watchful()
    service = serving(check, max_depth=2, max_complexity=100)
    assert service.query("{ articles { author { articles { id } } } }").code == "TOO_DEEP"
    assert service.query("{ articles(first: 100) { author { id } } }").code == "TOO_COMPLEX"
    assert all(each.depth <= 2 and each.price <= 100 for each in check.shown)


def test_what_diptych_checks_is_written_in_the_same_way() -> None:
    checks = Checks(Limits(), [Watchful()])
    assert checks._checks[: len(CHECKS)] == CHECKS
    asked = checks(RequestMeasures("graphql", Refusal))  # type: ignore[arg-type]  # wrong on purpose
    assert asked.style == "graphql"
    for check in CHECKS:
        check(asked, Limits())
        assert check.__annotations__ == {"measures": "RequestMeasures", "limits": "Limits", "return": "None"}


def test_a_fault_in_a_check_lets_nothing_through(serving: Pressed, caplog: pytest.LogCaptureFixture) -> None:
    def wrong(asked: RequestMeasures, limits: Limits) -> None:
        raise ZeroDivisionError("the password is tiger")

    service = serving(wrong)
    for answer in (service.query("{ writers { name } }"), service.get("/writers")):
        assert (answer.status, answer.code) == (500, "INTERNAL")
        assert b"tiger" not in answer.body
    assert "tiger" in caplog.text
    assert issubclass(Refusal, DiptychError)


# every number that a setting moves


def told(answer: Answer) -> str:
    body = answer.json()
    if "errors" in body and "detail" not in body:
        return str(body["errors"][0]["message"])
    return str(body["detail"]) + "".join(str(each["message"]) for each in body.get("errors", ()))


def test_every_limit_with_a_setting_has_its_default() -> None:
    given = request_limits(Config())
    assert given == Limits(), "the two tables say the same"
    numbers: dict[str, Any] = {each.name: 77 for each in SETTINGS if each.name.startswith("max_")}
    moved = request_limits(Config(**numbers))
    without = {name for name in Limits.__struct_fields__ if getattr(moved, name) != 77}
    assert without == {"definitions", "expanded", "described", "listed", "values", "group_keys", "numbers"}


@dataclass(frozen=True)
class Moved:
    """A limit that a setting moves: what asks for so much of it, in each style that has it, and how it is refused."""

    setting: str
    allowed: int
    document: Callable[[int], str]
    url: Callable[[int], str] | None = None
    code: str = "TOO_COMPLEX"
    url_code: str = ""


def repeated(number: int, word: str, between: str = " ") -> str:
    return between.join(word.replace("§", str(each)) for each in range(number))


def nested(number: int, begin: str, words: tuple[str, str], end: str, inside: str) -> str:
    """Relations in each other, so many brackets deep."""
    opened = "".join(words[each % 2] for each in range(number))
    return begin + opened + inside + end * number


PLAIN = ("id", "name", "version", "createdAt", "updatedAt")
MOVED = [
    Moved(
        "max_page",
        30,
        lambda n: f"{{ users(first: {n}) {{ id }} }}",
        lambda n: f"/users?first={n}",
        "BAD_USER_INPUT",
        "BAD_REQUEST",
    ),
    Moved(
        "max_page",
        200,
        lambda n: f"{{ users(first: {n}) {{ id }} }}",
        lambda n: f"/users?first={n}",
        "BAD_USER_INPUT",
        "BAD_REQUEST",
    ),
    Moved(
        "max_offset",
        7,
        lambda n: f"{{ users(offset: {n}) {{ id }} }}",
        lambda n: f"/users?offset={n}",
        "BAD_USER_INPUT",
        "BAD_REQUEST",
    ),
    Moved(
        "max_in",
        3,
        lambda n: f"{{ users(where: {{name: {{in: [{repeated(n, chr(34) + 'x' + chr(34))}]}}}}) {{ id }} }}",
        lambda n: f"/users?name[in]={repeated(n, 'x', ',')}",
        "BAD_USER_INPUT",
        "BAD_REQUEST",
    ),
    Moved(
        "max_terms",
        3,
        lambda n: (
            f"{{ users(where: {{or: [{repeated(n, '{name: {eq: §}}').replace('§', '1').replace('eq: ', 'eq: ' + chr(34)).replace('}}', chr(34) + '}}')}]}}) {{ id }} }}"
        ),
        lambda n: f"/users?where={json.dumps({'or': [{'name': {'eq': 'x'}}] * n})}".replace(" ", "%20").replace(
            '"', "%22"
        ),
    ),
    Moved(
        "max_sort",
        2,
        lambda n: f"{{ users(orderBy: [{repeated(n, '{name: ASC}')}]) {{ id }} }}",
        lambda n: f"/users?sort={repeated(n, 'name', ',')}",
    ),
    Moved(
        "max_aliases",
        4,
        lambda n: f"{{ users {{ {repeated(n, 'a§: id')} }} }}",
        lambda n: f"/users?fields={repeated(n, 'a§:id', ',')}",
    ),
    Moved(
        "max_aliases",
        0,
        lambda n: f"{{ users {{ id {repeated(n, 'a§: id')} }} }}",
        lambda n: f"/users?fields=id{repeated(n, ',a§:id', '')}",
    ),
    Moved("max_roots", 2, lambda n: f"{{ {' '.join(('__typename', 'users { id }', 'posts { id }')[:n])} }}"),
    Moved("max_directives", 3, lambda n: f"{{ users {{ {repeated(n, 'id @skip(if: false)')} }} }}"),
    Moved("max_directives", 0, lambda n: f"{{ users {{ id {repeated(n, '@skip(if: false)')} }} }}"),
    Moved(
        "max_selections",
        3,
        lambda n: f"{{ users {{ {repeated(n, 'id')} }} }}",
        lambda n: f"/users?fields={','.join(PLAIN[:n])}",
    ),
    Moved("max_tokens", 20, lambda n: f"{{ users {{ {repeated(n - 5, 'id')} }} }}"),
    Moved(
        "max_string",
        9,
        lambda n: f'{{ users(where: {{name: {{eq: "{"x" * n}"}}}}) {{ id }} }}',
        lambda n: f"/users?fields={'x' * n}:id",
    ),
    Moved("max_document", 40, "{ users { id } }".ljust),
    Moved(
        "max_nesting",
        5,
        lambda n: nested(n - 2, '{ user(id: "x") {', ("posts{", "author{"), "}", "id") + "}}",
        lambda n: "/users?fields=" + nested(n, "", ("posts[first=1](", "author("), ")", "id"),
        "TOO_DEEP",
    ),
    Moved(
        "max_nesting",
        70,
        lambda n: nested(n - 2, '{ user(id: "x") {', ("... on User{", "... on User{"), "}", "id") + "}}",
        None,
        "TOO_DEEP",
    ),
    Moved(
        "max_depth",
        2,
        lambda n: nested(n - 1, '{ user(id: "x") {', ("posts{", "author{"), "}", "id") + "}}",
        lambda n: "/users?fields=" + nested(n - 1, "", ("posts(", "author("), ")", "id"),
        "TOO_DEEP",
    ),
]


@pytest.mark.parametrize("moved", MOVED, ids=lambda moved: f"{moved.setting}={moved.allowed}")
def test_a_setting_moves_its_limit_in_both_styles(moved: Moved, serving: Pressed) -> None:
    service = serving(model=default, **{moved.setting: moved.allowed})
    for _ in range(3):  # cold, noted, remembered
        allowed = [service.query(moved.document(moved.allowed))]
        refused = [service.query(moved.document(moved.allowed + 1))]
        if moved.url is not None:
            allowed.append(service.get(moved.url(moved.allowed)))
            before = service.runs
            refused.append(service.get(moved.url(moved.allowed + 1)))
            assert service.runs == before
        assert [each.status for each in allowed] == [200] * len(allowed), [each.body for each in allowed]
        assert [each.code for each in refused] == [moved.code, moved.url_code or moved.code][: len(refused)]
        for each in refused:
            assert str(moved.allowed) in told(each) and str(moved.allowed + 1) in told(each), told(each)


def test_every_setting_of_a_limit_is_moved_by_one_of_these() -> None:
    elsewhere = {
        "max_complexity",
        "max_body",
        "max_waiting",
        "max_requests",
        "max_connections",
        "max_streams",
        "max_cells",
    }
    elsewhere.add("max_writes")  # of writes alone: tests/contract/writes/test_nests.py
    elsewhere.add("max_bulk")  # tests/contract/writes/test_bulk.py
    elsewhere.add("max_export")  # tests/contract/formats
    assert {each.name for each in SETTINGS if each.name.startswith("max_")} == {
        each.setting for each in MOVED
    } | elsewhere
