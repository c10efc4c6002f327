"""A model with a field of every type, and a relation."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from diptych import BigInt, Digits, Json, Model, ReadBy, Resource, Role, Unique, Viewer, allow, grant, inverse, not_

staff = Role("staff")


class Size(StrEnum):
    small = "small"
    large = "large"


class Maker(Resource):
    """Who makes things."""

    name: Annotated[str, Unique()]
    things: list[Thing] = inverse("maker")
    access = (grant("read", "create", "update", "delete", "export"),)


class Thing(Resource):
    """A thing with a value of every type."""

    maker: Maker | None = None
    text: str
    note: str | None = None
    count: int = 0
    large: BigInt | None = None
    price: Annotated[Decimal, Digits(9, 2)] = Decimal("0.00")
    ratio: float | None = None
    good: bool = False
    day: date | None = None
    moment: datetime | None = None
    at: time | None = None
    span: timedelta | None = None
    mark: UUID | None = None
    size: Size = Size.small
    extra: Json | None = None
    tags: list[str] | None = None
    secret: Annotated[str | None, ReadBy(staff)] = None
    hidden: bool = False

    access = (grant("create", "update", "delete"), grant("read", "export", to=staff))

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.hidden)


MODEL = Model(Maker, Thing)
