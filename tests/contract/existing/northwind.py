"""A model of some tables of Northwind: natural keys, a composite key, names with spaces."""

from __future__ import annotations

from typing import Annotated

from diptych import Column, Model, OnDelete, Resource, Role, Unique, grant, inverse

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

    access = OPEN


MODEL = Model(Customer, Region, Supplier, Product, Order, OrderLine)
