"""Both styles and an oracle agree on times, durations, UUIDs and lists: random rows, filters, sorts and pages."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest

from diptych.model.duration import read_duration
from diptych.model.operators import OPERATORS, ORDERED, SETS, takes_list
from tests.support.effort import scaled
from tests.support.in_process import Service, in_process
from tests.support.model_files import model_of

THINGS = """
class Color(StrEnum):
    red = "red"
    blue = "blue"


class Thing(Resource):
    at: time | None
    lasts: timedelta | None
    key: UUID | None
    day: date
    tags: list[str] | None
    sizes: list[int]
    prices: list[Annotated[Decimal, Digits(8, 2)]]
    colors: list[Color]
    days: list[date] | None
    flags: list[bool]
    ratios: list[float]
    waits: list[timedelta]
    secret: Annotated[list[str] | None, ReadBy(admin)]

    @computed
    def eve(self) -> date:
        return self.day - timedelta(days=1)

    @computed
    def lag(self) -> timedelta:
        return self.day - date(2026, 1, 31)

    access = (grant("read", "create", "update"),)
"""
ELEMENTS: dict[str, list[Any]] = {
    "tags": ["", "a", "b", "ü,", 'q"', "\\", "vip"],
    "sizes": [0, 1, -5, 2**31 - 1],
    "prices": ["0.00", "1.50", "-2.00"],
    "colors": ["red", "blue"],
    "days": ["2026-01-31", "0001-01-01"],
    "flags": [True, False],
    "ratios": [0.0, 1.0, 0.5, -1e300, 1e-7],
    "waits": ["PT0S", "-PT0.5S", "P7D"],
}
PLAIN: dict[str, list[Any]] = {
    "at": [None, "00:00:00.000000", "23:59:59.999999", "08:30:00.000001"],
    "lasts": [None, "PT0S", "PT0.000001S", "-P1DT2H", "P106751991D", "PT59M"],
    "key": [None, *(f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in "09af")],
    "day": ["2026-01-31", "2024-03-01", "0001-01-01", "9999-12-31"],
}
COMPUTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "eve": lambda row: str(max(date.min, _earlier(date.fromisoformat(row["day"])))),
    "lag": lambda row: _days(date.fromisoformat(row["day"]) - date(2026, 1, 31)),
}


def _earlier(day: date) -> date:
    return day if day == date.min else day - timedelta(days=1)


def _days(delta: timedelta) -> str:
    return f"{'-' if delta.days < 0 else ''}P{abs(delta.days)}D" if delta else "PT0S"


def comparable(name: str, value: Any) -> Any:
    return read_duration(value) if name in ("lasts", "lag") else value


HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, other: bool(value == other),
    "ne": lambda value, other: bool(value != other),
    "lt": lambda value, other: bool(value < other),
    "lte": lambda value, other: bool(value <= other),
    "gt": lambda value, other: bool(value > other),
    "gte": lambda value, other: bool(value >= other),
    "in": lambda value, other: value in other,
    "has": lambda value, other: other in value,
    "hasAny": lambda value, other: any(one in value for one in other),
    "hasAll": lambda value, other: all(one in value for one in other),
    "isEmpty": lambda value, other: (not value) == other,
}


class Draw:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def row(self) -> dict[str, Any]:
        row = {name: self.random.choice(values) for name, values in PLAIN.items()}
        for name, elements in ELEMENTS.items():
            row[name] = self.random.choices(elements, k=self.random.choice((0, 1, 2, 4)))
            if name in ("tags", "days") and not self.random.randrange(4):
                row[name] = None
        return row

    def where(self, depth: int = 2) -> dict[str, Any]:
        if depth and not self.random.randrange(3):
            word = self.random.choice(("and", "or", "not"))
            return {word: self.where(depth - 1) if word == "not" else [self.where(depth - 1) for _ in range(2)]}
        return {self.random.choice(NAMES): None} | dict([self.term()])

    def term(self) -> tuple[str, dict[str, Any]]:
        name = self.random.choice(NAMES)
        op = self.random.choice(SETS if name in ELEMENTS else ORDERED)
        return name, {op: self.operand(name, op)}

    def operand(self, name: str, op: str) -> Any:
        pool = ELEMENTS.get(name) or [value for value in PLAIN.get(name, ["2024-02-29", "2026-01-30"]) if value]
        if name == "lag":
            pool = ["PT0S", "P1D", "-P700D"]
        if OPERATORS[op].takes == "truth":
            return bool(self.random.randrange(2))
        if takes_list(op):
            return self.random.choices(pool, k=self.random.choice((0, 1, 2)))
        return self.random.choice(pool)


NAMES = [*PLAIN, *ELEMENTS, *COMPUTED]


def holds(where: dict[str, Any], row: dict[str, Any]) -> bool:
    return all(_term(key, part, row) for key, part in where.items() if part is not None)


def _term(key: str, part: Any, row: dict[str, Any]) -> bool:
    if key == "not":
        return not holds(part, row)
    if key in ("and", "or"):
        return (all if key == "and" else any)(holds(inner, row) for inner in part)
    value = COMPUTED[key](row) if key in COMPUTED else row[key]
    return all(_holds(key, op, value, other) for op, other in part.items())


def _holds(name: str, op: str, value: Any, other: Any) -> bool:
    if op == "isNull":
        return bool((value is None) == other)
    if value is None:
        return op == "ne"
    if name in ("lasts", "lag"):
        value = comparable(name, value)
        other = [comparable(name, one) for one in other] if isinstance(other, list) else comparable(name, other)
    return HOLDS[op](value, other)


def clean(where: Any) -> Any:
    """The filter without the fields that it asks nothing about."""
    if isinstance(where, list):
        return [clean(part) for part in where]
    return {
        key: clean(part) if key in ("and", "or", "not") else part for key, part in where.items() if part is not None
    }


@pytest.fixture
def service(database: str) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model_of(THINGS), database, runner) as service:
        yield service


def test_both_styles_and_the_oracle_agree(service: Service) -> None:
    draw = Draw(17)
    rows: dict[str, dict[str, Any]] = {}
    for number in range(40):
        row = draw.row()
        rows[_create(service, row, number % 2 == 0)] = row
    for _ in range(scaled(600)):
        where = clean(draw.where())
        expected = sorted(id for id, row in rows.items() if holds(where, row))
        listed = service.rows(f"/things?first=100&where={quote(json.dumps(where))}")
        assert [row["id"] for row in listed] == expected, where
        document = "query($where: ThingWhere) { things(first: 100, where: $where) { id } }"
        assert [row["id"] for row in service.data(document, {"where": where})["things"]] == expected, where
        for row in listed:
            assert {name: row[name] for name in rows[row["id"]]} == rows[row["id"]]
            assert {name: row[name] for name in COMPUTED} == {name: of(row) for name, of in COMPUTED.items()}
    for name in (*PLAIN, *COMPUTED):
        for sign in ("", "-"):
            assert _paged(service, f"{sign}{name}") == _sorted(rows, name, sign)


def _create(service: Service, row: dict[str, Any], by_rest: bool) -> str:
    if by_rest:
        body = json.dumps(row).encode()
        answer = service.send("POST", "/things", headers={"content-type": "application/json"}, body=body)
        assert answer.status == 201, answer.body
        return str(answer.json()["id"])
    document = "mutation($input: ThingCreate!) { createThing(input: $input) { id } }"
    return str(service.data(document, {"input": row})["createThing"]["id"])


def _sorted(rows: dict[str, dict[str, Any]], name: str, sign: str) -> list[str]:
    """Nulls last, and ids break ties."""
    values = {id: COMPUTED[name](row) if name in COMPUTED else row[name] for id, row in rows.items()}
    there = sorted(id for id, value in values.items() if value is not None)
    there.sort(key=lambda id: comparable(name, values[id]), reverse=bool(sign))
    return there + sorted(id for id, value in values.items() if value is None)


def _paged(service: Service, sort: str) -> list[str]:
    ids: list[str] = []
    after = ""
    while True:
        page = service.get(f"/things?fields=id&first=7&sort={sort}{after}").json()
        ids += [row["id"] for row in page["data"]]
        if not page["page"]["next"]:
            return ids
        after = f"&after={page['page']['next']}"


def test_a_hidden_list_says_nothing(service: Service) -> None:
    """Two databases' worth of rows in one: what a role may not read has no name, with any value."""
    admin = service.token(None, "admin")
    for secret in (["a"], [], None):
        row = {**Draw(1).row(), "secret": secret}
        service.data("mutation($i: ThingCreate!) { createThing(input: $i) { id } }", {"i": row}, token=admin)
    answers = {
        op: service.get(f"/things?where={quote(json.dumps({'secret': {op: value}}))}")
        for op, value in (("has", "a"), ("hasAny", ["a"]), ("hasAll", []), ("isEmpty", True), ("isNull", True))
    }
    assert {(answer.status, answer.json()["errors"][0]["message"]) for answer in answers.values()} == {
        (400, "Thing has no field 'secret'")
    }
    assert len(service.rows("/things?secret[has]=a", token=admin)) == 1
    assert len(service.rows("/things?secret[isEmpty]=false", token=admin)) == 1


