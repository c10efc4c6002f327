"""Reads that went wrong once, each on both stores, and what they must give."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from diptych.api.graphql.translate import translate
from diptych.ask.nodes import Field, Follow, Page, Read
from diptych.ask.slots import SIZE
from diptych.compile.dialect import SQLITE
from diptych.compile.read import compile_reads
from diptych.demo.model import model as default
from diptych.model.declare.roles import Viewer
from diptych.model.rules.expr import Slot
from diptych.policy.access import narrow
from diptych.policy.cost import price_of
from tests.support import edge_cases
from tests.support.cases import cases
from tests.support.in_process import Service, in_process
from tests.support.reading import parsed
from tests.support.running import NewDatabase

PERSON = "00000000-0000-7000-8000-0000000000{:02x}".format
STAMPS = {"version": 1, "createdAt": edge_cases.MOMENTS[2], "updatedAt": edge_cases.MOMENTS[2]}
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def person(number: int, **more: Any) -> dict[str, Any]:
    return {"id": PERSON(number), **STAMPS, "name": f"P{number}", "pin": "0000", **more}


def thing(number: int, **more: Any) -> dict[str, Any]:
    """A thing that anyone may read, and whose parent shows to no one but chiefs."""
    values = {
        "text": "t",
        "count": 1,
        "big": 1,
        "whole": Decimal(1),
        "money": Decimal("1.00"),
        "tiny": Decimal("0.1").quantize(Decimal(1).scaleb(-18)),
        "ratio": 0.5,
        "day": "2026-01-31",
        "moment": edge_cases.MOMENTS[2],
        "data": {},
        "mood": "calm",
        "flag": True,
        "stage": "new",
    }
    return {"id": number, **STAMPS, **values, **more}


ROWS: Rows = {
    "Person": [person(1), person(2), person(3)],
    "Thing": [thing(9), thing(10, parentId=9), thing(11, parentId=9, maybeFlag=False)],
}


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(edge_cases.model, new_database(), runner, ROWS) as found:
        yield found


def test_an_offset_that_skips_nothing_leads_to_no_previous_page(service: Service) -> None:
    found = service.data("{ peopleConnection(first: 1) { pageInfo { startCursor } } }")
    before = found["peopleConnection"]["pageInfo"]["startCursor"]
    query = """query ($before: String) { peopleConnection(first: 1, offset: 1, before: $before) {
        nodes { id } pageInfo { hasNextPage hasPreviousPage } } }"""
    assert service.data(query, {"before": before})["peopleConnection"] == {
        "nodes": [],
        "pageInfo": {"hasNextPage": True, "hasPreviousPage": False},
    }


def test_integer_ids_stand_in_the_order_of_numbers(service: Service) -> None:
    found = service.data("{ thingsConnection { nodes { id } pageInfo { startCursor endCursor } edges { cursor } } }")
    page = found["thingsConnection"]
    assert [node["id"] for node in page["nodes"]] == ["9", "10", "11"]
    assert page["pageInfo"]["startCursor"] == page["edges"][0]["cursor"]
    assert page["pageInfo"]["endCursor"] == page["edges"][2]["cursor"]


def test_no_number_is_null_and_not_zero(service: Service) -> None:
    token = service.token(None, "chief")
    query = "{ thing(id: 9) { maybeMoney exact maybeRatio maybeBig maybeCount } }"
    nulls = dict.fromkeys(("maybeMoney", "exact", "maybeRatio", "maybeBig", "maybeCount"))
    assert service.data(query, token=token) == {"thing": nulls}


def test_a_list_does_not_tell_what_the_way_back_hides(service: Service) -> None:
    """Thing 10 hides its parent, so its parent does not show it among its children, nor do filters."""
    query = """{ thing(id: 9) { children { id parentId } childrenConnection { totalCount } }
        things(where: {children: {some: {id: {eq: 10}}}}) { id } }"""
    assert service.data(query) == {
        "thing": {"children": [{"id": "11", "parentId": "9"}], "childrenConnection": {"totalCount": 1}},
        "things": [],
    }
    assert service.data(query, token=service.token(None, "chief"))["things"] == [{"id": "9"}]


def test_any_number_of_relations_to_one_can_be_read_at_once() -> None:
    """SQLite joins no more than 64 tables."""
    authors = tuple(Follow("author", f"a{n}", Read("User", "one", (Field("name", "name"),))) for n in range(70))
    view = default.view(default.signature(Viewer()))
    ask = narrow(Read("Post", "list", authors, page=Page(Slot(0, SIZE))), view)
    plan = compile_reads([ask], default, SQLITE)
    with asyncio.Runner() as runner, in_process(default, "sqlite:///:memory:", runner) as service:
        assert list(runner.run(service.app.store.run(plan, plan.parameters([20], Viewer(), {})))) == [b"[]"]


@cases(
    ("selection", "price"),
    [
        ("nodes { id }", 100),
        ("nodes { id } edges { node { id } }", 100),
        ("a: nodes { id } b: nodes { id } edges { cursor }", 200),
        ("edges { a: node { id } b: node { id } }", 200),
        ("edges { cursor }", 100),
        ("pageInfo { hasNextPage }", 100),
        ("nodes { id } pageInfo { hasNextPage }", 100),
        ("__typename", 1),
        ("totalCount t: totalCount", 40),
        ("a: nodes { things(first: 2) { id } } b: nodes { id }", 400),
        ("nodes { things(first: 2) { id } } edges { node { things(first: 3) { id } } }", 600),
    ],
)
def test_what_is_asked_for_under_several_aliases_costs_several_times(selection: str, price: int) -> None:
    document = f"{{ peopleConnection(first: 100) {{ {selection} }} }}"
    view = edge_cases.model.view(edge_cases.model.signature(Viewer()))
    wish = translate(*parsed(document), {}, view).wish
    values = [source.value for source in wish.sources]
    assert price_of(wish.asks, edge_cases.model.resources)(values) == price


def test_cursors_open_in_every_process() -> None:
    """The key of a cursor is made from the viewer's roles, and a set of texts has another order in each process."""
    program = "\n".join(
        (
            "from diptych.model.signature import Signature",
            "roles = frozenset(f'role{n}' for n in range(20))",
            "print(Signature(True, True, roles, roles).stable())",
        )
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
