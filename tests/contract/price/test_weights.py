"""Weights of the model: what they add to a price, in both styles, wherever what has them is used."""

from __future__ import annotations

import asyncio
import json
import timeit
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from diptych import Model
from diptych.ask.nodes import Field, Follow, Page, Read
from diptych.ask.slots import SIZE
from diptych.demo.model import model as default
from diptych.model.rules.expr import Col, Compare, Slot
from diptych.model.scalars import ID
from diptych.policy.cost import price_of
from tests.support.cases import cases
from tests.support.in_process import Service, encoded, in_process
from tests.support.mistakes import assert_reported
from tests.support.model_files import declare

SHOP = """
class Shop(Resource):
    name: str
    scan: Annotated[str, Weight(5)]
    owner: Annotated[User | None, Weight(2)] = None
    parts: Annotated[list[Part], Weight(3)] = inverse("shop")
    access = (grant("read", "create", "update", "delete"),)

    @computed
    def short(self) -> str:
        return self.name[:3]

    @computed(weight=7)
    def long(self) -> str:
        return self.name + self.scan

    @computed(needs="name")
    def slow(self) -> int:
        return len(self.name)

    @computed(needs="name", weight=0)
    def quick(self) -> int:
        return len(self.name)

    @computed(needs="name", batch=True, weight=20)
    @staticmethod
    def batch(rows: list[Shop]) -> list[int]:
        return [len(row.name) for row in rows]

    @action(weight=50)
    async def polish(self, tx: Tx) -> Shop:
        self.name = "polished"
        return await tx.save(self)

    @action
    async def look(self, tx: Tx) -> None:
        pass

    @query(weight=30)
    @classmethod
    async def best(cls, tx: Tx) -> list[Shop]:
        return await tx.select(Shop, first=2)

    @query(weight=0)
    @classmethod
    async def number(cls, tx: Tx) -> int:
        return 3

    @action(weight=1)
    async def dear(self, tx: Tx) -> Shop:
        return await tx.save(Shop(name="x", scan="y"))

class Part(Resource):
    shop: Shop
    name: str
    secret: Annotated[str | None, Weight(6000)] = None
    access = (grant("read", "create", "update"),)

    @action(weight=1)
    async def paint(self, tx: Tx) -> Part:
        self.name = "painted"
        return await tx.save(self)

class User(Resource):
    name: str
    access = (grant("read"),)
"""
built = declare(SHOP).built
assert isinstance(built, Model), built
WHEN = "2026-01-01T00:00:00.000000Z"
OWN = {"version": 1, "createdAt": WHEN, "updatedAt": WHEN}
ONE, PART = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"
ROWS = {
    "Shop": [{"id": ONE, "name": "one", "scan": "s", **OWN}],
    "Part": [{"id": PART, "name": "part", "shopId": ONE, **OWN}],
}


@pytest.fixture(scope="module")
def shop() -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(built, "sqlite:///:memory:", runner, ROWS, planning_share=0.0) as found:
        yield found


def where(**tree: object) -> str:
    return encoded(where=tree)


