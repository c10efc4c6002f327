"""A model of secrets and of every type: what the default model has no example of.

    thing   one of every type, integer ids, anyone writes everything
    box     fields that are hidden from some, on some rows, or can only be written, or only be read
    shelf   rows that are hidden from most
    node    rows whose rules look at other rows of the same table: 1 is above 2, which is above 3

Ann owns box 1 and 2, Ben box 3. Box 2 is not open. Shelf 1 is open, shelf 2 is for Ann alone.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from diptych import (
    BigInt,
    Digits,
    Id,
    Json,
    MaxLen,
    Min,
    MinLen,
    Model,
    Move,
    OnDelete,
    ReadBy,
    Resource,
    Role,
    States,
    Unique,
    Viewer,
    WriteBy,
    allow,
    computed,
    given,
    grant,
    signed_in,
)
from tests.contract.http.data import ANN, BEN, NOBODY, an_id, day

staff = Role("staff")
admin = Role("admin", implies=staff)


class Mood(StrEnum):
    """How it is."""

    calm = "calm"
    odd = "odd"


class Stage(StrEnum):
    """Where it stands."""

    new = "new"
    old = "old"
    gone = "gone"


class Thing(Resource, ids="integer"):
    """One of every type."""

    text: str | None = None
    number: Annotated[int | None, Min(-5)] = None
    big: BigInt | None = None
    price: Annotated[Decimal | None, Digits(6, 2)] = None
    ratio: float | None = None
    flag: bool | None = None
    day: date | None = None
    moment: datetime | None = None
    mood: Mood | None = None
    data: Json | None = None
    key: Id | None = None
    parent: Annotated[Thing | None, OnDelete("set null")] = None

    access = (grant("read", "create", "update", "delete"),)


class Shelf(Resource):
    """A place for boxes."""

    word: Annotated[str, Unique()]
    keeper: Id
    open: bool = False

    access = (grant("read", to=admin),)

    @allow("read")
    def open_or_own(self, viewer: Viewer) -> bool:
        return self.open | (self.keeper == viewer.id)


class Box(Resource):
    """Something with secrets."""

    owner: Id
    label: Annotated[str, MinLen(1), MaxLen(20)]
    open: bool = True
    shelf: Annotated[Shelf | None, OnDelete("set null")] = None
    stamp: Annotated[str | None, Unique(), ReadBy(staff), WriteBy(staff)] = None
    pin: Annotated[str, MinLen(4), ReadBy(admin)] = "0000"
    memo: Annotated[str | None, ReadBy(admin)] = None
    password: Annotated[str | None, ReadBy(admin)] = "none"
    rank: Annotated[int, WriteBy(admin)] = 7
    notes: Annotated[Json | None, WriteBy(admin)] = None
    stage: Annotated[
        Stage,
        States(
            Move(Stage.new, Stage.old), Move(Stage.old, Stage.gone, to=staff), Move(Stage.gone, Stage.new, to=admin)
        ),
    ] = Stage.new

    access = (grant("read", to=admin), grant("create", "update", to=signed_in), grant("delete", to=admin))

    @allow("create", field="stage")
    def any_stage(self, viewer: Viewer) -> bool:
        return viewer.has(admin)

    @allow("read")
    def open_or_own(self, viewer: Viewer) -> bool:
        return self.open | (self.owner == viewer.id)

    @allow("read", field=("pin", "memo"))
    def own(self, viewer: Viewer) -> bool:
        return self.owner == viewer.id

    @computed
    def loud(self) -> str:
        return self.label + "!"


class Node(Resource):
    """A part of a tree. Whoever owns what is above it may see and change it."""

    owner: Id
    above: Annotated[Node | None, OnDelete("cascade")] = None

    access = (grant("read", to=admin),)

    @allow("read", "update")
    def below_mine(self, viewer: Viewer) -> bool:
        return given(self.above).owner == viewer.id


model = Model(Thing, Shelf, Box, Node)

BOX = [an_id("f", number) for number in range(4)]
SHELF = [an_id("9", number) for number in range(4)]
NODE = [an_id("8", number) for number in range(4)]


def _row(id: Any, **values: Any) -> dict[str, Any]:
    return {"id": id, "version": 1, "createdAt": day(1), "updatedAt": day(1), **values}


def _box(number: int, owner: str, label: str, **values: Any) -> dict[str, Any]:
    own = {"open": True, "pin": "1234", "rank": 7, "stage": "new", "password": "pw", "memo": "mine", **values}
    return _row(BOX[number], owner=owner, label=label, **own)


FULL: dict[str, Any] = {
    "text": 'é "q" \\ 😀',
    "number": 2**31 - 1,
    "big": -(2**63),
    "price": Decimal("-9999.99"),
    "ratio": 0.1 + 0.2,
    "flag": False,
    "day": "0001-01-01",
    "moment": "9999-12-31T23:59:59.999999Z",
    "mood": "odd",
    "data": {"b": [1, 1.5, None], "a": {"x": True}},
    "key": NOBODY,
}
"""A value of every type that is hard to give back."""
ROWS: dict[str, list[dict[str, Any]]] = {
    "Thing": [_row(1, **FULL), _row(2, parentId=1)],
    "Shelf": [
        _row(SHELF[1], word="oak", keeper=BEN, open=True),
        _row(SHELF[2], word="elm", keeper=ANN, open=False),
        _row(SHELF[3], word="ash", keeper=NOBODY, open=False),
    ],
    "Box": [
        _box(1, ANN, "one", stamp="c1", notes={"b": 1, "a": [2.0]}, shelfId=SHELF[1]),
        _box(2, ANN, "two", open=False, shelfId=SHELF[2]),
        _box(3, BEN, "three", stamp="c3", stage="old"),
    ],
    "Node": [
        _row(NODE[1], owner=ANN),
        _row(NODE[2], owner=ANN, aboveId=NODE[1]),
        _row(NODE[3], owner=BEN, aboveId=NODE[2]),
    ],
}
