"""Value objects: `class Address(Value)` as a field, in both styles and on both databases."""

from __future__ import annotations

import json
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest
from graphql import print_schema

from diptych import Model
from diptych.api.graphql.schema import build_schema
from diptych.model.duration import read_duration
from diptych.model.operators import takes_list
from tests.support.effort import scaled
from tests.support.in_process import Service
from tests.support.mistakes import assert_reported
from tests.support.model_files import model_of

SHOPS = """
class Kind(StrEnum):
    home = "home"
    work = "work"


class Address(Value):
    \"\"\"Where it is.\"\"\"

    city: Annotated[str, MaxLen(20)]
    zip: str | None = None
    rent: Annotated[Decimal, Digits(8, 2)] = Decimal("1.50")
    since: datetime | None = None
    opened: date | None = None
    wait: timedelta = timedelta(hours=1)
    at: time | None = None
    kind: Kind = Kind.home
    floor: int = 0
    visits: BigInt = 0
    lift: bool = False
    rate: float | None = None
    key: UUID | None = None


class Shop(Resource):
    name: str = ""
    address: Address
    other: Address | None = None
    secret: Annotated[Address | None, ReadBy(admin)] = None

    @computed
    def north(self) -> bool:
        return self.address.city == "Oslo"

    @action
    async def move(self, tx: Tx, to: Address, old: Address | None = None) -> Shop:
        assert isinstance(to, Address) and isinstance(self.address, Address) and old is None
        self.other, self.address = self.address, to
        return await tx.save(self)

    access = (grant("read", "create", "update"),)
"""
DEFAULTS = {
    "zip": None,
    "rent": "1.50",
    "since": None,
    "opened": None,
    "wait": "PT1H",
    "at": None,
    "kind": "home",
    "floor": 0,
    "visits": "0",
    "lift": False,
    "rate": None,
    "key": None,
}
VALUES: dict[str, list[Any]] = {
    "city": ["Oslo", "", 'q"\\', "ü"],
    "zip": [None, "0150"],
    "rent": ["0.00", "-2.50", "123456.78"],
    "since": [None, "2026-01-31T12:00:00.000001Z", "0001-01-01T00:00:00.000000Z"],
    "opened": [None, "2024-02-29", "9999-12-31"],
    "wait": ["PT0S", "-P1DT0.5S", "P7D"],
    "at": [None, "23:59:59.999999"],
    "kind": ["home", "work"],
    "floor": [0, -5, 2**31 - 1],
    "visits": ["0", "-9223372036854775807"],
    "lift": [True, False],
    "rate": [None, 0.5, -1e300, 1e-7],
    "key": [None, "9b2d7a3e-5c1f-4e8a-b6d0-2f4c8e1a7b93"],
}
ALL = " ".join(VALUES)


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(SHOPS)


def test_members_are_validated_and_faults_name_them(service: Service) -> None:
    row = service.send_json("POST", "/shops", {"address": {"city": "Oslo"}}).json()
    assert (row["address"], row["other"], row["north"]) == ({"city": "Oslo", **DEFAULTS}, None, True)
    wrong = [{"zip": "1"}, {"city": "x" * 21}, {"city": None}, {"city": "x", "floor": "1"}, {"city": "x", "no": 1}, 5]
    places = [service.send_json("POST", "/shops", {"address": address}).places for address in wrong]
    assert places == [["/address/city"]] * 3 + [["/address/floor"], ["/address/no"], ["/address"]]
    document = "mutation($c: String!) { createShop(input: {address: {city: $c}}) { id } }"
    answer = service.query(document, {"c": "x" * 21})
    assert (answer.code, answer.places) == ("BAD_USER_INPUT", ["/createShop/input/address/city"])


SORTED: dict[str, Callable[[Any], Any]] = {"wait": read_duration, "rent": float, "visits": int}
"""How values on the wire are compared, where that is not as they are."""


