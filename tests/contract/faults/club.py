"""A model that invites faults which the default model has no place for: a relation to itself, a linking resource with
hidden rows, fields that show on one's own row alone, and fields that differ in who may change them.

    person   Ann is the mentor of Ben, Ben of Cleo; `code` and `score` show on one's own row, and to the admin
    circle   1 is open and 2 is not; `motto` is for the admin, and no two have one name
    seat     ties people to circles; a quiet one is hidden from all but its person and the admin
    card     its writer may change `text`, its reader may change `reply`, nobody both; `sealed` ones have one reader
"""

from __future__ import annotations

from typing import Annotated, Any

from diptych import (
    Id,
    Model,
    OnDelete,
    ReadBy,
    Resource,
    Role,
    Unique,
    Viewer,
    allow,
    grant,
    inverse,
    not_,
    signed_in,
    through,
)
from tests.contract.http.data import ANN, BEN, CLEO, an_id, day
from tests.contract.writes.shop import Rows

admin = Role("admin")


class Person(Resource):
    """Someone in the club."""

    account: Id
    name: str
    code: Annotated[str, Unique(), ReadBy(admin)]
    score: Annotated[int, ReadBy(admin)] = 0
    mentor: Annotated[Person | None, OnDelete("set null")] = None
    pupils: list[Person] = inverse("mentor")
    seats: list[Seat] = inverse("person")
    circles: list[Circle] = through("Seat", "person", "circle")

    access = (grant("read"), grant("create", "update", "delete", to=admin))

    @allow("read", field=("code", "score"))
    def own_secrets(self, viewer: Viewer) -> bool:
        return self.account == viewer.id

    @allow("update")
    def oneself(self, viewer: Viewer) -> bool:
        return self.account == viewer.id


class Circle(Resource):
    """A group of people."""

    name: Annotated[str, Unique()]
    open: bool = True
    motto: Annotated[str, ReadBy(admin)] = ""
    seats: list[Seat] = inverse("circle")
    people: list[Person] = through("Seat", "circle", "person")

    access = (grant("read", to=admin), grant("create", to=signed_in))

    @allow("read")
    def is_open(self, viewer: Viewer) -> bool:
        return self.open


class Seat(Resource):
    """Ties a person to a circle."""

    person: Annotated[Person, OnDelete("cascade")]
    circle: Annotated[Circle, OnDelete("cascade")]
    quiet: bool = False
    rank: Annotated[int, ReadBy(admin)] = 0

    access = (grant("read", to=admin),)

    @allow("read")
    def seen_or_own(self, viewer: Viewer) -> bool:
        return not_(self.quiet) | (self.person.account == viewer.id)


class Card(Resource):
    """A message and its answer."""

    writer: Id
    reader: Id
    text: str
    reply: str | None = None
    sealed: bool = False
    parent: Annotated[Card | None, OnDelete("set null")] = None

    access = (grant("create", to=signed_in),)

    @allow("read")
    def mine(self, viewer: Viewer) -> bool:
        return (self.reader == viewer.id) | ((self.writer == viewer.id) & not_(self.sealed))

    @allow("update", field=("text", "reader"))
    def written(self, viewer: Viewer) -> bool:
        return self.writer == viewer.id

    @allow("update", field="reply")
    def received(self, viewer: Viewer) -> bool:
        return self.reader == viewer.id


model = Model(Person, Circle, Seat, Card)

PERSON = [an_id("5", number) for number in range(4)]
CIRCLE = [an_id("6", number) for number in range(4)]
SEAT = [an_id("7", number) for number in range(6)]
CARD = [an_id("4", number) for number in range(4)]


def _row(id: str, **values: Any) -> dict[str, Any]:
    return {"id": id, "version": 1, "createdAt": day(1), "updatedAt": day(1), **values}


def _seat(number: int, person: int, circle: int, *, quiet: bool = False) -> dict[str, Any]:
    return _row(SEAT[number], personId=PERSON[person], circleId=CIRCLE[circle], quiet=quiet, rank=number)


ROWS: Rows = {
    "Person": [
        _row(PERSON[1], account=ANN, name="Ann", code="a-17", score=10),
        _row(PERSON[2], account=BEN, name="Ben", code="b-42", score=20, mentorId=PERSON[1]),
        _row(PERSON[3], account=CLEO, name="Cleo", code="c-99", score=30, mentorId=PERSON[2]),
    ],
    "Circle": [
        _row(CIRCLE[1], name="chess", open=True, motto="quick"),
        _row(CIRCLE[2], name="heist", open=False, motto="silent"),
        _row(CIRCLE[3], name="choir", open=True, motto="loud"),
    ],
    "Seat": [
        _seat(1, 1, 1),
        _seat(2, 2, 1),
        _seat(3, 2, 2),
        _seat(4, 3, 3, quiet=True),
        _seat(5, 3, 2, quiet=True),
    ],
    "Card": [
        _row(CARD[1], writer=ANN, reader=BEN, text="hello", reply=None, sealed=False),
        _row(CARD[2], writer=BEN, reader=ANN, text="again", reply="yes", sealed=False),
        _row(CARD[3], writer=ANN, reader=BEN, text="secret", reply=None, sealed=True),
    ],
}
