"""The price of summaries, groups and lists by numbers of related rows, on random requests of both models: it is the same
in both styles, it bounds what is returned, and no part of it is free. One that forgets a part is caught."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.model.model import Model
from diptych.policy import cost
from diptych.policy.limits import Checks
from tests.contract.price.test_bound import MODELS, ask_graphql, ask_rest
from tests.support import edge_cases
from tests.support.effort import scaled
from tests.support.in_process import Service, in_process
from tests.support.random_aggregates import Draw, Drawn, Tree

REQUESTS = scaled(400, 40)
"""For each model and viewer."""
FUNCTIONS = frozenset({"sum", "avg", "min", "max", "distinct", "count"})


class Scene:
    """A model with its data, and one who asks for numbers of rows."""

    def __init__(self, service: Service, model: Model, data: Any, roles: tuple[str, ...]) -> None:
        self.service = service
        someone = next(data[each][3]["id"] for each in ("User", "Person") if each in data)
        viewer = model.viewer(frozenset(roles), someone) if roles else model.anonymous
        self.token = service.token(viewer.id, *roles) if viewer.signed_in else None
        self.view, self.data = model.view(model.signature(viewer)), data

    def requests(self, seed: int, number: int) -> Iterator[Drawn]:
        draw = Draw(Random(seed), self.view, self.data)
        for _ in range(number):
            drawn = draw()
            if drawn is not None:
                yield drawn

    def hold(self, drawn: Drawn) -> None:
        """The price is told alike in both styles, and is no less than what the parts of the request cost."""
        body = {"query": drawn.document, "variables": drawn.variables}
        if b"more than 18 digits" in self.service.post(body, token=self.token).body:
            return  # a sum that cannot be told
        price, data = ask_graphql(self.service, drawn.document, drawn.variables, self.token)
        text = f"{drawn.document} {json.dumps(drawn.variables)}"
        assert price == ask_rest(self.service, drawn.url, self.token)[0], text
        assert price >= least(drawn), f"{price} for what costs {least(drawn)}: {text}"
        assert price >= returned(data["answer"]), f"{price} for {returned(data['answer'])} objects: {text}"


def least(drawn: Drawn) -> int:
    """What the parts of a request cost by docs/reference/reading.md, without the weights of a model."""
    total = 20 * drawn.count
    for path in {tuple(names) for names, _ in drawn.sort} | {(name,) for name in drawn.where or ()}:
        relation = drawn.resource.relations.get(path[0])
        if relation is not None and drawn.kind != "groups":
            total += 10 if relation.relation.kind == "one" else 30
    if drawn.kind == "list":
        nested = (item[1] for item in drawn.fields if not isinstance(item, str))
        return total + drawn.size * (1 + sum(20 + 5 * _measures(tree) for tree in nested))
    return total + 20 + 5 * _measures(drawn.fields) + (drawn.size if drawn.kind == "groups" else 0)


def _measures(tree: Tree) -> int:
    return sum(item in FUNCTIONS if isinstance(item, str) else _measures(item[1]) for item in tree)


def returned(answer: Any) -> int:
    """The objects of an answer."""
    return len(answer["nodes"]) if "nodes" in answer else 1


@pytest.fixture(scope="module", params=[(name, who) for name in MODELS for who in ("anonymous", "top")], ids=str)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    name, who = request.param
    model = MODELS[name]
    data = edge_cases.rows(model, 0)
    roles = tuple(each for each in model.roles if each != "signed_in")[-1:] if who == "top" else ()
    with asyncio.Runner() as runner, in_process(model, "sqlite:///:memory:", runner) as service:
        runner.run(edge_cases.load(service.app.store, model, data))
        yield Scene(service, model, data, roles)


def test_no_part_of_a_request_for_numbers_is_free(scene: Scene) -> None:
    kinds = set()
    for drawn in scene.requests(1, REQUESTS):
        scene.hold(drawn)
        kinds.add(drawn.kind)
    assert kinds == {"summary", "groups", "list"}


def test_what_is_dearer_than_allowed_is_refused_before_any_sql(scene: Scene) -> None:
    service, engine = scene.service, scene.service.handler.engine
    before = engine.checks
    try:
        for drawn in scene.requests(2, REQUESTS // 4):
            engine = service.handler.engine
            engine.checks = Checks(replace(engine.limits, complexity=least(drawn) - 1))
            service.forget()
            runs = service.runs
            answers = [
                service.query(drawn.document, drawn.variables, token=scene.token),
                service.get(drawn.url, token=scene.token),
            ]
            assert {(answer.status, answer.code) for answer in answers} == {(400, "TOO_COMPLEX")}, drawn.document
            assert service.runs == runs
    finally:
        service.handler.engine.checks = before
        service.forget()


def without_pages(price: Callable[..., cost.Price]) -> Callable[..., cost.Price]:
    """Groups and lists cost nothing for each row."""

    def priced(*given: Any) -> cost.Price:
        found = price(*given)
        return cost.Price(found.constant, ())

    return priced


@pytest.mark.parametrize("part", ["MEASURE_PRICE", "TOTAL_PRICE", "HOP_PRICE", "price_of"])
def test_a_price_that_forgets_a_part_is_caught(part: str, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, part, without_pages(cost.price_of) if part == "price_of" else 0)
    scene.service.forget()
    try:
        with pytest.raises(AssertionError, match="for what costs"):
            for drawn in scene.requests(1, REQUESTS):
                scene.hold(drawn)
    finally:
        monkeypatch.undo()
        scene.service.forget()