def test_decimals_of_the_oracle_are_those_of_the_wire() -> None:
    assert all(value == f"{Decimal(value):.2f}" for value in ELEMENTS["prices"])


# JSON

NOTES = """
class Note(Resource, ids="integer"):
    data: Json
    other: Annotated[Json | None, WriteBy()] = {"a": 1}
    access = (grant("read", "create", "update"),)
"""


def _json(draw: random.Random, depth: int = 3) -> Any:
    kind = draw.randrange(6) if depth else draw.randrange(3)
    if kind < 3:
        return draw.choice((None, True, 0, 1.5, "x", ""))
    if kind == 3:
        return [_json(draw, depth - 1) for _ in range(draw.randrange(3))]
    return {draw.choice("abcé"): _json(draw, depth - 1) for _ in range(draw.randrange(4))}


def _oracle(before: Any, patch: Any) -> Any:
    """RFC 7396, as its pseudocode has it."""
    if not isinstance(patch, dict):
        return patch
    target = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _oracle(target.get(name), value)
    return target


def test_a_patch_of_json_means_the_same_in_both_styles(database: str) -> None:
    draw = random.Random(45)
    headers = {"content-type": "application/json"}
    document = "mutation($d: JSON!) { updateNote(id: 2, patch: {data: $d}) { data } }"
    with asyncio.Runner() as runner, in_process(model_of(NOTES), database, runner) as service:
        for _ in range(2):
            assert service.send("POST", "/notes", headers=headers, body=b'{"data": {"a": {"b": 1}}}').status == 201
        expected: Any = {"a": {"b": 1}}
        for number in range(scaled(400)):
            patch = _json(draw)
            if patch is None:
                continue
            expected = _oracle(expected, patch)
            body = json.dumps({"data": patch}).encode()
            by_graphql = service.data(document, {"d": patch})["updateNote"]["data"]
            if number % 2:
                by_rest = service.send("PATCH", "/notes/1", headers=headers, body=body).json()["data"]
            else:
                step = {"id": "x", "method": "PATCH", "url": "/notes/1", "body": {"data": patch}}
                sent = json.dumps({"requests": [step]}).encode()
                batch = service.send("POST", "/batch", headers=headers, body=sent)
                by_rest = service.get("/notes/1").json()["data"]
                assert batch.status == 200, batch.body
            assert by_rest == by_graphql == expected, patch