FILTER = '{"shop":{"scan":{"eq":"x"},"long":{"eq":"y"}}}'
# the price, a document, the same in the resource style
READS: list[tuple[int, str, str]] = [
    (10, "{ shopsConnection(first: 10) { nodes { id name short } } }", "/shops?first=10&fields=id,name,short"),
    (60, "{ shopsConnection(first: 10) { nodes { scan } } }", "/shops?first=10&fields=scan"),
    (110, "{ shopsConnection(first: 10) { nodes { a: scan b: scan } } }", "/shops?first=10&fields=a:scan,b:scan"),
    (80, "{ shopsConnection(first: 10) { nodes { long } } }", "/shops?first=10&fields=long"),
    (60, "{ shopsConnection(first: 10) { nodes { slow } } }", "/shops?first=10&fields=slow"),
    (10, "{ shopsConnection(first: 10) { nodes { quick } } }", "/shops?first=10&fields=quick"),
    (210, "{ shopsConnection(first: 10) { nodes { batch } } }", "/shops?first=10&fields=batch"),
    (40, "{ shopsConnection(first: 10) { nodes { owner { name } } } }", "/shops?first=10&fields=owner(name)"),
    (10, "{ shopsConnection(first: 10) { nodes { ownerId } } }", "/shops?first=10&fields=ownerId"),
    (
        90,
        "{ shopsConnection(first: 10) { nodes { parts(first: 5) { name } } } }",
        "/shops?first=10&fields=parts[first=5](name)",
    ),
    (
        9,
        f'{{ shop(id: "{ONE}") {{ partsConnection(first: 5) {{ nodes {{ name }} }} }} }}',
        f"/shops/{ONE}/parts?first=5&fields=name",
    ),
    (6, f'{{ shop(id: "{ONE}") {{ scan }} }}', f"/shops/{ONE}?fields=scan"),
    # a filter and a sort: once for each use
    (
        15,
        '{ shopsConnection(first: 10, where: {scan: {eq: "x"}}) { nodes { id } } }',
        "/shops?first=10&fields=id&scan=x",
    ),
    (
        20,
        '{ shopsConnection(first: 10, where: {scan: {gt: "a", lt: "x"}}) { nodes { id } } }',
        "/shops?first=10&fields=id&" + where(scan={"gt": "a", "lt": "x"}),
    ),
    (
        15,
        "{ shopsConnection(first: 10, where: {scan: {isNull: true}}) { nodes { id } } }",
        "/shops?first=10&fields=id&scan[isNull]=true",
    ),
    (
        17,
        '{ shopsConnection(first: 10, where: {not: {long: {ne: "x"}}}) { nodes { id } } }',
        "/shops?first=10&fields=id&" + where(**{"not": {"long": {"ne": "x"}}}),
    ),
    (
        24,
        '{ shopsConnection(first: 10, where: {or: [{long: {eq: "x"}}, {long: {eq: "y"}}]}) { nodes { id } } }',
        "/shops?first=10&fields=id&" + where(**{"or": [{"long": {"eq": "x"}}, {"long": {"eq": "y"}}]}),
    ),
    (
        22,
        "{ shopsConnection(first: 10, orderBy: [{scan: ASC}, {long: DESC}]) { nodes { id } } }",
        "/shops?first=10&fields=id&sort=scan,-long",
    ),
    (
        23,
        "{ shopsConnection(first: 10, where: {parts: {some: {}}}) { nodes { id } } }",
        "/shops?first=10&fields=id&" + where(parts={"some": {}}),
    ),
    (
        25,
        '{ partsConnection(first: 10, where: {shop: {scan: {eq: "x"}}}) { nodes { id } } }',
        "/parts?first=10&fields=id&" + where(shop={"scan": {"eq": "x"}}),
    ),
    (
        186,
        f'{{ shop(id: "{ONE}") {{ parts(first: 5, where: {{shop: {{scan: {{eq: "x"}}, long: {{eq: "y"}}}}}}, orderBy: [{{name: ASC}}]) {{ shop {{ slow batch scan }} }} }} }}',
        f"/shops/{ONE}?fields=" + quote(f"parts[first=5;where={quote(FILTER)};sort=name](shop(slow,batch,scan))"),
    ),
]


def told(service: Service, document: str) -> dict[str, int]:
    answer = service.post({"query": document, "extensions": {"cost": True}})
    assert answer.status == 200 and "errors" not in answer.json(), answer.body
    found: dict[str, int] = answer.json()["extensions"]["cost"]
    return found


def told_rest(service: Service, url: str, method: str = "GET", body: object = None) -> int:
    headers = {"prefer": "cost", "content-type": "application/json"}
    answer = service.send(method, url, headers=headers, body=b"" if body is None else json.dumps(body).encode())
    assert answer.status < 300, answer.body
    return int(answer.headers["cost"].split(",")[0].removeprefix("price="))


@cases(("price", "document", "url"), READS)
def test_a_weight_is_added_wherever_it_is_used_in_both_styles(
    shop: Service, price: int, document: str, url: str
) -> None:
    assert told(shop, document)["price"] == price
    assert told_rest(shop, url) == price


