"""Existence by time: a hidden row takes another way through the service than no row, and the clock tells.

Published for the logins of Parse Server (GHSA-mmpq-5hcv-hf2v) and Supabase, where an account that is there takes longer.
Here nothing is looked up beforehand: for a hidden row and for none the same statements run, in the same number and
with the same text, and SQLite's machine takes about as many steps in them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import apsw
import pytest

from diptych.db.script import Script, Step
from diptych.db.sqlite.connection import SqliteConnection
from diptych.db.sqlite.errors import GuardFailed
from diptych.db.sqlite.store import SqliteStore
from diptych.db.sqlite.watchdog import Watchdog
from diptych.demo.model import model as default
from diptych.engine import write as transact
from diptych.engine.write_steps import steps
from tests.contract.calls import press
from tests.contract.faults.scene import Scene
from tests.contract.faults.watch import Statement, watched
from tests.contract.http import data
from tests.contract.http.data import COMMENT, NOBODY, ORDER, POST, ZOE
from tests.contract.writes.shop import JSON_PATCH, Shop
from tests.support.cases import cases
from tests.support.in_process import in_process
from tests.support.running import NewDatabase

Request = Callable[[Shop, str], Any]
"""Something that Zoë asks of the row with an id."""


def by_rest(method: str, path: str, body: Any = None, kind: str = "application/json", **headers: str) -> Request:
    return lambda place, id: place.rest(method, path.replace("ID", id), body, who="zoe", kind=kind, headers=headers)


def by_graphql(document: str, **values: Any) -> Request:
    return lambda place, id: place.ql(document, {"id": id, **values}, who="zoe")


WHOLE = {"authorId": ZOE, "title": "x", "body": "b"}
POSTS: dict[str, Request] = {
    "GET": by_rest("GET", "/posts/ID"),
    "GET with fields": by_rest("GET", "/posts/ID?fields=title,author(name,posts(title)),comments(body)"),
    "GET with a tag": by_rest("GET", "/posts/ID", **{"if-none-match": '"1.x"'}),
    "HEAD": by_rest("HEAD", "/posts/ID"),
    "GET of a list": by_rest("GET", "/posts/ID/comments?count=exact"),
    "GET by a filter": by_rest("GET", "/posts?id=ID&count=exact"),
    "PATCH": by_rest("PATCH", "/posts/ID", {"title": "x"}),
    "PATCH of a version": by_rest("PATCH", "/posts/ID", {"title": "x"}, **{"if-match": '"1.x"'}),
    "PATCH under a key": by_rest("PATCH", "/posts/ID", {"title": "x"}, **{"idempotency-key": "k"}),
    "JSON Patch": by_rest("PATCH", "/posts/ID", [{"op": "replace", "path": "/title", "value": "x"}], JSON_PATCH),
    "PUT": by_rest("PUT", "/posts/ID", WHOLE),
    "DELETE": by_rest("DELETE", "/posts/ID"),
    "DELETE with its answer": by_rest("DELETE", "/posts/ID", prefer="return=representation"),
    "POST of a comment on it": lambda place, id: place.rest(
        "POST", "/comments", {"authorId": ZOE, "postId": id, "body": "b"}, who="zoe"
    ),
    "query": by_graphql("query($id: ID!) { post(id: $id) { title comments { body } } }"),
    "update": by_graphql('mutation($id: ID!) { updatePost(id: $id, patch: {title: "x"}) { id } }'),
    "replace": by_graphql("mutation($id: ID!, $w: PostReplace!) { replacePost(id: $id, input: $w) { id } }", w=WHOLE),
    "delete": by_graphql("mutation($id: ID!) { deletePost(id: $id) { id } }"),
}

OTHERS: dict[str, tuple[Request, str]] = {
    "GET of an order": (by_rest("GET", "/orders/ID"), ORDER[1]),
    "PATCH of an order": (by_rest("PATCH", "/orders/ID", {"status": "cancelled"}), ORDER[1]),
    "PATCH of a comment": (by_rest("PATCH", "/comments/ID", {"body": "x"}), COMMENT[7]),
    "DELETE of a comment": (by_rest("DELETE", "/comments/ID"), COMMENT[7]),
}
CASES = {**{name: (ask, POST[6]) for name, ask in POSTS.items()}, **OTHERS}
MANY = 500
"""Comments on the hidden post, so that whoever would read on from it would take many steps."""
FEW = 150
"""Steps that it takes to look at the columns of one row: some microseconds."""


def statements(place: Shop, ask: Request, id: str) -> list[Statement]:
    """What runs, once the request is hot."""
    for _ in range(3):
        ask(place, id)
    with watched(place.service.app.store) as seen:
        ask(place, id)
    return seen


@pytest.mark.parametrize("name", CASES)
def test_the_same_statements_run_for_a_hidden_row_and_for_none(shop: Scene, name: str) -> None:
    """In number and text, and the answers are the same too; for a row that is there and Zoë's to change it may
    differ."""
    ask, hidden = CASES[name]
    with shop.unchanged():
        one, none = (statements(shop, ask, id) for id in (hidden, NOBODY))
        answers = [ask(shop, id) for id in (hidden, NOBODY)]
    assert one and [each.sql for each in one] == [each.sql for each in none]
    assert answers[0].body == answers[1].body


def test_the_same_statements_run_for_an_action_on_a_hidden_row_and_on_none(desk: Scene) -> None:
    """The action itself runs for neither."""
    bob = desk.service.token(press.BOB)
    for action in ("publish", "shred", "judge"):
        body = {"text": "x"} if action == "judge" else {}

        def ask(place: Shop, id: str, path: str = action, body: Any = body) -> Any:
            return place.rest("POST", f"/articles/{id}/{path}", body, who=bob)

        one, none = (statements(desk, ask, id) for id in (press.DRAFT, NOBODY))
        assert one and [each.sql for each in one] == [each.sql for each in none]


def test_a_look_beforehand_would_be_noticed(shop: Scene) -> None:
    """The same check with the fault planted: a change first looks whether the row is there, and only then asks
    why not."""

    def with_a_look(bound: Any, dialect: Any) -> Script[Any]:
        there = yield Step(f"SELECT 1 FROM posts WHERE id = '{bound.id}'", ())
        if there is not None:
            yield Step("SELECT 2", ())
        return (yield from steps(bound, dialect))

    ask, hidden = CASES["PATCH"]
    with shop.planted(transact, "steps", with_a_look):
        one, none = (statements(shop, ask, id) for id in (hidden, NOBODY))
    assert len(one) == len(none) + 1


@pytest.fixture(scope="module")
def busy(runner: asyncio.Runner, new_sqlite: NewDatabase) -> Iterator[Shop]:
    """The default model on SQLite, with many comments on a hidden post and on one that shows."""
    more = [
        {
            **data.ROWS["Comment"][0],
            "id": f"01900000-0000-7000-8000-{number + 4096:012x}",
            "postId": POST[6 - 5 * (number % 2)],
        }
        for number in range(2 * MANY)
    ]
    rows = {**data.ROWS, "Comment": [*data.ROWS["Comment"], *more]}
    with in_process(default, new_sqlite(), runner, rows) as service:
        yield Shop(service, rows)


@cases("name", [name for name in CASES if "key" not in name])
def test_the_machine_takes_about_as_many_steps(busy: Shop, name: str) -> None:
    """Steps of SQLite's virtual machine, which are the same in every run: a hidden row is looked at, and nothing
    beyond."""
    ask, hidden = CASES[name]
    one, none = (_steps(busy.service.app.store, statements(busy, ask, id)) for id in (hidden, NOBODY))
    assert abs(one - none) <= FEW, (one, none)


def test_steps_tell_what_is_read_beyond_a_row(busy: Shop) -> None:
    """What the measure is worth: of a post that shows, its comments are read, and the steps tell so."""
    ask, _ = CASES["GET of a list"]
    shown, none = (_steps(busy.service.app.store, statements(busy, ask, id)) for id in (POST[1], NOBODY))
    assert shown > none + 10 * FEW


def _steps(store: Any, ran: Sequence[Statement]) -> int:
    """How many steps the statements take, on a connection of their own; nothing that they change is kept."""
    assert isinstance(store, SqliteStore)
    db = SqliteConnection(store.path, Watchdog(), write=True).db
    taken: list[int] = []
    try:
        db.execute("BEGIN IMMEDIATE")
        db.trace_v2(
            apsw.SQLITE_TRACE_PROFILE, lambda event: taken.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])
        )
        for statement in ran:
            with suppress(GuardFailed):
                db.execute(statement.sql, tuple(statement.parameters)).fetchall()
        db.trace_v2(0, None)
        db.execute("ROLLBACK")
    finally:
        db.close()
    assert len(taken) >= len(ran) > 0
    return sum(taken)
