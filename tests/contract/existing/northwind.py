"""A model of some tables of Northwind: natural keys, composite keys and references to them, names with spaces."""

from __future__ import annotations

from typing import Annotated

from diptych import (
    Column,
    Columns,
    Model,
    OnDelete,
    Resource,
    Role,
    Unique,
    Viewer,
    allow,
    given,
    grant,
    inverse,
    is_null,
    through,
)

admin = Role("admin")
OPEN = (grant("read"), grant("create", "update", "delete", to=admin))


class Customer(Resource, table="Customers", key="CustomerID", ids="text", managed=False):
    """Has a key that people know."""

    company: Annotated[str, Column("CompanyName")]
    contact: Annotated[str | None, Column("Contact Name")] = None
    orders: list[Order] = inverse("customer")

    access = OPEN


class Region(Resource, table="Region", key="RegionID", ids="number", managed=False):
    """Has a number that people know."""

    name: Annotated[str, Column("RegionDescription")]

    access = OPEN


class Supplier(Resource, table="Suppliers", key="SupplierID", ids="integer", managed=False):
    """Has a unique name."""

    company: Annotated[str, Column("CompanyName"), Unique()]

    access = OPEN


class Product(Resource, table="Products", key="ProductID", ids="integer", managed=False):
    """Is ordered."""

    name: Annotated[str, Column("ProductName")]
    supplier: Annotated[Supplier | None, Column("SupplierID")] = None
    discontinued: Annotated[bool, Column("Discontinued")] = False

    access = OPEN


class Order(Resource, table="Orders", key="OrderID", ids="integer", managed=False):
    """Is made of lines."""

    customer: Annotated[Customer | None, Column("CustomerID")] = None
    lines: list[OrderLine] = inverse("order")

    access = OPEN


class OrderLine(Resource, table="Order Details", key=("OrderID", "ProductID"), managed=False):
    """Has a key of two columns."""

    order: Annotated[Order, Column("OrderID"), OnDelete("cascade")]
    product: Annotated[Product, Column("ProductID")]
    quantity: Annotated[int, Column("Quantity")]
    note: Annotated[str | None, Column("Note")] = None
    shipments: list[Shipment] = inverse("line")
    crates: list[Crate] = through("CrateLine", "line", "crate")

    access = OPEN


class Shipment(Resource, table="Shipments", key="ShipmentID", ids="integer", managed=False):
    """Refers to a line by two columns. Those of small lines are seen by all."""

    order_id: Annotated[int | None, Column("OrderID")] = None
    product_id: Annotated[int | None, Column("ProductID")] = None
    carrier: Annotated[str | None, Column("Carrier")] = None
    line: Annotated[OrderLine | None, Columns("OrderID", "ProductID"), OnDelete("set null")] = None

    access = (grant("read", "create", "update", "delete", to=admin),)

    @allow("read")
    def small(self, viewer: Viewer) -> bool:
        return is_null(given(self.line).id) | (given(self.line).quantity < 6)


class Crate(Resource, table="Crates", key=("Depot", "Number"), managed=False):
    """Holds lines of orders."""

    depot: Annotated[str, Column("Depot")]
    number: Annotated[int, Column("Number")]
    label: Annotated[str | None, Column("Label")] = None
    contents: list[CrateLine] = inverse("crate")
    lines: list[OrderLine] = through("CrateLine", "crate", "line")

    access = OPEN


class CrateLine(Resource, table="Crate Lines", key=("Depot", "Number", "OrderID", "ProductID"), managed=False):
    """Joins a crate and a line, each by two columns."""

    depot: Annotated[str, Column("Depot")]
    number: Annotated[int, Column("Number")]
    order: Annotated[int, Column("OrderID")]
    product: Annotated[int, Column("ProductID")]
    pieces: Annotated[int, Column("Pieces")] = 1
    crate: Annotated[Crate, Columns("Depot", "Number")]
    line: Annotated[OrderLine, Columns("OrderID", "ProductID"), OnDelete("cascade")]

    access = OPEN


MODEL = Model(Customer, Region, Supplier, Product, Order, OrderLine, Shipment, Crate, CrateLine)