CALLS: list[tuple[int, str, str, str]] = [
    (51, f'mutation {{ polishShop(id: "{ONE}") {{ id }} }}', "POST", f"/shops/{ONE}/polish?fields=id"),
    (56, f'mutation {{ polishShop(id: "{ONE}") {{ scan }} }}', "POST", f"/shops/{ONE}/polish?fields=scan"),
    (100, f'mutation {{ lookShop(id: "{ONE}") }}', "POST", f"/shops/{ONE}/look"),
    (130, "{ bestShops { id } }", "GET", "/shops/best?fields=id"),  # as many rows as it may give
    (830, "{ bestShops { parts(first: 4) { id } } }", "GET", "/shops/best?fields=parts[first=4](id)"),
    (0, "{ numberShops }", "GET", "/shops/number"),
]


@pytest.mark.parametrize(("price", "document", "method", "url"), CALLS)
def test_code_of_the_model_has_its_weight_besides_its_answer(
    shop: Service, price: int, document: str, method: str, url: str
) -> None:
    assert told(shop, document)["price"] == price
    assert told_rest(shop, url, method) == price


def test_a_change_costs_one_besides_its_answer(shop: Service) -> None:
    make = 'createShop(input: {name: "x", scan: "y"})'
    assert told(shop, f"mutation {{ {make} {{ id }} }}")["price"] == 2
    assert told(shop, f"mutation {{ {make} {{ scan }} b: {make} {{ id }} }}")["price"] == 9
    row = {"name": "x", "scan": "y"}
    assert told_rest(shop, "/shops?fields=id", "POST", row) == 2
    assert told_rest(shop, "/shops?fields=id", "POST", [row] * 100) == 200
    assert told_rest(shop, "/shops?fields=scan", "POST", [row] * 3) == 21
    assert told_rest(shop, f"/shops/{ONE}?fields=id", "PATCH", {"name": "z"}) == 2
    made = shop.send("POST", "/shops", headers={"content-type": "application/json"}, body=json.dumps(row).encode())
    assert told_rest(shop, made.headers["location"], "DELETE") == 1


def test_calls_and_changes_and_reads_of_one_request_add_up(shop: Service) -> None:
    polish = f'polishShop(id: "{ONE}") {{ id }}'
    make = 'createShop(input: {name: "x", scan: "y"})'
    assert told(shop, f"mutation {{ a: {polish} b: {polish} c: {make} {{ id }} }}")["price"] == 51 + 51 + 2
    assert told(shop, f'{{ a: bestShops {{ id }} b: numberShops shop(id: "{ONE}") {{ id }} }}')["price"] == 131
    each = "bestShops { parts(first: 20) { id } }"  # 2430
    for _ in range(3):
        assert shop.query(f"{{ a: {each} b: {each} }}").status == 200
        before = shop.runs
        answer = shop.query(f"{{ a: {each} b: {each} shops(first: 100) {{ parts(first: 1) {{ id }} }} }}")
        assert (answer.status, answer.code) == (400, "TOO_COMPLEX"), answer.body
        assert answer.json()["errors"][0]["extensions"]["price"] == 2 * 2430 + 500
        assert shop.runs == before
    many = " ".join(f"a{n}: {polish.replace('id }', 'parts(first: 100) { id } }')}" for n in range(20))
    answer = shop.query(f"mutation {{ {many} {make} {{ slow }} }}")
    assert (answer.status, answer.code) == (400, "TOO_COMPLEX")


def test_a_weight_above_the_limit_closes_a_field_for_requests_but_not_for_the_model_itself(shop: Service) -> None:
    for answer in (
        shop.query("{ parts(first: 1) { secret } }"),
        shop.get("/parts?first=1&fields=secret"),
        shop.query('{ parts(first: 1, where: {secret: {eq: "x"}}) { id } }'),
        shop.get("/parts?sort=secret&fields=id"),
    ):
        assert (answer.status, answer.code) == (400, "TOO_COMPLEX"), answer.body
    assert shop.data(f'mutation {{ paintPart(id: "{PART}") {{ name }} }}') == {"paintPart": {"name": "painted"}}


