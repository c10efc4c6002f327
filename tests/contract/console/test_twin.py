"""A request typed in one style gives the other style's text, which means the same; nothing runs, and nobody learns more.

Every golden case of `tests/contract/cases` goes through it in both directions. What is printed is sent as a client
would, and gives the same rows.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from diptych.api.graphql.http import Parameters
from diptych.ask.nodes import Watch, Write
from diptych.errors import Refusal
from diptych.explain.stages import Explanation
from diptych.explain.understood import RestRequest, Sent
from tests.contract.console.conftest import Console
from tests.contract.test_cases import FOLDER, MODELS, NAMES, WRITTEN, Case, rows_of
from tests.support.cases import cases
from tests.support.in_process import in_process
from tests.support.running import NewDatabase

Texts = Mapping[str, Any]


@pytest.fixture(scope="module")
def bare(runner: asyncio.Runner) -> Iterator[Mapping[str, Console]]:
    """The same in memory: price and rules do not depend on the store."""
    with ExitStack() as stack:
        yield {
            name: Console(stack.enter_context(in_process(model, "sqlite:///:memory:", runner, rows, console=True)))
            for name, (model, rows) in MODELS.items()
        }


@pytest.fixture(scope="module")
def consoles(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Mapping[str, Console]]:
    """The consoles of the models of the cases."""
    with ExitStack() as stack:
        yield {
            name: Console(stack.enter_context(in_process(model, new_database(), runner, rows, console=True)))
            for name, (model, rows) in MODELS.items()
        }


def read(name: str, consoles: Mapping[str, Console]) -> tuple[Case, Console]:
    model = tomllib.loads((FOLDER / f"{name}.toml").read_text().partition(WRITTEN)[0])["model"]
    console = consoles[model]
    return Case.read(name, console.service), console


def in_graphql(case: Case) -> dict[str, Any]:
    return {"query": case.document, "variables": case.variables}


def in_rest(case: Case) -> dict[str, Any]:
    body = json.loads(case.body) if case.body else None
    return {"method": case.method, "url": case.url, "headers": dict(case.headers), "body": body}


def rows_by_graphql(console: Console, text: Texts, token: str | None) -> Any:
    answer = console.service.query(text["query"], text["variables"], token=token).json()
    assert "errors" not in answer, answer
    return rows_of(next(iter(answer["data"].values())))


def rows_by_rest(console: Console, text: Texts, token: str | None) -> Any:
    body = b"" if text["body"] is None else json.dumps(text["body"]).encode()
    answer = console.service.send(text["method"], text["url"], headers=text["headers"], body=body, token=token)
    assert answer.status < 300, answer.body
    return rows_of(answer.json())


@pytest.mark.slow
@cases("name", NAMES)
def test_the_other_text_of_every_case_gives_the_same_rows(name: str, consoles: Mapping[str, Console]) -> None:
    case, console = read(name, consoles)
    token = case.token(console.service)
    ours, theirs = console.twin(in_graphql(case), token), console.twin(in_rest(case), token)
    assert (ours["refused"], theirs["refused"]) == (None, None)
    assert (ours["kind"], ours["price"]) == (theirs["kind"], theirs["price"])
    (rest,) = ours["rest"]
    document = theirs["graphql"]
    assert "none" not in rest and "none" not in document, (rest, document)
    again = console.twin(document, token)
    assert (again["price"], again["rest"]) == (ours["price"], ours["rest"]), "it means the same"
    ask = case.ask()
    if isinstance(ask, Watch):
        return
    found = []
    for text in (in_graphql(case), document, rest):
        if isinstance(ask, Write):
            case.refill(console.service)
        found.append(untimed((rows_by_graphql if "query" in text else rows_by_rest)(console, text, token)))
    assert found == found[:1] * 3


def untimed(rows: Any) -> Any:
    """Without what is never the same twice."""
    if isinstance(rows, dict):
        made = ("id", "createdAt", "updatedAt")
        return {name: untimed(value) for name, value in rows.items() if name not in made}
    return [untimed(row) for row in rows] if isinstance(rows, list) else rows


# the same as `diptych explain`


def sent_of(text: Mapping[str, Any]) -> Sent:
    if "query" in text:
        return Parameters(text["query"], None, dict(text["variables"]))
    path, _, query = text["url"].partition("?")
    return RestRequest(text["method"], path, query, text["body"], text["headers"])


def plain(lines: Any) -> str:
    return " ".join(" ".join(lines).split())


@pytest.mark.slow
@cases("name", NAMES)
def test_price_refusal_and_rules_are_those_of_explain(name: str, bare: Mapping[str, Console]) -> None:
    case, console = read(name, bare)
    model, limits = case.model, console.service.handler.engine.limits
    for role in model.role_names:
        for text in (in_graphql(case), in_rest(case)):
            told = console.twin({**text, "as": role}, console.admin)
            try:
                explained = Explanation(model, model.viewer_as(role), limits, sent_of(text))
            except Refusal as refusal:
                assert told["refused"]["message"] == refusal.message
                continue
            stages, _, rules = plain(explained.lines()).partition(" Rules ")
            said = plain(line for rule in told["rules"] for line in (rule["title"], *rule["lines"]))
            assert (said or "No rule applies to this request.") == rules
            if explained.refusal is None:
                assert told["refused"] is None and plain(told["price"]["lines"]) in stages
            else:
                assert stages.startswith(f"Refused {told['refused']['code']}: {told['refused']['message']}")


# nobody learns more by it than by sending the request


def test_a_role_is_told_what_the_service_would_tell_it(console: Console) -> None:
    for text in (
        {"query": "{ orders { internalNote } }"},
        {"query": "{ orders { nothing } }"},
        {"query": 'mutation { deleteUser(id: "x") { id } }'},
    ):
        for token in (None, console.service.token(None, "staff"), console.service.token("u1")):
            told, answer = console.twin(text, token), console.service.query(text["query"], token=token).json()
            if "errors" in answer and told["refused"] is not None:
                assert told["refused"]["message"] == answer["errors"][0]["message"]
            assert (told["sql"], told["rules"]) == ([], [])
    hidden = console.twin({"method": "GET", "url": "/orders?fields=internalNote"}, console.service.token("u1"))
    absent = console.twin({"method": "GET", "url": "/orders?fields=internalNotf"}, console.service.token("u1"))
    assert json.dumps(hidden).replace("internalNote", "internalNotf") == json.dumps(absent)
