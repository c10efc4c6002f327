"""What the other models have no example of: a state that most may not see and many may move, a value that must be
unique and is hidden, values that can only be written, and actions by role, by rule and on the class.

A door is seen by its owner, and by everyone if it is open.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from diptych import (
    MaxLen,
    Model,
    Move,
    OnDelete,
    ReadBy,
    Resource,
    Role,
    States,
    Tx,
    Unique,
    Viewer,
    WriteBy,
    action,
    allow,
    grant,
    inverse,
    signed_in,
)

porter = Role("porter")
owner = Role("owner", implies=porter)


class Lock(StrEnum):
    """How a door is locked."""

    loose = "loose"
    latched = "latched"
    bolted = "bolted"


class Person(Resource, plural="people"):
    """Someone who lives here."""

    name: Annotated[str, MaxLen(80)]
    doors: list[Door] = inverse("holder")

    access = (grant("read"), grant("update", to=porter))


class Door(Resource):
    """A door with its secrets."""

    holder: Person
    label: str | None = None
    open: bool = False
    lock: Annotated[
        Lock,
        ReadBy(owner),
        States(
            Move(Lock.loose, Lock.latched), Move(Lock.latched, Lock.bolted, to=porter), Move(Lock.latched, Lock.loose)
        ),
    ] = Lock.loose
    serial: Annotated[str | None, Unique(), ReadBy(porter)] = None
    phrase: Annotated[str | None, ReadBy(owner), WriteBy(signed_in)] = None
    wiring: Annotated[str | None, ReadBy(owner), WriteBy(owner)] = None
    next: Annotated[Door | None, OnDelete("set null")] = None

    access = (grant("read", "create", to=owner), grant("update", to=signed_in))

    @allow("read")
    def open_or_own(self, viewer: Viewer) -> bool:
        return self.open | (self.holder.id == viewer.id)

    @allow("create")
    @allow("read", field="lock")
    def own(self, viewer: Viewer) -> bool:
        return self.holder.id == viewer.id

    @allow(action="enter")
    def holds(self, viewer: Viewer) -> bool:
        return self.holder.id == viewer.id

    @allow(action="enter", to=owner)
    def opened(self, viewer: Viewer) -> bool:
        return self.open

    @action
    async def knock(self, tx: Tx) -> bool:
        """Anyone may."""
        return True

    @action(to=porter)
    async def paint(self, tx: Tx) -> Door | None:
        """Porters may."""
        return await tx.get(Door, self.id)

    @action
    async def enter(self, tx: Tx) -> bool:
        """Whoever holds it may, and owners if it is open."""
        return True

    @action(to=owner)
    @classmethod
    async def survey(cls, tx: Tx) -> bool:
        """Owners may; it is of no row."""
        return True


model = Model(Person, Door)
