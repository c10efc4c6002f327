"""Rows that lead to each other and to themselves, with fields whose rules look at every place there is.

A field may be updated where its rule holds of the row as it is and as it becomes:

    locked, top    the row above is not locked                     deep     nor the one above that
    wide           no row below is locked                          via      a computed field says that of the row above
    note, memo     the row itself is open                          friend   the rows beside it are fewer locked
    open, parent   always
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Any

from diptych import (
    Json,
    Model,
    OnDelete,
    Resource,
    Viewer,
    allow,
    computed,
    every,
    given,
    grant,
    inverse,
    none,
    not_,
    signed_in,
)
from tests.contract.http.data import an_id, day


class Part(Resource):
    """A row of a ring."""

    locked: bool = False
    top: int = 0
    deep: int = 0
    wide: int = 0
    via: int = 0
    friend: int = 0
    note: str | None = "plain"
    memo: Json | None = None
    open: bool = True
    parent: Annotated[Part | None, OnDelete("set null")] = None
    children: list[Part] = inverse("parent")

    access = (grant("read", "delete", to=signed_in),)

    @allow("create")
    def alone(self, viewer: Viewer) -> bool:
        return none(given(self.parent).children)

    @allow("update", field=("locked", "top"))
    def under_open(self, viewer: Viewer) -> bool:
        return not_(given(self.parent).locked)

    @allow("update", field="deep")
    def under_open_twice(self, viewer: Viewer) -> bool:
        return not_(given(given(self.parent).parent).locked) & not_(given(self.parent).locked)

    @allow("update", field="wide")
    def over_open(self, viewer: Viewer) -> bool:
        return every(self.children, lambda child: not_(child.locked))

    @allow("update", field="via")
    def is_calm(self, viewer: Viewer) -> bool:
        return self.calm

    @allow("update", field="friend")
    def beside_open(self, viewer: Viewer) -> bool:
        return none(given(self.parent).children, lambda each: each.locked & each.open)

    @allow("update", field=("note", "memo"))
    def is_open(self, viewer: Viewer) -> bool:
        return self.open

    @allow("update", field=("open", "parent"))
    def always(self, viewer: Viewer) -> bool:
        return self.version > 0

    @computed
    def calm(self) -> bool:
        return not_(given(self.parent).locked)


model = Model(Part)
NAMES = ("locked", "top", "deep", "wide", "via", "friend", "note", "memo", "open", "parentId")
PART = [an_id("7", number) for number in range(5)]


def rows(random: Random) -> list[dict[str, Any]]:
    """Five parts, of which some are their own parents."""
    server = {"version": 1, "createdAt": day(1), "updatedAt": day(1)}
    return [{"id": each, **server, **values(random, each)} for each in PART]


def values(random: Random, own: str) -> dict[str, Any]:
    """Values of a part; every third leads to itself."""
    return {
        "locked": random.random() < 0.25,
        "open": random.random() < 0.7,
        "note": random.choice(("plain", "red", None)),
        "memo": random.choice((None, {"a": 1}, [1])),
        "parentId": random.choice((None, own, *random.sample(PART, 2))),
        **{name: random.randrange(2) for name in ("top", "deep", "wide", "via", "friend")},
    }