@pytest.mark.parametrize("name", [name for name in VALUES if name != "city"])
def test_rows_are_sorted_by_a_member(service: Service, name: str) -> None:
    draw = random.Random(name)
    rows: dict[str, Any] = {}
    for number in range(9):
        value = draw.choice(VALUES[name])
        other = None if number == 4 else {"city": "x", name: value}
        made = service.send_json("POST", "/shops", {"name": name, "address": {"city": "y"}, "other": other})
        rows[made.json()["id"]] = None if other is None else value
    for down in (False, True):
        ids = sorted(id for id in rows if rows[id] is not None)
        ids.sort(key=lambda id: SORTED.get(name, lambda value: value)(rows[id]), reverse=down)
        ids += sorted(id for id in rows if rows[id] is None)
        url = f"/shops?name={name}&fields=id&first=4&sort={'-' * down}other.{name}"
        listed, after = [], ""
        while after is not None:
            page = service.get(url + (f"&after={after}" if after else "")).json()
            listed += [row["id"] for row in page["data"]]
            after = page["page"]["next"]
        assert listed == ids, url
        order = {"other": {name: "DESC" if down else "ASC"}}
        document = (
            "query($o: [ShopOrder!], $n: String!) { shops(first: 20, orderBy: $o, where: {name: {eq: $n}}) { id } }"
        )
        assert [row["id"] for row in service.data(document, {"o": [order], "n": name})["shops"]] == ids


def test_what_cannot_be_sorted_by_is_named(service: Service) -> None:
    for name in ("address", "address.no", "address.city.no", "secret.city", "name.city"):
        answer = service.get(f"/shops?sort={name}")
        assert (answer.status, answer.code) == (400, "BAD_REQUEST"), name
        assert name in answer.json()["errors"][0]["message"]
    document = "{ shops(orderBy: [{secret: {city: ASC}}]) { id } }"
    assert service.query(document).code == "GRAPHQL_VALIDATION_FAILED"


def test_both_styles_and_an_oracle_agree_on_every_member(service: Service) -> None:
    draw = random.Random(5)
    rows: dict[str, dict[str, Any]] = {}
    document = "mutation($a: AddressInput!) { createShop(input: {address: $a}) { id address { " + ALL + " } } }"
    for number in range(12):
        address = {name: draw.choice(values) for name, values in VALUES.items()}
        if number % 2:
            made = service.send_json("POST", "/shops", {"address": address}).json()
        else:
            made = service.data(document, {"a": address})["createShop"]
        assert made["address"] == address
        rows[made["id"]] = address
    for _ in range(scaled(300)):
        name = draw.choice(list(VALUES))
        value = draw.choice([value for value in VALUES[name] if value is not None])
        op = "eq" if name in ("lift",) else draw.choice(("eq", "ne", "lt", "gte", "in", "isNull"))
        operand = bool(draw.randrange(2)) if op == "isNull" else [value] if takes_list(op) else value
        where = {"address": {name: {op: operand}}}
        expected = sorted(id for id, address in rows.items() if holds(name, op, address[name], operand))
        listed = service.data("query($w: ShopWhere) { shops(where: $w) { id } }", {"w": where})["shops"]
        assert [row["id"] for row in listed] == expected, where
        by_rest = service.get("/shops?fields=id&where=" + _encoded(where)).json()["data"]
        assert by_rest == listed
        if not takes_list(op):
            text = str(operand).lower() if isinstance(operand, bool) else str(operand)
            short = service.get(f"/shops?fields=id&address.{name}[{op}]={_quoted(text)}")
            assert short.json().get("data") == listed, (where, short.body)


def holds(name: str, op: str, value: Any, other: Any) -> bool:
    if op == "isNull":
        return bool((value is None) == other)
    if value is None:
        return op == "ne"
    numbers: dict[str, Callable[[Any], Any]] = {"wait": read_duration, "rent": float, "visits": int}
    number = numbers.get(name, lambda same: same)
    value, other = number(value), [number(one) for one in other] if op == "in" else number(other)
    tests = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "gte": operator.ge}
    return value in other if op == "in" else bool(tests[op](value, other))


