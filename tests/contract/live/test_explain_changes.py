"""`diptych explain` of what follows changes: the same Ask in both styles, its statement, its rules and its rows."""

from __future__ import annotations

import asyncio
import re

import pytest

from diptych.demo.model import model
from tests.contract.http.data import ANN, POST, ROWS
from tests.support.in_process import in_process
from tests.support.running import Command, NewDatabase


def told(command: Command, request: str, role: str, *options: str) -> str:
    done = command("explain", request, "--as", role, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return re.sub(r"model\.py:\d+", "model.py", done.stdout)


def test_explain_shows_the_same_ask_for_a_subscription_and_for_the_log(command: Command) -> None:
    one = told(command, "GET /posts/changes?title=x&kinds=LEFT,DELETED&fields=title,author(name)", "anonymous")
    picked = "eventId cursor kind rowId at post { title author { name } }"
    where = 'where: {title: {eq: "x"}}, kinds: [LEFT, DELETED]'
    other = told(command, f"subscription {{ postChanged({where}) {{ {picked} }} }}", "anonymous")
    assert one == other
    for word in ("Watch(resource='Post'", "Values ['x', ['LEFT', 'DELETED']]", "Depth  2", "Price  2 for each change"):
        assert word in one
    for word in ("sqlite", "postgres", "diptych_feed", "slot 2 = after, slot 3 = upto, slot 4 = most"):
        assert word in one


def test_a_rule_about_the_rows_is_in_the_statement_and_among_the_rules(command: Command) -> None:
    shown = told(command, "subscription { postChanged { kind post { title } } }", "anonymous")
    statement, _, rules = shown.partition("\nRules\n")
    assert """_t0."published\"""" in statement
    assert "Post: read: where published" in rules
    shown = told(command, "subscription { postChanged { kind post { title } } }", "admin")
    assert "Post: read: always" in shown
    assert """_t0."published\"""" not in shown


def test_a_filter_through_a_relation_has_its_price(command: Command) -> None:
    shown = told(command, 'subscription { postChanged(where: {author: {name: {eq: "x"}}}) { kind } }', "anonymous")
    assert "Depth  2 of 10\nPrice  1 for each change, and 10 to find them, of 5000" in shown


def test_what_is_told_of_a_change_has_rules_too(command: Command) -> None:
    shown = told(command, "subscription { userChanged { user { email } } }", "signed_in")
    assert "User.email: read: where id = viewer.id" in shown


def test_a_name_that_a_role_does_not_have_is_told_with_what_hides_it(command: Command) -> None:
    for request in (
        "GET /orders/changes?fields=internalNote",
        "subscription { orderChanged { order { internalNote } } }",
    ):
        shown = told(command, request, "signed_in")
        assert shown.startswith("Refused ")
        assert "Order.internalNote: read: never, so it does not exist for this viewer" in shown


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ("POST /posts/changes", "METHOD_NOT_ALLOWED: POST is no method of /posts/changes."),
        ("DELETE /posts/changes", "METHOD_NOT_ALLOWED: DELETE is no method of /posts/changes."),
        ("GET /posts/changes?sort=id", "query.sort: there is no such parameter here"),
        ("GET /posts/changes?kinds=SEEN", "query.kinds: expected one of CREATED, UPDATED, DELETED, LEFT"),
        ("subscription { nobodyChanged { kind } }", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription { postChanged { kind } userChanged { kind } }", "must select only one top level field"),
    ],
)
def test_what_nobody_could_send_is_one_clear_sentence(command: Command, request_: str, message: str) -> None:
    done = command("explain", request_)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_rows_that_are_followed_are_told_as_they_are_now(command: Command, new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with asyncio.Runner() as runner, in_process(model, database, runner, ROWS):
        pass
    options = ("--database", database)
    many = told(command, "GET /posts/changes", "anonymous", *options)
    assert re.search(r"posts: \d+ match, and this viewer sees \d+", many.rpartition("\nRows\n")[2])
    one = told(
        command, f'subscription {{ postChanged(id: "{POST[1]}") {{ post {{ title }} }} }}', "anonymous", *options
    )
    assert f"Post {POST[1]}: read: yes" in one.rpartition("\nRows\n")[2]
    rows = told(command, f"GET /users/changes?id={ANN}&fields=email", "signed_in", *options).rpartition("\nRows\n")[2]
    assert f"User {ANN}.email: read: no" in rows
