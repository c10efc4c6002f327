"""While developing, an admin is told why a request is refused; nobody else is told anything, and `serve` tells nobody."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import pytest

from diptych import Diptych, Model, ReadBy, Resource, Role, grant
from diptych.config import Config
from diptych.db.store import Session
from diptych.demo.model import model as default
from diptych.serve import explaining
from diptych.serve.handler import Handler
from tests.contract.http.data import ANN, BEN, CLEO, COMMENT, NOBODY, ORDER, POST, ROWS
from tests.support.cases import cases
from tests.support.in_process import Answer, Service, in_process
from tests.support.model_files import declare
from tests.support.running import NewDatabase

auditor = Role("auditor")
admin = Role("admin")


class Ledger(Resource):
    """What an admin may read, and not wholly."""

    name: str
    audit: Annotated[str | None, ReadBy(auditor)] = None
    access = (grant("read", to=admin), grant("read", "create", to=auditor))


ledgers = Model(Ledger)

PAGES = """
from diptych import Resource, Role, grant

writer = Role("writer")
reader = Role("reader")


class Page(Resource):
    text: str
    access = (grant("read", to=reader), grant("create", to=writer))
"""

Sent = tuple[str, str, Any]
REFUSED: tuple[Sent, ...] = (
    ("GET", f"/posts/{NOBODY}", None),
    ("GET", f"/posts/{POST[3]}", None),
    ("GET", "/orders", None),
    ("GET", f"/orders/{ORDER[1]}", None),
    ("GET", f"/users/{ANN}/orders", None),
    ("GET", "/orders?fields=internalNote", None),
    ("GET", "/users?email=x&nope=1", None),
    ("GET", "/nothing", None),
    ("PATCH", f"/comments/{COMMENT[2]}", {"body": "x"}),
    ("PATCH", f"/orders/{ORDER[4]}", {"status": "pending"}),
    ("PUT", f"/comments/{COMMENT[2]}", {"postId": POST[1], "authorId": CLEO, "body": "x"}),
    ("POST", "/comments", {"postId": NOBODY, "authorId": ANN, "body": "x"}),
    ("POST", "/comments", {"postId": POST[6], "authorId": CLEO, "body": "x"}),
    ("POST", "/posts", {"authorId": CLEO, "title": "t", "body": "b"}),
    ("POST", "/users", [{"name": "a", "email": "ann@example.com"}]),
    ("POST", "/users", {"name": ""}),
    ("DELETE", f"/orders/{NOBODY}", None),
    ("DELETE", f"/users/{ANN}", None),
    ("DELETE", "/orders", None),
    ("GRAPHQL", "{ orders { internalNote } nope }", None),
    ("GRAPHQL", "{ orders { internalNote } }", None),
    ("GRAPHQL", 'mutation { deleteOrder(id: "x") { id } }', None),
    ("GRAPHQL", f'mutation {{ updateComment(id: "{COMMENT[2]}", patch: {{body: "x"}}) {{ id }} }}', None),
    ("GRAPHQL", f'mutation {{ updatePost(id: "{NOBODY}", patch: {{title: "x"}}) {{ id }} }}', None),
    (
        "GRAPHQL",
        "mutation ($in: CommentCreate!) { createComment(input: $in) { id } }",
        {"in": {"postId": NOBODY, "authorId": ANN, "body": "x"}},
    ),
    ("GRAPHQL", "{ users", None),
)
"""Requests that are refused to some, or to all."""


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@contextmanager
def both(model: Model, database: str, runner: asyncio.Runner, rows: Any) -> Iterator[tuple[Service, Service]]:
    """A service as `serve` has it, and one as `dev` has it, on the same rows."""
    with ExitStack() as stack:
        plain = stack.enter_context(in_process(model, database, runner, rows))
        dev = Service(Diptych(model, config=Config(database=database), explain=True), runner)
        stack.callback(dev.close)
        assert type(plain.handler) is Handler
        yield plain, dev


@pytest.fixture(scope="module")
def services(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[tuple[Service, Service]]:
    with both(default, new_database(), runner, ROWS) as found:
        yield found


@pytest.fixture
def dev(services: tuple[Service, Service]) -> Service:
    return services[1]


def send(service: Service, sent: Sent, token: str | None) -> Answer:
    method, url, body = sent
    if method == "GRAPHQL":
        return service.query(url, body, token=token)
    headers = {"content-type": "application/json"} if body is not None else {}
    return service.send(
        method, url, headers=headers, body=b"" if body is None else json.dumps(body).encode(), token=token
    )


def told(answer: Answer) -> list[str]:
    """The lines that an error carries."""
    body = answer.json()
    error = body if answer.kind == "application/problem+json" else body["errors"][0]["extensions"]
    return list(error.get("why", ()))


# an admin


def test_an_admin_is_told_which_rule_forbids_a_change(dev: Service) -> None:
    token = dev.token(ANN, "admin")
    rest = send(dev, ("PATCH", f"/comments/{COMMENT[1]}", {"body": "x"}), token)
    assert (rest.status, rest.code) == (403, "FORBIDDEN")
    lines = told(rest)
    assert lines[0] == f"Comment {COMMENT[1]}: update: no"
    assert lines[1].startswith("    Comment.own (model.py:") and lines[1].endswith(")  author.id = viewer.id")
    assert lines[2:4] == [f'        no: author.id = "{BEN}",', f'          viewer.id = "{ANN}"']
    document = f'mutation {{ updateComment(id: "{COMMENT[1]}", patch: {{body: "x"}}) {{ id }} }}'
    answer = dev.query(document, token=token)
    assert answer.code == "FORBIDDEN"
    assert told(answer) == lines


def test_an_admin_is_told_that_there_is_no_such_row(dev: Service) -> None:
    answer = send(dev, ("GET", f"/posts/{NOBODY}", None), dev.token(ANN, "admin"))
    assert (answer.status, told(answer)) == (404, [f"Post {NOBODY}: there is no such row"])


def test_an_admin_is_told_which_reference_leads_nowhere(dev: Service) -> None:
    sent = ("POST", "/comments", {"postId": NOBODY, "authorId": ANN, "body": "x"})
    answer = send(dev, sent, dev.token(ANN, "admin"))
    assert answer.status == 409
    assert f"    Post {NOBODY}: there is no such row" in told(answer)


def test_an_admin_is_told_which_move_is_lacking(dev: Service) -> None:
    answer = send(dev, ("PATCH", f"/orders/{ORDER[4]}", {"status": "pending"}), dev.token(ANN, "admin"))
    assert answer.status == 409
    assert told(answer)[0] == f"Order {ORDER[4]}.status: become pending: no"


def test_the_rest_of_an_error_is_as_it_was(services: tuple[Service, Service]) -> None:
    plain, dev = services
    explained = 0
    for sent in REFUSED:
        token = dev.token(ANN, "admin")
        one, other = send(plain, sent, token), send(dev, sent, token)
        if one.body != other.body:
            explained += 1
            body = other.json()
            del (body["errors"][0]["extensions"] if sent[0] == "GRAPHQL" else body)["why"]
            assert body == one.json()
        assert (one.status, one.headers) == (other.status, other.headers)
    assert explained >= 6


def test_pages_and_errors_of_oauth_are_not_explained(
    services: tuple[Service, Service], caplog: pytest.LogCaptureFixture
) -> None:
    """No rule refuses them, and they are no problem details."""
    here = {"host": "127.0.0.1:8000"}
    with caplog.at_level(logging.ERROR, "diptych"):
        for path in ("/oauth/device", "/oauth/token"):
            one, other = (each.send("POST", path, headers=here, token=each.token(ANN, "admin")) for each in services)
            assert (one.status, one.body) == (other.status, other.body) and one.status in (400, 403)
    assert not caplog.records


def test_an_admin_is_told_what_hides_a_name(runner: asyncio.Runner) -> None:
    with both(ledgers, "sqlite:///:memory:", runner, {}) as (_, dev):
        token = dev.token(ANN, "admin")
        for answer in (dev.query("{ ledgers { audit } }", token=token), dev.get("/ledgers?fields=audit", token=token)):
            assert told(answer)[0] == "Ledger.audit: read: never, so it does not exist for this viewer"
            assert told(answer)[2] == "        never: the viewer is not auditor"
        made = dev.query('mutation { createLedger(input: {name: "x"}) { id } }', token=token)
        assert (made.code, told(made)[0]) == ("FORBIDDEN", "Ledger: create: never")
        nobody = dev.query("{ ledgers { nothing } }", token=token)
        assert told(nobody) == []


def test_of_a_model_without_an_admin_all_roles_make_one(runner: asyncio.Runner) -> None:
    with both(declare(PAGES, header="").built, "sqlite:///:memory:", runner, {}) as (_, dev):
        sent = ("GET", f"/pages/{NOBODY}", None)
        assert told(send(dev, sent, dev.token(ANN, "reader", "writer"))) == [f"Page {NOBODY}: there is no such row"]
        assert told(send(dev, sent, dev.token(ANN, "reader"))) == []


BARE = """
from diptych import Resource, Viewer, allow


