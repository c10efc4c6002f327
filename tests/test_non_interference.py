"""What a viewer may not see alters nothing that the viewer gets.

Two databases differ only in what the viewer may not see: in hidden rows, in hidden fields and relations of
visible rows, and in hidden rows that only one of them has. Random requests, in both styles, with filters drawn
from the hidden values too, get equal answers: status, headers and bytes. With the rules switched off the test
fails.

So do random changes, with ids of hidden rows among their values. That something is in conflict may differ: it is
allowed to tell of a value that must be unique, and of a row that still refers to another. And a change may let its
viewer see more than before: what is seen then is no longer hidden.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from diptych import Diptych, transact
from diptych.api import draft
from diptych.api.graphql.printer import print_graphql
from diptych.api.reply import Reply
from diptych.api.rest.printer import print_rest
from diptych.ask.change import Guard, Why
from diptych.check import access, change
from diptych.compile import dialect
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
from tests.inside import Service, inside
from tests.nasty import load, pool
from tests.oracle import Row, Sight
from tests.oracle_writes import Ledger, Refused, Wish
from tests.proof import PROOF, Proof
from tests.proof_writes import Clock, Run, kind, viewers
from tests.running import NewDatabase
from tests.wishes import Style, Transaction, Wishes, send_graphql, send_rest

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


def altered(
    model: Model, viewer: Viewer, rows: Mapping[str, Any], random: Random, held: Callable[[FieldDef], bool] | None = None
) -> tuple[Rows, int]:
    """The same rows with everything changed that the viewer cannot see, and how many changes that were."""
    other: Rows = {name: [dict(row) for row in each] for name, each in rows.items()}
    before = seen(model, viewer, other)
    changes = 0
    for name, resource in model.resources.items():
        for row in other[name]:
            for field in resource.fields.values():
                if held is not None and held(field):
                    continue
                choices = _ids(resource, field, row, other) if field.relation else _values(field, random)
                changes += _change(row, field, choices, random, lambda: seen(model, viewer, other) == before)
        changes += _add(other, resource, random, lambda: seen(model, viewer, other) == before)
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


def _add(rows: Rows, resource: ResourceDef, random: Random, unseen: Callable[[], bool]) -> bool:
    """Add the twin of a hidden row, if nobody notices."""
    name, unique = resource.name, [field for field in resource.fields.values() if field.unique]
    for row in list(rows[name]):
        twin = copy.deepcopy(row)
        twin["id"] = random.randrange(10**6, 10**7) if isinstance(row["id"], int) else _next_id(row["id"], random)
        for field in unique:
            if twin[field.name] is not None:
                twin[field.name] = f"{random.getrandbits(60)}@twin"
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


# changes


SEQUENCES = 20
LENGTH = 8
WRITERS = {"someone": 0, "middle": 2}
"""Viewers who may change something and not see everything, by their number."""


NEW = "01ffffff-0000-7000-9000-"


class Numbered(Ledger):
    """A ledger whose new ids are the same wherever the same changes are made."""

    def new_id(self, resource: ResourceDef) -> Any:
        if resource.key is INTEGER_ID:
            return max([10**9, *(row["id"] for row in self.rows[resource.name])]) + 1
        new = [row["id"] for row in self.rows[resource.name] if row["id"].startswith(NEW)]
        return f"{NEW}{int(max([NEW + '0', *new])[len(NEW) :], 16) + 1:012x}"


class WritingPair:
    """One model on two databases that look the same to one viewer, who changes both in the same way."""

    def __init__(self, model: Model, who: str, runner: asyncio.Runner) -> None:
        self.model = model
        self.runner = runner
        self.clock = Clock()
        self.ids = 0
        data = kind(model, nasty.rows(model, 1))
        self.viewer = viewers(model, data)[WRITERS[who]]
        other, self.changes = altered(model, self.viewer, data, Random(2), self._held)
        self.data = (data, other)
        self.runs = [Run(model, "sqlite:///:memory:", each, runner) for each in self.data]
        for run in self.runs:
            run.handler.engine.secret = b"secret"

    def _held(self, field: FieldDef) -> bool:
        """A reference that is set to null moves the version of its row, which may be seen."""
        relations = (each.relations.get(field.relation) for each in self.model.resources.values()
                     if each.fields.get(field.name) is field)  # fmt: skip
        return any(each is not None and each.on_delete == "set null" for each in relations)

    def new_id(self) -> str:
        """The same ids in both databases."""
        self.ids += 1
        return f"01ffffff-0000-7000-8000-{self.ids:012x}"

    def close(self) -> None:
        for run in self.runs:
            self.runner.run(run.app.stop())

    def prove(self, seeds: range) -> int:
        """So many sequences get the same answers; gives how many changes were made."""
        return sum(self.runner.run(self._sequence(Random(seed))) for seed in seeds)

    async def _sequence(self, random: Random) -> int:
        for run in self.runs:
            await run.reset()
        ledgers, wishes, done = [Numbered(self.model, each) for each in self.data], Wishes(self.model, random), 0
        for self.clock.step in range(LENGTH):
            transaction = wishes.transaction(self.viewer, ledgers[1].rows)
            reveals = self._reveals(ledgers, transaction)
            made = [self._make(ledger, transaction.wishes) for ledger in ledgers]
            replies = await self._send(transaction, random.choice(transaction.styles), ledgers[1].made)
            if reveals or not self._same(transaction, *replies):
                break
            done += all(made)
        return done

    def _make(self, ledger: Ledger, wishes: Sequence[Wish]) -> bool:
        try:
            ledger.transact(wishes, self.viewer, self.clock.moment)
            return True
        except Refused:
            return False

    def _reveals(self, ledgers: Sequence[Ledger], transaction: Transaction) -> bool:
        """Does the viewer see more, once the changes are made, or on the way there?"""
        for count in range(1, len(transaction.wishes) + 1):
            after = [Numbered(self.model, ledger.rows) for ledger in ledgers]
            if all([self._make(ledger, transaction.wishes[:count]) for ledger in after]):
                one, other = (seen(self.model, self.viewer, ledger.rows) for ledger in after)
                if one != other:
                    return True
        return False

    async def _send(self, transaction: Transaction, style: Style, made: Sequence[tuple[str, Any]]) -> list[Reply]:
        replies = []
        for run in self.runs:
            self.ids = self.clock.step * 1_000
            send = send_graphql if style == "graphql" else send_rest
            sent = send(transaction, self.model, run.names)
            reply = await run.send(sent, self.viewer)
            run.note_ids(transaction, run.outcome(reply, sent), made)
            replies.append(reply)
        return replies

    def _same(self, transaction: Transaction, one: Reply, other: Reply) -> bool:
        """Are both answers the same? A conflict may be in one only; what follows cannot be compared then."""
        if _is_conflict(one) != _is_conflict(other):
            return False
        told = "\n".join(map(repr, transaction.wishes))
        first, second = (self._timeless(reply) for reply in (one, other))
        assert first == second, f"{self.viewer}\n{told}\n{first}\n{second}"
        return True

    def _timeless(self, reply: Reply) -> tuple[int, dict[bytes, bytes], bytes]:
        """An answer without the times that a database itself set."""
        body = b""
        headers = dict(reply.headers)
        if reply.body:
            value = json.loads(reply.body)
            shown = self.runs[0].incoming(value)
            body = json.dumps(shown).encode() if shown != value else reply.body
            if shown != value:
                headers.pop(b"etag", None)
        return reply.status, headers, body


def _is_conflict(reply: Reply) -> bool:
    """Is it one of the conflicts that may tell of what is hidden?"""
    return b"Another one has this value." in reply.body or b"Others still refer to this." in reply.body


@contextmanager
def writing(model: Model, who: str) -> Iterator[WritingPair]:
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        pair = WritingPair(model, who, runner)
        patch.setattr(draft, "_new_id", pair.new_id)
        patch.setattr(dialect, "_now", pair.clock.now)
        yield pair
        pair.close()


@pytest.mark.timeout(300 * PROOF)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("who", WRITERS)
def test_what_a_viewer_may_not_see_alters_no_answer_to_a_change(name: str, who: str) -> None:
    with writing(MODELS[name], who) as pair:
        assert pair.changes > 5, "the two databases hardly differ: this would prove nothing"
        assert pair.prove(range(SEQUENCES * PROOF)) > SEQUENCES * PROOF, "too little was changed to prove anything"


def _no_hidden_rows(self: change._Change, values: dict[str, Expr]) -> Iterator[Guard]:
    return (each for each in _GUARDS(self, values) if each.why is not Why.HIDDEN)


_GUARDS = change._Change._guards


def test_where_hidden_rows_are_changed_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change._Change, "_guards", _no_hidden_rows)
    with writing(default, "someone") as pair, pytest.raises(AssertionError):
        pair.prove(range(400))


def references(service: Service, tag: str) -> list[Any]:
    """What someone is told who ties a thing to a tag, in both styles."""
    body = {"thingId": "1", "tagId": tag, "public": True}
    document = "mutation ($input: TaggingCreate!) { createTagging(input: $input) { id } }"
    token = service.token("00000000-0000-7000-8000-000000000001")
    headers, data = {"content-type": "application/json"}, json.dumps(body).encode()
    rest = service.send("POST", "/taggings", headers=headers, body=data, token=token)
    return [rest.json(), service.query(document, {"input": body}, token=token).json()]


@pytest.fixture
def tags(new_database: NewDatabase) -> Iterator[Service]:
    """A thing that anyone may read, and a tag that only keepers may."""
    rows = kind(nasty.model, nasty.rows(nasty.model, 1))
    thing = {**rows["Thing"][0], "id": 1, "ownerId": None, "parentId": None, "flag": True}
    tag = {**rows["Tag"][0], "id": HIDDEN_TAG, "hidden": True}
    with asyncio.Runner() as runner, inside(nasty.model, new_database(), runner, {"Thing": [thing], "Tag": [tag]}) as found:
        yield found


HIDDEN_TAG, NO_TAG = "00000000-0000-7000-8000-000000000007", "00000000-0000-7000-8000-000000000008"


def test_a_reference_to_a_hidden_row_is_refused_exactly_like_one_to_no_row(tags: Service) -> None:
    assert references(tags, HIDDEN_TAG) == references(tags, NO_TAG)
    assert references(tags, NO_TAG)[0]["errors"][0]["pointer"] == "/tagId"


def test_where_rules_are_told_first_the_hidden_row_shows(tags: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transact, "_tellable", lambda failed: failed)
    assert references(tags, HIDDEN_TAG) != references(tags, NO_TAG)
