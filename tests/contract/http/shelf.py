"""A second model: every type of value, integer ids, a relation to itself, and many to many.

item    1 low   2 middle   3 all null   4 middle again, so that sorts have ties   5 high
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from diptych import BigInt, Digits, Json, Model, OnDelete, Resource, grant, inverse, through


class Mood(StrEnum):
    """Sorts by code point, not as declared."""

    odd = "odd"
    calm = "calm"
    Angry = "Angry"


class Item(Resource, ids="integer"):
    """One of every type. `count` is also a parameter of every list."""

    text: str | None = None
    number: int | None = None
    big: BigInt | None = None
    price: Annotated[Decimal | None, Digits(6, 2)] = None
    ratio: float | None = None
    flag: bool | None = None
    day: date | None = None
    moment: datetime | None = None
    mood: Mood | None = None
    data: Json | None = None
    count: int | None = None
    parent: Annotated[Item | None, OnDelete("set null")] = None
    children: list[Item] = inverse("parent")
    labels: list[Label] = through("Labeling", "item", "label")

    access = (grant("read"),)


class Label(Resource):
    """A word for items."""

    word: str
    items: list[Item] = through("Labeling", "label", "item")

    access = (grant("read"),)


class Labeling(Resource):
    """Ties labels to items."""

    item: Annotated[Item, OnDelete("cascade")]
    label: Annotated[Label, OnDelete("cascade")]

    access = (grant("read"),)


model = Model(Item, Label, Labeling)

LABEL = [f"01900000-0000-7000-8000-0000000000f{number}" for number in range(4)]
MOMENT = "2026-01-01T00:00:00.000000Z"
LOW, MIDDLE, HIGH = 0, 1, 2
VALUES: dict[str, tuple[Any, ...]] = {
    "text": ("A%b", "Mid", "é_z"),
    "number": (-(2**31), 7, 2**31 - 1),
    "big": (-(2**63), 0, 2**63 - 1),
    "price": (Decimal("-9999.99"), Decimal("0.50"), Decimal("9999.99")),
    "ratio": (-1.5, 0.1, 1e21),
    "flag": (False, True, True),
    "day": ("0001-01-01", "2026-01-31", "9999-12-31"),
    "moment": ("0001-01-01T00:00:00.000000Z", "2026-01-31T12:00:00.000001Z", "9999-12-31T23:59:59.999999Z"),
    "mood": ("Angry", "calm", "odd"),
    "data": ([], {"a": 1}, "x"),
    "count": (1, 2, 3),
}
"""What the items have, low, middle and high; canonical."""


def _row(id: Any, **values: Any) -> dict[str, Any]:
    return {"id": id, "version": 1, "createdAt": MOMENT, "updatedAt": MOMENT, **values}


def _item(number: int, level: int | None, parent: int | None) -> dict[str, Any]:
    values = {} if level is None else {name: some[level] for name, some in VALUES.items()}
    return _row(number, parentId=parent, **values)


ROWS: dict[str, list[dict[str, Any]]] = {
    "Item": [_item(1, LOW, None), _item(2, MIDDLE, 1), _item(3, None, 1), _item(4, MIDDLE, 2), _item(5, HIGH, 2)],
    "Label": [_row(LABEL[1], word="red"), _row(LABEL[2], word="blue"), _row(LABEL[3], word="unused")],
    "Labeling": [
        _row(f"01900000-0000-7000-8000-00000000001{n}", itemId=item, labelId=LABEL[label])
        for n, (item, label) in enumerate([(1, 1), (1, 2), (2, 1), (5, 2)])
    ],
}
