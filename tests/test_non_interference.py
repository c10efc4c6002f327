"""What a viewer may not see alters nothing that the viewer gets.

Two databases differ only in what the viewer may not see: in hidden rows, in hidden fields and relations of
visible rows, and in hidden rows that only one of them has. Random requests, in both styles, with filters drawn
from the hidden values too, get equal answers: status, headers and bytes. With the rules switched off the test
fails.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from diptych import Diptych
from diptych.api.graphql.printer import print_graphql
from diptych.api.reply import Reply
from diptych.api.rest.printer import print_rest
from diptych.check import access
from diptych.default import model as default
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.expr import TRUE, Expr
from diptych.model.model import Model
from diptych.model.roles import Viewer
from diptych.model.scalars import ID, INTEGER_ID
from diptych.serve.handler import Handler
from diptych.serve.http import Request
from tests import nasty
from tests.asks import Drawn, asks
from tests.nasty import load, pool
from tests.oracle import Row, Sight
from tests.proof import Proof

MODELS = {"default": default, "nasty": nasty.model}
HELD_EQUAL = ("id", "version", "updatedAt")
EXAMPLES = 64
WHO = ("anonymous", "someone", "middle", "narrow")

Rows = dict[str, list[dict[str, Any]]]


def seen(model: Model, viewer: Viewer, rows: Rows) -> Any:
    """All that a viewer may see: the readable rows, with the fields that show."""
    sight = Sight(model, viewer, rows)
    return {
        name: [
            {field: sight.shown(field, row) for field in resource.fields if sight.shows(field, row)}
            for data in rows[name]
            if sight.readable(row := Row(resource, data))
        ]
        for name, resource in model.resources.items()
    }


def altered(model: Model, viewer: Viewer, rows: Mapping[str, Any], random: Random) -> tuple[Rows, int]:
    """The same rows with everything changed that the viewer cannot see, and how many changes that were."""
    other: Rows = {name: [dict(row) for row in each] for name, each in rows.items()}
    before = seen(model, viewer, other)
    changes = 0
    for name, resource in model.resources.items():
        for row in other[name]:
            for field in resource.fields.values():
                choices = _ids(resource, field, row, other) if field.relation else _values(field, random)
                changes += _change(row, field, choices, random, lambda: seen(model, viewer, other) == before)
        changes += _add(other, name, random, lambda: seen(model, viewer, other) == before)
    return other, changes


def _change(
    row: dict[str, Any], field: FieldDef, choices: Sequence[Any], random: Random, unseen: Callable[[], bool]
) -> bool:
    """Change a field if nobody notices."""
    old = row.get(field.name)
    others = [value for value in choices if value != old]
    if field.name in HELD_EQUAL or field.computed is not None or not others:
        return False
    row[field.name] = random.choice(others)
    if unseen():
        return True
    row[field.name] = old
    return False


def _values(field: FieldDef, random: Random) -> Sequence[Any]:
    if field.scalar in (ID, INTEGER_ID):
        return ()
    return [f"{random.getrandbits(60)}@other"] if field.unique else pool(field.scalar)


def _ids(resource: ResourceDef, field: FieldDef, row: Mapping[str, Any], rows: Rows) -> Sequence[Any]:
    """The ids to which a relation can lead; to itself, only those of rows that are there before."""
    there = rows[resource.relations[field.relation].target]
    upto = next((number for number, other in enumerate(there) if other is row), len(there))
    return [other["id"] for other in there[:upto]] + ([None] if field.nullable else [])


def _add(rows: Rows, name: str, random: Random, unseen: Callable[[], bool]) -> bool:
    """Add the twin of a hidden row, if nobody notices."""
    for row in list(rows[name]):
        twin = copy.deepcopy(row)
        twin["id"] = random.randrange(10**6, 10**7) if isinstance(row["id"], int) else _next_id(row["id"], random)
        if any(isinstance(value, str) and "@" in value for value in twin.values()):
            continue  # a unique value
        rows[name].append(twin)
        if unseen():
            return True
        rows[name].pop()
    return False


def _next_id(id: str, random: Random) -> str:
    return f"{id[:24]}{random.getrandbits(48):012x}"


class Pair:
    """One model on two databases that look the same to one viewer."""

    def __init__(self, model: Model, who: str, runner: asyncio.Runner) -> None:
        self.model = model
        self.runner = runner
        self.apps = [Diptych(model, database="sqlite:///:memory:") for _ in range(2)]
        self.handlers: list[Handler] = [runner.run(app.start()) for app in self.apps]
        self.proof = Proof(model, 1, self.apps[0].store, runner)
        self.viewer = self.proof.viewers()[who]
        other, self.changes = altered(model, self.viewer, self.proof.rows, Random(2))
        runner.run(load(self.apps[1].store, model, other))
        for handler in self.handlers:
            handler.engine.secret = self.proof.engine.secret

    def close(self) -> None:
        for app in self.apps:
            self.runner.run(app.stop())

    def check(self, drawn: Drawn) -> None:
        """Both databases answer the same, in both styles."""
        raw = drawn.sealed(self.model, lambda read, values: self.proof.key_of(self.viewer, read, values))
        document, variables = print_graphql(drawn.asks, raw, self.model)
        body = json.dumps({"query": document, "variables": variables}).encode()
        self._same("POST", "/graphql", body)
        if drawn.rest:
            self._same("GET", print_rest(drawn.reads[0], raw, self.model), b"")

    def _same(self, method: str, url: str, body: bytes) -> None:
        one, other = (self.runner.run(self._send(handler, method, url, body)) for handler in self.handlers)
        assert one.status in (200, 404), one.body
        assert (one.status, one.headers, one.body) == (other.status, other.headers, other.body), (url, body)

    async def _send(self, handler: Handler, method: str, url: str, body: bytes) -> Reply:
        path, _, query = url.partition("?")
        headers = {b"content-type": b"application/json"}
        if self.viewer.signed_in:
            roles = [name for name in self.model.roles if name in self.viewer.roles]
            token = handler.context.tokens.make(self.viewer.id, roles, self.viewer.scopes)
            headers[b"authorization"] = b"Bearer " + token.encode()

        async def read(most: int) -> bytes:
            return body

        return await handler.handle(Request(method, path, query, headers, read))

    def prove(self, examples: int) -> None:
        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None,
                  phases=[Phase.generate])  # fmt: skip
        @given(asks(self.model, self.viewer, self.proof.rows))
        def same(drawn: Drawn) -> None:
            self.check(drawn)

        same()


@pytest.fixture(params=[(name, who) for name in MODELS for who in WHO], ids=str)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    name, who = request.param
    with asyncio.Runner() as runner:
        found = Pair(MODELS[name], who, runner)
        yield found
        found.close()


def test_what_a_viewer_may_not_see_alters_no_answer(pair: Pair) -> None:
    assert pair.changes > 5, "the two databases hardly differ: this would prove nothing"
    pair.prove(EXAMPLES)


def _unmasked(rule: Expr, of: Expr) -> Expr:
    return of


@pytest.mark.parametrize("who", ["someone", "middle"])
def test_without_masks_it_fails(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "mask", _unmasked)
    with asyncio.Runner() as runner:
        pair = Pair(nasty.model, who, runner)
        with pytest.raises(AssertionError):
            pair.prove(600)
        pair.close()


def test_without_row_rules_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "assume", lambda rule, known: TRUE)
    with asyncio.Runner() as runner:
        pair = Pair(default, "someone", runner)
        with pytest.raises(AssertionError):
            pair.prove(600)
        pair.close()