def _encoded(where: Any) -> str:
    return _quoted(json.dumps(where))


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def test_members_are_selected_alike(service: Service) -> None:
    row = service.send_json("POST", "/shops", {"address": {"city": "Oslo"}, "other": {"city": "Voss"}}).json()
    shown = service.get(f"/shops/{row['id']}?fields=a:address(c:city,rent),other(*)").json()
    assert shown == {"a": {"c": "Oslo", "rent": "1.50"}, "other": {"city": "Voss", **DEFAULTS}}
    document = "{ shops { a: address { __typename c: city rent } other { " + ALL + " } } }"
    (listed,) = service.data(document)["shops"]
    assert listed == shown | {"a": {"__typename": "Address", **shown["a"]}}
    for fields in ("address(no)", "address(city,city)", "address(city(x))", "address[first=1]", "name(x)"):
        assert service.get(f"/shops?fields={fields}").status == 400


def test_members_that_are_skipped_are_not_answered(service: Service) -> None:
    service.send_json("POST", "/shops", {"address": {"city": "Oslo"}})
    document = "query($s: Boolean!) { shops { address { city @skip(if: $s) } other { city @skip(if: $s) } } }"
    assert service.data(document, {"s": True}) == {"shops": [{"address": {}, "other": None}]}
    assert service.data(document, {"s": False}) == {"shops": [{"address": {"city": "Oslo"}, "other": None}]}


def test_an_update_changes_the_members_that_it_names_in_both_styles(service: Service) -> None:
    row = service.send_json("POST", "/shops", {"address": {"city": "Oslo", "zip": "0150", "floor": 3}}).json()
    path = f"/shops/{row['id']}"
    patched = service.send_json("PATCH", path, {"address": {"city": "Voss"}}).json()["address"]
    assert patched == {**row["address"], "city": "Voss"}
    document = (
        f'mutation {{ updateShop(id: "{row["id"]}", patch: {{address: {{zip: null}}}}) {{ address {{ {ALL} }} }} }}'
    )
    assert service.data(document)["updateShop"]["address"] == {**patched, "zip": None}
    assert service.send_json("PATCH", path, {"other": {"zip": "1"}}).places == ["/other/city"]
    assert service.send_json("PATCH", path, {"other": {"city": "x"}}).json()["other"] == {"city": "x", **DEFAULTS}
    whole = service.get(path).json()
    assert service.send_json("PUT", path, whole).json()["address"] == whole["address"]
    assert service.send_json("PUT", path, {"address": {"city": "P"}}).json()["address"] == {"city": "P", **DEFAULTS}
    patch = json.dumps([{"op": "replace", "path": "/address/city", "value": "J"}]).encode()
    answer = service.send("PATCH", path, headers={"content-type": "application/json-patch+json"}, body=patch)
    assert answer.json()["address"] == {"city": "J", **DEFAULTS}
    missing = "/shops/00000000-0000-7000-8000-000000000001"
    assert service.send_json("PATCH", missing, {"other": {"zip": "1"}}).status == 404


def test_a_value_costs_as_much_as_a_row(service: Service) -> None:
    urls = [f"/shops?first=10&fields={fields}" for fields in ("id", "address(city)", "address,other")]
    costs = [service.get(url, headers={"prefer": "cost"}).headers["cost"] for url in urls]
    assert [int(cost.partition("price=")[2].partition(",")[0]) for cost in costs] == [10, 20, 30]


def test_actions_take_values(service: Service) -> None:
    row = service.send_json("POST", "/shops", {"address": {"city": "Oslo"}}).json()
    moved = service.send_json("POST", f"/shops/{row['id']}/move", {"to": {"city": "Voss", "kind": "work"}}).json()
    assert (moved["address"]["city"], moved["address"]["kind"], moved["other"]["city"]) == ("Voss", "work", "Oslo")
    assert service.send_json("POST", f"/shops/{row['id']}/move", {"to": {"city": "V", "floor": "x"}}).places == [
        "/to/floor"
    ]
    document = (
        f'mutation {{ moveShop(id: "{row["id"]}", to: {{city: "Q"}}) {{ address {{ city }} other {{ city }} }} }}'
    )
    assert service.data(document) == {"moveShop": {"address": {"city": "Q"}, "other": {"city": "Voss"}}}