class Diary(Resource):
    text: str

    @allow("read")
    def open(self, viewer: Viewer) -> bool:
        return self.text == "open"
"""


def test_a_model_without_roles_explains_to_the_token_of_dev_alone(runner: asyncio.Runner) -> None:
    with both(declare(BARE, header="").built, "sqlite:///:memory:", runner, {}) as (_, dev):
        sent, tokens = ("GET", f"/diaries/{NOBODY}", None), dev.handler.context.tokens
        for token in (None, dev.token(BEN), tokens.make(None, (), None, 60, {"client_id": "app"})):
            assert told(send(dev, sent, token)) == []
        assert told(send(dev, sent, tokens.make(None, [], None, 60))) == [f"Diary {NOBODY}: there is no such row"]


# nobody else


@pytest.mark.slow
@cases("sent", REFUSED, ids=lambda sent: f"{sent[0]} {sent[1][:30]}")
def test_nobody_else_is_told_anything(sent: Sent, services: tuple[Service, Service]) -> None:
    plain, dev = services
    others = [
        None,
        "bad",
        plain.token(ANN),
        plain.token(BEN, "staff"),
        plain.token(None, "staff"),
        plain.token(ANN, "administrator"),
        plain.token(ANN, "signed_in"),
    ]
    for token in others:
        one, other = send(plain, sent, token), send(dev, sent, token)
        assert (one.status, one.headers, one.body) == (other.status, other.headers, other.body)
        assert b'"why"' not in other.body
        reads = sent[0] == "GET" or sent[1].startswith("{")
        assert reads or b'"code"' in one.body, "nothing may change between the two"


def test_a_service_tells_nobody(services: tuple[Service, Service]) -> None:
    plain, _ = services
    for sent in REFUSED:
        assert b'"why"' not in send(plain, sent, plain.token(ANN, "admin")).body


# what it costs, and what it must not break


def test_an_answer_that_is_no_error_costs_nothing(
    services: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, dev = services

    async def never(*given: object) -> list[str]:
        raise AssertionError("nothing was refused")

    async def no_session(**given: object) -> Session:
        raise AssertionError("nothing was refused")

    monkeypatch.setattr(explaining, "why", never)
    monkeypatch.setattr(dev.app.store, "session", no_session)
    for sent in (("GET", "/posts", None), ("GRAPHQL", "{ posts { title } }", None), ("GET", "/health/ready", None)):
        token = dev.token(ANN, "admin")
        one, other = send(plain, sent, token), send(dev, sent, token)
        assert (one.status, one.headers, one.body) == (200, other.headers, other.body)


def test_if_it_cannot_be_told_the_plain_error_is_sent(
    services: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain, dev = services

    async def fails(*given: object) -> list[str]:
        raise ZeroDivisionError("a cause")

    monkeypatch.setattr(explaining, "why", fails)
    sent, token = ("GET", f"/posts/{NOBODY}", None), dev.token(ANN, "admin")
    with caplog.at_level(logging.ERROR, "diptych"):
        one, other = send(plain, sent, token), send(dev, sent, token)
    assert (one.status, one.headers, one.body) == (other.status, other.headers, other.body)
    assert "a cause" in caplog.text and f"/posts/{NOBODY}" in caplog.text
