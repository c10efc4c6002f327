"""The price bounds the objects that are returned: for random requests, in both styles; where every relation is full, it
is their number; and whatever is dearer than allowed is refused before any SQL.

A price that forgets something is caught: each fault that is planted below makes one of these tests fail.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.api.graphql.printer import print_graphql
from diptych.api.graphql.translate import translate
from diptych.api.rest.printer import print_rest
from diptych.ask.nodes import EdgePart, Edges, Follow, Nodes, Read
from diptych.ask.slots import SIZE
from diptych.demo.model import model as default
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model
from diptych.policy import cost
from diptych.policy.limits import Checks
from tests.contract.price import full
from tests.contract.price.counting import objects, things
from tests.contract.price.full import Asking, shape
from tests.support import edge_cases
from tests.support.asks import Dice, Drawn, World
from tests.support.effort import scaled
from tests.support.in_process import Answer, Service, in_process
from tests.support.proof import cursor_key
from tests.support.reading import parsed

MODELS = {"default": default, "edge_cases": edge_cases.model}
LIMITLESS = 10**9
SHAPES, ASKS, AT_THE_LIMIT = scaled(500, 12), scaled(200, 6), scaled(40, 2)
"""How many of each are drawn."""


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def world(runner: asyncio.Runner) -> Iterator[Service]:
    """The world that is full."""
    with in_process(
        full.model, "sqlite:///:memory:", runner, full.rows(), max_complexity=LIMITLESS, planning_share=0.0
    ) as found:
        yield found


# asking, and being told


def ask_graphql(service: Service, document: str, variables: Any = None, token: str | None = None) -> tuple[int, Any]:
    """The price that is told, and the data."""
    request = {"query": document, "variables": variables or {}, "extensions": {"cost": True}}
    answer = service.post(request, token=token)
    assert answer.status == 200, answer.body
    body = answer.json()
    assert "errors" not in body, body
    return body["extensions"]["cost"]["price"], body["data"]


def ask_rest(service: Service, url: str, token: str | None = None) -> tuple[int, Answer]:
    """The price that is told, and the answer."""
    answer = service.get(url, token=token, headers={"prefer": "cost"})
    missing = 401 if url.startswith("/viewer") and token is None else 404
    assert answer.status in (200, missing), answer.body
    if answer.status == missing:
        return 0, answer
    found = re.fullmatch(r"price=(\d+), allowed=(\d+), depth=(\d+)", answer.headers["cost"])
    assert found is not None, answer.headers
    return int(found[1]), answer


def root_of(document: str, model: Model) -> Read:
    view = model.view(model.signature(model.anonymous))
    (read,) = translate(*parsed(document), {}, view).wish.asks
    return read


# where every relation is full


def hold_full(service: Service, asking: Asking) -> None:
    price, data = ask_graphql(service, asking.document)
    read = root_of(asking.document, full.model)
    (answer,) = data.values()
    assert price == objects(read, answer), asking.document
    assert things(read, answer) <= 3 * price, asking.document
    if asking.url is not None:
        assert ask_rest(service, asking.url)[0] == price, asking.url


def shapes(seed: int, number: int) -> Iterator[Asking]:
    random = Random(seed)
    for index in range(number):
        yield shape(random, pages=index % 3 > 0)


def test_where_every_relation_is_full_the_price_is_the_number_of_objects(world: Service) -> None:
    for asking in shapes(1, SHAPES):
        hold_full(world, asking)


def test_what_stands_among_the_nodes_and_the_edges_cannot_grow_with_the_depth(world: Service) -> None:
    """Each level doubles what the answer holds, so it has to double the price; else it would be 64 times too low."""
    inner = "{ nodes { id } edges { node { id } } }"
    for _ in range(5):
        below = f"peersConnection(first: 2) {inner}"
        inner = f"{{ nodes {{ {below} }} edges {{ node {{ {below} }} }} }}"
    hold_full(world, Asking(f"{{ peersConnection(first: 2) {inner} }}", None))


# random requests of the models that other proofs are about


class Scene:
    """A model with its data, and one who asks."""

    def __init__(self, service: Service, model: Model, data: Any, viewer: Viewer, roles: tuple[str, ...]) -> None:
        self.service = service
        self.model = model
        self.viewer = viewer
        self.token = service.token(viewer.id, *roles) if viewer.signed_in else None
        self.world = World(model, viewer, data)

    def drawn(self, random: Random) -> Drawn:
        return Dice(random, self.world).drawn(1)

    def raw(self, drawn: Drawn) -> list[Any]:
        engine = self.service.handler.engine
        return drawn.sealed(self.model, lambda read, values: cursor_key(engine, self.viewer, read, values))

    def hold(self, drawn: Drawn) -> int:
        """The price is the same in both styles, and no less than what is returned."""
        raw = self.raw(drawn)
        price, data = ask_graphql(self.service, *print_graphql(drawn.asks, raw, self.model), self.token)
        ((label, read),) = drawn.asks
        told = f"{print_graphql(drawn.asks, raw, self.model)}"
        assert price >= objects(read, data[label]), told
        assert 3 * price >= things(read, data[label]), told
        if drawn.rest:
            found, answer = ask_rest(self.service, print_rest(read, raw, self.model), self.token)
            assert answer.status != 200 or found == price, told
        return price


@pytest.fixture(scope="module", params=[(name, who) for name in MODELS for who in ("anonymous", "top")], ids=str)
def scene(request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[Scene]:
    name, who = request.param
    model = MODELS[name]
    data = edge_cases.rows(model, 0)
    with in_process(model, "sqlite:///:memory:", runner, planning_share=0.0) as service:
        runner.run(edge_cases.load(service.app.store, model, data))
        roles = tuple(each for each in model.roles if each != "signed_in")[-1:] if who == "top" else ()
        someone = next(data[each][3]["id"] for each in ("User", "Person") if each in data)
        viewer = model.viewer(frozenset(roles), someone) if roles else model.anonymous
        yield Scene(service, model, data, viewer, roles)


def test_a_random_request_returns_no_more_objects_than_its_price(scene: Scene) -> None:
    random = Random(2)
    prices = [scene.hold(scene.drawn(random)) for _ in range(ASKS)]
    assert max(prices) > 100  # they are no trifles


def test_a_request_at_the_limit_passes_and_one_above_it_is_refused_before_any_sql(scene: Scene) -> None:
    random = Random(3)
    service, limits = scene.service, scene.service.handler.engine.limits
    try:
        for _ in range(AT_THE_LIMIT):
            drawn = scene.drawn(random)
            price = scene.hold(drawn)
            if price > 1:
                hold_limit(scene, drawn, price)
            allow(service, limits.complexity)
    finally:
        allow(service, limits.complexity)


def allow(service: Service, complexity: int) -> None:
    """Begin anew with another limit."""
    engine = service.handler.engine
    engine.checks = Checks(replace(engine.limits, complexity=complexity))
    service.forget()


def hold_limit(scene: Scene, drawn: Drawn, price: int) -> None:
    raw, service = scene.raw(drawn), scene.service
    document, variables = print_graphql(drawn.asks, raw, scene.model)
    url = print_rest(drawn.reads[0], raw, scene.model) if drawn.rest else None
    for allowed in (price, price - 1):
        allow(service, allowed)
        for _ in range(3):  # cold, noted, remembered
            before = service.runs
            answers = [service.query(document, variables, token=scene.token)]
            answers += [service.get(url, token=scene.token)] if url else []
            for answer in answers:
                if allowed == price:
                    assert answer.status in (200, 404), answer.body
                else:
                    assert (answer.status, answer.code) == (400, "TOO_COMPLEX"), answer.body
                    assert (price, allowed) == numbers(answer), answer.body
            assert service.runs - before == (len(answers) if allowed == price else 0)
        if allowed == price and any(slot.scalar is SIZE for slot in drawn.slots):
            hold_limit_of_what_is_known(scene, document, variables, price)


def hold_limit_of_what_is_known(scene: Scene, document: str, variables: Any, price: int) -> None:
    """A request whose page sizes are variables is priced each time, also when its plan is kept."""
    engine, before = scene.service.handler.engine, scene.service.runs
    engine.checks = Checks(replace(engine.limits, complexity=price - 1))
    answer = scene.service.query(document, variables, token=scene.token)
    assert (answer.status, answer.code) == (400, "TOO_COMPLEX"), answer.body
    assert numbers(answer) == (price, price - 1)
    assert scene.service.runs == before


def numbers(answer: Answer) -> tuple[int, int]:
    """The price and the limit that a refusal tells."""
    body = answer.json()
    told = body if "detail" in body else body["errors"][0]["extensions"]
    return told["price"], told["allowed"]


# planted faults

Priced = Callable[..., cost.Price]


def _changed(read: Read, change: Callable[[Any], Any]) -> Read:
    """A Read with its picks changed, at all levels."""

    def inner(part: Any) -> Any:
        match part:
            case Follow():
                return replace(part, read=_changed(part.read, change))
            case Nodes():
                return replace(part, pick=change(tuple(map(inner, part.pick))))
            case Edges():
                return replace(part, parts=change(tuple(map(inner, part.parts))))
            case EdgePart():
                return replace(part, pick=change(tuple(map(inner, part.pick))))
        return part

    return replace(read, pick=change(tuple(map(inner, read.pick))))


def without_edges(price: Priced) -> Priced:
    """A connection is priced without its edges."""

    def change(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(part for part in parts if not isinstance(part, Edges))

    return lambda asks, *rest: price([_changed(each, change) for each in asks], *rest)


def aliases_once(price: Priced) -> Priced:
    """What is followed under two names is priced once."""

    def change(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        seen = {(type(part), getattr(part, "relation", id(part))): part for part in parts}
        return tuple(seen.values())

    return lambda asks, *rest: price([_changed(each, change) for each in asks], *rest)


def nodes_once(price: Priced) -> Priced:
    """Nodes under two names are priced once."""

    def change(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        seen = {type(part) if isinstance(part, Nodes | Edges) else id(part): part for part in parts}
        return tuple(seen.values())

    return lambda asks, *rest: price([_changed(each, change) for each in asks], *rest)


def lists_once(price: Priced) -> Priced:
    """A nested list is priced as if it stood there once."""

    def priced(*given: Any) -> cost.Price:
        found = price(*given)
        return cost.Price(found.constant, tuple((0, slot, each) for _, slot, each in found.steps), found.names)

    return priced


def ones_free(price: Priced) -> Priced:
    """A relation to one is priced as a plain field."""

    def change(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(part for part in parts if not (isinstance(part, Follow) and part.read.take == "one"))

    return lambda asks, *rest: price([_changed(each, change) for each in asks], *rest)


@pytest.mark.parametrize("fault", [without_edges, aliases_once, nodes_once, lists_once, ones_free])
def test_a_price_that_forgets_something_is_caught(
    fault: Callable[[Priced], Priced], world: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "price_of", fault(cost.price_of))
    world.forget()
    try:
        with pytest.raises(AssertionError):
            for asking in shapes(1, SHAPES):
                hold_full(world, asking)
    finally:
        monkeypatch.undo()
        world.forget()


def test_what_is_in_nodes_and_in_edges_adds_up(world: Service) -> None:
    """The rows of a page are counted once; the larger of all that is in them alone would not bound what is returned."""
    below = "peersConnection(first: 2) { nodes { id } }"
    document = f"{{ peersConnection(first: 2) {{ nodes {{ {below} }} edges {{ node {{ {below} }} }} }} }}"
    price, data = ask_graphql(world, document)
    assert price == objects(root_of(document, full.model), data["peersConnection"]) == 2 * (1 + 2 + 2)
    assert json.dumps(data).count('"id"') == 8 > 2 * (1 + 2)