def test_a_changed_member_is_a_change_and_what_others_write_never_breaks_a_response(service: Service) -> None:
    row = service.send_json("POST", "/shops", {"address": {"city": "Oslo"}}).json()
    path = f"/shops/{row['id']}"
    document = 'subscription { shopChanged(where: {address: {city: {eq: "Voss"}}}) { kind shop { address { city } } } }'
    followed = service.follow(document)
    for city in ("Voss", "Oslo"):
        service.send_json("PATCH", path, {"address": {"city": city}})
    service.settle()
    assert followed.events == [
        {"kind": "UPDATED", "shop": {"address": {"city": "Voss"}}},
        {"kind": "LEFT", "shop": None},
    ]
    bad = {"city": "x", "rent": "a", "since": "2026-02-30T00:00:00.000000Z", "opened": "2023-02-29", "floor": "9e9"}
    bad |= {"wait": "x", "at": "25:00", "kind": "no", "visits": "x", "lift": "x", "rate": "x", "key": "x"}
    for stored in ("[]", "5", '{"city": null}', "{}", json.dumps(bad)):
        service.execute(f"UPDATE shops SET other = '{stored}' WHERE id = '{row['id']}'")
        assert service.get(path).json()["other"] is None
        for name, values in VALUES.items():
            value = next(value for value in values if value is not None and value != "")
            text = str(value).lower() if isinstance(value, bool) else str(value)
            assert service.get(f"/shops?other.{name}={_quoted(text)}").status == 200
    service.execute(f"UPDATE shops SET address = '5' WHERE id = '{row['id']}'")
    assert service.get(path).status == 404


def test_a_hidden_value_says_nothing_of_its_members(service: Service, model: Model) -> None:
    admin = service.token(None, "admin")
    for city in ("Oslo", "Voss"):
        service.send_json("POST", "/shops", {"address": {"city": "x"}, "secret": {"city": city}}, admin)
    assert len(service.rows("/shops?secret.city=Oslo", token=admin)) == 1
    for city in ("Oslo", "Nowhere"):
        assert service.get(f"/shops?secret.city={city}").status == 400
        where = _encoded({"secret": {"city": {"eq": city}}})
        assert service.get(f"/shops?where={where}").json()["errors"][0]["message"] == "Shop has no field 'secret'"
        assert service.query(f'{{ shops(where: {{secret: {{city: {{eq: "{city}"}}}}}}) {{ id }} }}').status == 400
    text = print_schema(build_schema(model.view_as("anonymous")))
    assert "secret" not in text[text.index("type Shop ") : text.index("input ShopWhere")]


def test_documents_have_its_types(service: Service, model: Model) -> None:
    schemas = service.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Address"]["required"] == list(VALUES) and schemas["Address"]["description"] == "Where it is."
    assert schemas["AddressInput"]["required"] == ["city"] and "required" not in schemas["AddressPatch"]
    assert schemas["AddressFilter"]["properties"]["rent"] == {"$ref": "#/components/schemas/Decimal_8_2Filter"}
    text = print_schema(build_schema(model.view_as("anonymous")))
    for name in ("type Address {", "input AddressInput {", "input AddressPatch {", "input AddressFilter {"):
        assert name in text


def test_what_a_value_cannot_be_is_reported() -> None:
    assert_reported(
        """
class Empty(Value):
    pass


class Deep(Value):
    tags: list[str]


class Box(Value):
    city: str = 5
    isNull: str


class T(Resource):
    a: Empty  #! T.a: Empty has no fields | Write class Empty(Value)
    b: Deep  #! T.b: Deep.tags: a value cannot hold [String] | Use a scalar
    c: Annotated[Box, Unique()]  #! T.c: Box.city: the default 5 does not fit: expected a string
""".replace("    isNull: str\n", "")
    )
