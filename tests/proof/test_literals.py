"""A document with literals is answered as if each text were planned by itself.

Two services with equal rows get the same random requests. One lifts literals out of texts, so that texts which differ only
in them share a plan; in the other, lifting is off. Every answer is the same to the byte: data, errors, their locations and
what they quote. Texts come in families: one pattern, many literals, of the right kind and of all others.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from msgspec.structs import replace

from diptych import Model
from diptych.api.graphql.literals import Literals, lift
from diptych.api.graphql.printer import print_graphql
from diptych.ask.slots import LITERALS
from diptych.demo.model import model as shop
from diptych.serve.endpoint.graphql_planner import Planner
from diptych.serve.endpoint.known_operation import KnownDocument, KnownOperation
from tests.contract.calls import press
from tests.contract.http import data, shelf
from tests.support import edge_cases
from tests.support.asks import Drawn, asks
from tests.support.edge_cases import rows
from tests.support.effort import scaled
from tests.support.in_process import Answer, Service, in_process

ROUNDS = scaled(4_000, 120)
EXAMPLES = scaled(300, 10)
HOLE = re.compile("¤([a-z]*)")
STRINGS: tuple[str, ...] = (
    "",
    "x",
    "X",
    "é",
    " ",
    "EUR",
    "a@b.c",
    "pending",
    "name",
    "2026-01-31",
    "2026-01-31T12:00:00Z",
    "12.50",
    "7",
)
STRINGS += (
    "# no comment",
    "{",
    "$id",
    "__type",
    "first: 3",
    "=",
    "\\",
    '"',
    "\n",
    "\0",
    "x" * 90,
    "x" * 300,
    "x" * 5_000,
)
INTS = (
    "0",
    "-0",
    "1",
    "2",
    "7",
    "-1",
    "100",
    "101",
    "2147483647",
    "2147483648",
    "999999999999999999",
    "1" * 19,
    "9" * 30,
)
ODD: tuple[str, ...] = (
    "null",
    "true",
    "ASC",
    "1.5",
    "1e3",
    "-1.5e-3",
    "01",
    "1x",
    '"""x"""',
    '"\\u0041"',
    '"\\u{41}"',
    '"\\ud800"',
    '"\\q"',
)
ODD += ('"open', "[]", "{}", '["x"]', '["x", 1]', "[1, 1]", '{a: "x"}', "$v", "#\n1", '"a" #"\n', "-", "pending")

Shop = [data.ANN, data.BEN, data.NOBODY, *data.POST[1:4], *data.ORDER[1:3]]
PATTERNS = {
    "shop": (
        "{ user(id: ¤id) { name } }",
        '{ user(id:¤id){name} }  # "',
        "{ a: user(id: ¤id) { name } a: user(id: ¤id) { id } }",
        "{ a: user(id: ¤id) { name } b: user(id: ¤id) { name __typename } }",
        "{ user(id: ¤id) { ...F } } fragment F on User { posts(first: ¤int, where: {title: {eq: ¤}}) { title } }",
        "fragment F on User { posts(where: {title: {in: [¤, ¤]}}) { title } } query Q($v: ID!) { user(id: $v) { ...F } }",
        "query Q($v: ID!, $n: Int) { user(id: $v) { name } posts(first: $n, where: {title: {ne: ¤}}) { title } }",
        "fragment F on Post { author { posts(where: {title: {ne: ¤}}) { title } } } query Q($n: Int) { posts(first: $n) { ...F } }",
        "query Q($v: ID = ¤id) { user(id: $v) { name } }",
        "query($v: Boolean!) { a: user(id: ¤id) @include(if: $v) { name } b: user(id: ¤id) { name } }",
        "{ users(first: ¤int, offset: ¤int, where: {name: {startsWith: ¤}}) { name } }",
        "{ users(first: # here\n ¤int) { name } }",
        "{ usersConnection(first: 1, after: ¤cursor) { nodes { name } pageInfo { endCursor } } }",
        "{ posts(orderBy: {title: ¤odd}, where: {or: [{title: {eq: ¤}}, {author: {name: {contains: ¤}}}]}) { title } }",
        "{ orders(where: {total: {gte: ¤}, createdAt: {lt: ¤}}) { total note } }",
        "{ posts(where: {published: {eq: ¤odd}, author: ¤odd}) { title } }",
        "{ __type(name: ¤) { name } }",
        "{ user(id: ¤id) { name } __schema { queryType { name } } }",
        "query A { user(id: ¤id) { name } } query B { users { name } }",
        "{ user(id: ¤id, name: ¤) { name } }",
        "{ user(id: ¤id) { nam } }",
        "{ user(id: ¤id) { name ",
        "subscription { postChanged(id: ¤id) { kind } }",
        "mutation { createOrder(input: {customerId: ¤id, total: ¤, currency: ¤}) { total currency customer { name } } }",
        "mutation { updateUser(id: ¤id, patch: {name: ¤}, ifVersion: ¤int) { name version } }",
        "mutation($v: ID!) { a: updateUser(id: $v, patch: {name: ¤}) { name } b: updateUser(id: ¤id, patch: {email: ¤}) { email } }",
        "mutation { createUser(input: {name: ¤, email: ¤}) { name email } }",
        "mutation { deletePost(id: ¤id) { title } }",
    ),
    "shelf": (
        "{ item(id: ¤int) { text number data } }",
        "{ items(where: {number: {gt: ¤int}, big: {lt: ¤}, price: {ne: ¤}, ratio: {gte: ¤}}) { id number } }",
        "{ items(where: {day: {eq: ¤}}) { id } b: items(where: {moment: {gt: ¤}}) { id } }",
        "{ items(where: {number: {in: [¤int, ¤int]}}, orderBy: [{number: ASC}, {text: DESC}]) { id text } }",
        "{ items(where: {mood: {eq: ¤odd}}) { id mood } }",
        "{ items(where: {children: {some: {text: {contains: ¤}}}}) { id labels(where: {word: {startsWith: ¤}}) { word } } }",
    ),
    "press": (
        "{ latest(limit: ¤int) { title } }",
        "{ latest { title } writer(id: ¤id) { name } }",
        "mutation { publishArticle(id: ¤id, title: ¤) { title published } }",
        "mutation { judgeArticle(id: ¤id, text: ¤) }",
        "mutation { createWriter(input: {name: ¤}) { name } }",
    ),
}
MODELS: dict[str, tuple[Model, Any]] = {
    "shop": (shop, data.ROWS),
    "shelf": (shelf.model, shelf.ROWS),
    "press": (press.model, press.ROWS),
    "edge_cases": (edge_cases.model, rows(edge_cases.model, 7)),
}
IDS = {
    "shop": Shop,
    "shelf": ["1", "2", "x"],
    "press": [press.ANN, press.SEEN, press.DRAFT, press.BOBS],
    "edge_cases": [""],
}


class Pair:
    """Two equal services; the second plans every text by itself."""

    def __init__(self, lifting: Service, plain: Service, name: str) -> None:
        self.services = lifting, plain
        self.name = name
        self.model = MODELS[name][0]
        plain.handler.graphql.planner.lifts = False
        plain.handler.engine.secret = lifting.handler.engine.secret
        roles = [name for name in self.model.roles if name != "signed_in"]
        user = IDS[name][0] or None
        self.tokens = [[None, service.token(user), service.token(user, *roles)] for service in self.services]
        self.cursors = ["nope"]

    def ask(self, request: Any, who: int) -> Answer:
        """The one answer of both."""
        lifting, plain = (
            service.post(request, token=tokens[who], accept="application/graphql-response+json")
            for service, tokens in zip(self.services, self.tokens, strict=True)
        )
        assert (lifting.status, lifting.body) == (plain.status, plain.body), request
        return lifting

    def shared(self) -> int:
        """How many texts found the plan of another."""
        entries = [entry for _, entry in self.services[0].handler.graphql.planner._entries.items()]
        assert any(isinstance(entry, KnownDocument) and entry.document.places for entry in entries)
        return sum(isinstance(entry, Literals) for entry in entries)


@pytest.fixture
def pair_of() -> Iterator[Callable[[str], Pair]]:
    """Makes a pair of services for a model."""
    with asyncio.Runner() as runner:
        opened: list[Any] = []

        def make(name: str) -> Pair:
            model, some = MODELS[name]
            both = [in_process(model, "sqlite:///:memory:", runner, some) for _ in range(2)]
            opened.extend(both)
            return Pair(both[0].__enter__(), both[1].__enter__(), name)

        yield make
        for service in opened:
            service.__exit__(None, None, None)


class Filler:
    """Fills the holes of a pattern with literals."""

    def __init__(self, random: Random, pair: Pair) -> None:
        self.random = random
        self.pair = pair

    def fill(self, pattern: str) -> str:
        used: list[str] = []

        def literal(match: re.Match[str]) -> str:
            random = self.random
            if used and random.random() < 0.2:
                return random.choice(used)
            used.append(self.literal(match[1]))
            return used[-1]

        return HOLE.sub(literal, pattern)

    def literal(self, kind: str) -> str:
        random = self.random
        if kind == "odd" or random.random() < 0.1:
            return random.choice(ODD)
        if kind == "int" or random.random() < 0.1:
            return random.choice(INTS)
        ids = IDS[self.pair.name]
        pools = {"id": ids, "cursor": self.pair.cursors, "": STRINGS}
        text = random.choice(pools[kind] if random.random() < 0.8 else [*STRINGS, *ids])
        return json.dumps(text, ensure_ascii=random.random() < 0.5)

    def request(self, pattern: str) -> Any:
        random = self.random
        text = self.fill(pattern)
        if random.random() < 0.05:
            at = random.randrange(len(text))
            text = (
                text[:at] + random.choice((" ", '"', "#", "}", "0", "_", "=", "\n")) + text[at + random.randrange(2) :]
            )
        request: dict[str, Any] = {"query": text}
        if "$v" in text or random.random() < 0.1:
            ids = IDS[self.pair.name]
            request["variables"] = {
                "v": random.choice([*ids, True, None, 5]),
                "n": random.choice([1, 2, 0, "x"]),
                '"': [1],
            }
        if random.random() < 0.1:
            request["operationName"] = random.choice(("A", "B", "Q", None))
        return request


def storm(pair: Pair, rounds: int, number: int = 0, within: str = "") -> None:
    """Many random requests, in families."""
    filler = Filler(Random(number), pair)
    random = filler.random
    patterns = [pattern for pattern in PATTERNS[pair.name] if within in pattern]
    while rounds > 0:
        pattern, who = random.choice(patterns), random.randrange(3)
        for _ in range(random.randrange(3, 12)):
            rounds -= 1
            request = filler.request(pattern)
            for _ in range(random.choice((1, 1, 2, 3))):
                answer = pair.ask(request, who)
            pair.cursors += re.findall('"endCursor":"([^"]+)"', answer.body.decode())


@pytest.mark.parametrize("name", PATTERNS)
def test_texts_with_literals_are_answered_as_each_by_itself(name: str, pair_of: Callable[[str], Pair]) -> None:
    pair = pair_of(name)
    storm(pair, ROUNDS)
    assert pair.shared() > ROUNDS // 40


VARIABLE = re.compile(r"\$(v\d+)(: [\[\]\w!]+(?:, )?)?")


def with_literals(document: str, variables: dict[str, Any], lifted: set[str]) -> str:
    """A document with the values of some variables written into it."""

    def literal(match: re.Match[str]) -> str:
        name, declared = match[1], match[2]
        if name not in lifted:
            return match[0]
        return "" if declared else json.dumps(variables[name])

    return VARIABLE.sub(literal, document).replace("()", "").replace(", )", ")")


@pytest.mark.parametrize("who", range(3))
def test_random_queries_are_answered_alike(who: int, pair_of: Callable[[str], Pair]) -> None:
    pair = pair_of("edge_cases")
    roles = [name for name in pair.model.roles if name != "signed_in"]
    viewer = pair.model.viewer(frozenset(roles if who == 2 else ()), None)
    random = Random(who)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @seed(who)
    @given(asks(pair.model, viewer, MODELS["edge_cases"][1], roots=2))
    def alike(drawn: Drawn) -> None:
        document, variables = print_graphql(
            drawn.asks, [str(value) if isinstance(value, tuple) else value for value in drawn.values], pair.model
        )
        plain = [name for name, value in variables.items() if not isinstance(value, list | dict)]
        lifted = {name for name in plain if random.random() < 0.8}
        for _ in range(5):
            text = with_literals(document, variables, lifted)
            pair.ask(
                {"query": text, "variables": {name: variables[name] for name in variables if name not in lifted}}, who
            )
            for name in random.sample(plain, min(2, len(plain))):
                pool = [value for value in variables.values() if type(value) is type(variables[name])]
                variables = {**variables, name: random.choice([*pool, *pool, "x", 3])}

    alike()
    assert pair.shared() > EXAMPLES // 10


def _distinct(text: str) -> Literals | None:
    lifted = lift(text)
    if lifted is None:
        return None
    values = tuple(lifted.values[index] for index in lifted.places.values())
    places = {place: number for number, place in enumerate(lifted.places)}
    return replace(lifted, rest=(lifted.rest[0], *lifted.rest[1::2]), values=values, places=places)


def _merged(text: str) -> Literals | None:
    lifted = lift(text)
    return lifted and replace(
        lifted, rest=lifted.rest[:1], values=lifted.values[:1], places=dict.fromkeys(lifted.places, 0)
    )


def _without_sizes(text: str) -> Literals | None:
    lifted = lift(text)
    return lifted and replace(lifted, rest=(re.sub(r"first: \d+", "", lifted.rest[0]), *lifted.rest[1:]))


BINDINGS, CHECK_INPUTS = KnownOperation.bindings, Planner.check_inputs


def _of_no_count(known: KnownOperation, count: int) -> Any:
    return BINDINGS(known, 0)


def _in_the_first_text(planner: Planner, entry: KnownDocument, variables: Any, caller: Any) -> None:
    CHECK_INPUTS(planner, entry, {**variables, LITERALS: None}, caller)


FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "equal literals may differ where they are merged": (
        "a: user",
        {"lift": _distinct, "KnownOperation.bindings": _of_no_count},
    ),
    "all literals are one": ("a: user", {"lift": _merged}),
    "a page size is not part of the key": ("first: ¤", {"lift": _without_sizes}),
    "limits are those of the first text": ("title: {ne: ¤}", {"Literals.fit": lambda literals, limits: True}),
    "values are not checked beforehand": ("total: {gte: ¤}", {"_all": lambda bindings: ()}),
    "errors are located in the first text": ("$n: Int", {"Planner.check_inputs": _in_the_first_text}),
}
"""Faults, in which patterns to look for them, and what is replaced in the planner."""


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_lifting_is_seen(
    fault: str, pair_of: Callable[[str], Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    within, replaced = FAULTS[fault]
    for name, wrong in replaced.items():
        monkeypatch.setattr(f"diptych.serve.endpoint.graphql_planner.{name}", wrong)
    pair = pair_of("shop")
    with pytest.raises(AssertionError):
        for number in range(20):
            storm(pair, ROUNDS, number, within)