MISTAKES = [
    "name: Annotated[str, Weight(-1)]  #! T.name: Weight(-1) is less than nothing | Write Weight(5)",
    "name: Annotated[str, Weight(True)]  #! T.name: Weight(True) is no whole number | Write Weight(5)",
    "name: Annotated[str, Weight(1.5)]  #! T.name: Weight(1.5) is no whole number | Write Weight(5)",
    "name: Annotated[str, Weight('5')]  #! T.name: Weight('5') is no whole number | Write Weight(5)",
    "name: Annotated[str, Weight]  #! T.name: Weight is not called | Write Weight(…)",
    "name: Annotated[str, Weight(1), Weight(2)]  #! T.name: Weight is given 2 times | Leave one",
    "name: Annotated[T | None, Weight(-1)] = None  #! T.name: Weight(-1) is less than nothing | Write Weight(5)",
    "t: T | None = None\n    ts: Annotated[list[T], Weight(-1)] = inverse('t')  #! T.ts: Weight(-1) is less than nothing | Write Weight(5)",
    "t: T | None = None\n    ts: Annotated[list[T], Weight] = inverse('t')  #! T.ts: Weight is not called | Write Weight(…)",
    "t: T | None = None\n    ts: Annotated[list[T], Weight(1), Weight(2)] = inverse('t')  #! T.ts: Weight is given 2 times | Leave one",
    "t: T | None = None\n    ts: Annotated[list[T], Weight(1), Unique()] = inverse('t')  #! T.ts: markers and None mean nothing on a to-many relation | Remove them; only Weight and deprecated are allowed there",
    "n: str\n    @computed(weight=-1)\n    def m(self) -> str:  #! T.m: weight=-1 is less than nothing | Write @computed(weight=5)\n        return self.n",
    "n: str\n    @computed(needs='n', weight=True)\n    def m(self) -> str:  #! T.m: weight=True is no whole number | Write @computed(weight=5)\n        return self.n",
    "n: str\n    @computed\n    def m(self) -> Annotated[str, Weight(5)]:  #! T.m: Weight is not allowed in the type of a computed field | Write @computed(weight=5)\n        return self.n",
    "n: str\n    @action(weight=-3)\n    async def m(self, tx: Tx) -> None:  #! T.m: weight=-3 is less than nothing | Write @action(weight=50)\n        pass",
    "n: str\n    @query(weight='x')\n    @classmethod\n    async def m(cls, tx: Tx) -> int:  #! T.m: weight='x' is no whole number | Write @query(weight=50)\n        return 1",
    "n: str\n    @action\n    async def m(self, tx: Tx, a: Annotated[str, Weight(2)]) -> None:  #! T.m: its argument 'a': Weight means nothing on an argument | Remove it\n        pass",
]


@cases("line", MISTAKES)
def test_a_weight_that_is_none_is_a_mistake(line: str) -> None:
    assert_reported(f"\nclass T(Resource):\n    {line}\n")


def test_a_formula_is_explained_in_words_and_evaluated_in_microseconds() -> None:
    author = Follow("author", "author", Read("User", "one", (Field("name", "name"),)))
    comments = Read("Comment", "list", (Field("body", "body"), author), page=Page(Slot(2, SIZE)))
    posts = Read(
        "Post", "list", (Field("title", "title"), Follow("comments", "comments", comments)), page=Page(Slot(1, SIZE))
    )
    ask = Read("User", "one", (Follow("posts", "posts", posts),), Compare("eq", Col(("id",)), Slot(0, ID)))
    price = price_of((ask,), default.resources)
    assert price(["", 10, 5]) == 111
    assert price.describe(["", 10, 5]) == "1 + 10 posts × (1 + 5 comments × 2)"
    values = ["", 10, 5]
    took = min(timeit.repeat(lambda: price(values), number=2_000, repeat=5)) / 2_000
    assert took < 30e-6  # it is less than one; a busy machine is forgiven
