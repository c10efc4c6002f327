"""Relations by several columns: to one, to many and through a junction table, in both styles and on both stores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote

import pytest

from diptych import Column, Columns, Model, OnDelete, ReadBy, Resource, Role, grant, inverse
from diptych.config import Config
from diptych.db.connect import connect
from diptych.errors import ModelError, StartError
from tests.contract.existing.northwind import MODEL
from tests.contract.existing.test_existing import send
from tests.support.existing import make_existing, run_sql
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

admin = Role("admin")
OPEN = (grant("read", "create", "update", "delete"),)


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    return make_existing(new_database(), "northwind")


@pytest.fixture
def service(database: str) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        yield service


def both(service: Service, path: str, root: str, fields: str, selection: str, **more: str) -> list[Any]:
    """The rows of a list, which are the same in both styles."""
    token = service.token(None, "admin")
    query = "".join(f"&{name}={quote(text)}" for name, text in more.items())
    rest = service.get(f"/{path}?fields={quote(fields)}{query}", token=token)
    assert rest.status == 200, rest.body
    where = f"(where: {more['graphql']})" if "graphql" in more else ""
    asked = service.data(f"{{ {root}{where} {{ {selection} }} }}", token=token)
    listed: list[Any] = rest.json()["data"]
    assert asked == {root: listed}
    return listed


def test_to_one(service: Service) -> None:
    rows = both(
        service,
        "shipments",
        "shipments",
        "id,lineId,line(id,quantity,product(name))",
        "id lineId line { id quantity product { name } }",
    )
    assert rows == [
        {"id": "1", "lineId": "1,1", "line": {"id": "1,1", "quantity": 10, "product": {"name": "Chai"}}},
        {"id": "2", "lineId": "1,2", "line": {"id": "1,2", "quantity": 5, "product": {"name": "Tea"}}},
        {"id": "3", "lineId": None, "line": None},
        {"id": "4", "lineId": None, "line": None},
    ]


def test_to_many_and_through(service: Service) -> None:
    rows = both(
        service,
        "order-lines",
        "orderLines",
        "id,shipments(carrier),crates(id)",
        "id shipments { carrier } crates { id }",
    )
    assert rows == [
        {"id": "1,1", "shipments": [{"carrier": "Ship"}], "crates": [{"id": "North,2"}, {"id": "a%2Cb%25,1"}]},
        {"id": "1,2", "shipments": [{"carrier": "Rail"}], "crates": []},
        {"id": "2,1", "shipments": [], "crates": [{"id": "North,2"}]},
    ]
    odd = quote("a%2Cb%25,1", safe="")
    assert service.get(f"/crates/{odd}/lines?fields=id").json()["data"] == [{"id": "1,1"}]
    assert service.get(f"/crates/{odd}/contents?fields=pieces").json()["data"] == [{"pieces": 4}]
    assert service.data("{ crateLines { crate { label } line { quantity } } }")["crateLines"][0] == {
        "crate": {"label": "full"},
        "line": {"quantity": 10},
    }


def test_filters_through_them(service: Service) -> None:
    token = service.token(None, "admin")
    for where, ids in (
        ("{line: {quantity: {gt: 5}}}", ["1"]),
        ('{lineId: {eq: "1,2"}}', ["2"]),
        ('{lineId: {in: ["1,1", "9,9"]}}', ["1"]),
        ('{lineId: {eq: "odd"}}', []),
        ("{lineId: {isNull: true}}", ["3", "4"]),
        ('{line: {crates: {some: {label: {eq: "full"}}}}}', ["1"]),
    ):
        found = service.data(f"{{ shipments(where: {where}) {{ id }} }}", token=token)
        assert [row["id"] for row in found["shipments"]] == ids, where
    where = quote(json.dumps({"shipments": {"some": {"carrier": {"eq": "Rail"}}}}))
    assert service.get(f"/order-lines?fields=id&where={where}").json()["data"] == [{"id": "1,2"}]
    counted = service.data("{ orderLines { shipmentsSummary { count } } }", token=token)["orderLines"]
    assert [row["shipmentsSummary"]["count"] for row in counted] == [1, 1, 0]


def test_rules_through_them(service: Service) -> None:
    """The shipment of the large line is hidden from all but admins, wherever it would be seen."""
    assert [row["id"] for row in service.get("/shipments?fields=id").json()["data"]] == ["2", "3", "4"]
    assert service.get("/order-lines/1,1?fields=shipments(id)").json() == {"shipments": []}
    assert send(service, "PATCH", "/order-lines/1,1", {"quantity": 1}).status == 200
    assert service.get("/order-lines/1,1?fields=shipments(id)").json() == {"shipments": [{"id": "1"}]}


def test_they_are_written_by_their_columns(service: Service) -> None:
    made = send(service, "POST", "/shipments?fields=id,lineId", {"orderId": 2, "productId": 1, "carrier": "Air"})
    assert (made.status, made.json()) == (201, {"id": "5", "lineId": "2,1"}), made.body
    moved = send(service, "PATCH", "/shipments/5?fields=line(id)", {"orderId": 1, "productId": 2})
    assert (moved.status, moved.json()) == (200, {"line": {"id": "1,2"}}), moved.body
    assert send(service, "PATCH", "/shipments/5", {"lineId": "1,1"}).status == 422
    dangling = send(service, "PATCH", "/shipments/5", {"orderId": 99})
    assert dangling.status in (404, 409, 422), dangling.body
    assert send(service, "DELETE", "/order-lines/1,2").status == 204
    assert service.get("/shipments/5?fields=lineId").json() == {"lineId": None}


class Line(Resource, table="Order Details", key=("OrderID", "ProductID"), managed=False):
    """A line."""

    order: Annotated[int, Column("OrderID")]
    product: Annotated[int, Column("ProductID")]
    quantity: Annotated[int, Column("Quantity")]
    shipments: list[Sent] = inverse("line")

    access = OPEN


class Sent(
    Resource, table="Shipments", key="ShipmentID", ids="integer", managed=False, plural="sendings", triggers=True
):
    """Only admins know of which order it is."""

    order: Annotated[int | None, Column("OrderID"), ReadBy(admin)] = None
    product: Annotated[int | None, Column("ProductID")] = None
    line: Annotated[Line | None, Columns("OrderID", "ProductID"), OnDelete("set null")] = None

    access = OPEN


def test_a_hidden_column_hides_what_it_leads_to(database: str) -> None:
    with asyncio.Runner() as runner, in_process(Model(Line, Sent), database, runner) as service:
        token = service.token(None, "admin")
        shown = {"lineId": "1,1", "line": {"quantity": 10}}
        assert service.get("/sendings/1?fields=lineId,line(quantity)", token=token).json() == shown
        document = "{ lines { shipments { id } } }"
        assert service.data(document, token=token)["lines"][0] == {"shipments": [{"id": "1"}]}
        for hidden in ("lineId", "line(quantity)"):
            assert service.get(f"/sendings/1?fields={hidden}").status == 400
        assert "lineId" not in service.get("/sendings/1").json()
        assert service.get("/lines?fields=shipments(id)").status == 400


def test_changes_show_where_they_lead(database: str) -> None:
    with asyncio.Runner() as runner, in_process(Model(Line, Sent), database, runner) as service:
        token = service.token(None, "admin")
        run_sql(database, 'UPDATE "Shipments" SET "OrderID" = 2, "ProductID" = 1 WHERE "ShipmentID" = 3')
        service.settle()
        (change,) = service.changes("/sendings/changes?fields=lineId,line(quantity)", token=token)["data"]
        assert change["sent"] == {"lineId": "2,1", "line": {"quantity": 1}}


class Other(Resource, table="Shipments", key="ShipmentID", ids="integer", managed=False):
    """Says what is not so."""

    order: Annotated[int | None, Column("OrderID")] = None
    product: Annotated[int | None, Column("ProductID")] = None
    line: Annotated[Plain | None, Columns("OrderID", "ProductID")] = None

    access = OPEN


class Plain(Resource, table="Order Details", key=("OrderID", "ProductID"), managed=False):
    """A line."""

    order: Annotated[int, Column("OrderID")]
    product: Annotated[int, Column("ProductID")]

    access = OPEN


class Swapped(Resource, table="Shipments", key="ShipmentID", ids="integer", managed=False):
    """Refers by the columns in another order."""

    order: Annotated[int | None, Column("OrderID")] = None
    product: Annotated[int | None, Column("ProductID")] = None
    line: Annotated[Plain | None, Columns("ProductID", "OrderID"), OnDelete("set null")] = None

    access = OPEN


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (Other, r"Shipments \(OrderID, ProductID\) has ON DELETE SET NULL"),
        (Swapped, r"Shipments \(ProductID, OrderID\) is no foreign key to Order Details"),
    ],
)
def test_what_the_database_has_not_is_refused(database: str, cls: type[Resource], said: str) -> None:
    store = connect(Config(database=database))
    with pytest.raises(StartError, match=said):
        asyncio.run(store.open(Model(Plain, cls)))
    asyncio.run(store.close())


class Few(Resource, table="t", ids="integer", managed=False):
    """Has one column too few."""

    place: int
    line: Annotated[Plain, Columns("place", "shelf")]

    access = OPEN


class Bare(Resource, table="t", ids="integer", managed=False):
    """Does not say by which columns."""

    line: Plain

    access = OPEN


class Own(Resource):
    """Is a table of Diptych."""

    order: int
    product: int
    line: Annotated[Plain, Columns("order", "product")]

    access = OPEN


class One(Resource, table="t", ids="integer", managed=False):
    """Names no columns."""

    line: Annotated[Plain, Columns("order")]

    access = OPEN


@pytest.mark.parametrize(
    ("cls", "cause"),
    [
        (Few, "no field has the column shelf"),
        (Bare, "the key of Plain has several columns"),
        (Own, "a table that Diptych makes refers by one column"),
        (One, "names no columns"),
    ],
)
def test_wrong_declarations(cls: type[Resource], cause: str) -> None:
    with pytest.raises(ModelError, match=cause):
        Model(Plain, cls)
