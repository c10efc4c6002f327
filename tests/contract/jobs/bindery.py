"""A bindery: books that are bound in the background, for the tests of jobs."""

from __future__ import annotations

import asyncio
from typing import Annotated

from diptych import (
    Code,
    Fault,
    Id,
    JobTx,
    Json,
    MaxLen,
    Min,
    Model,
    Refusal,
    Resource,
    Retry,
    Role,
    Tx,
    Viewer,
    action,
    allow,
    every,
    grant,
)

binder = Role("binder")
robot = Role("robot")
ANN, BOB = "01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"
BOOK = "01900000-0000-7000-8000-000000000100"
_TIMES = {"version": 1, "createdAt": "2026-01-01T00:00:00.000000Z", "updatedAt": "2026-01-01T00:00:00.000000Z"}


class Gate:
    """What functions wait for until a test opens it, on whatever event loop."""

    is_open = False

    def set(self) -> None:
        self.is_open = True

    def clear(self) -> None:
        self.is_open = False

    async def wait(self) -> None:
        while not self.is_open:
            await asyncio.sleep(0.005)


GATE = Gate()
TRIES: list[int] = []


class Book(Resource):
    """What is bound."""

    owner: Id
    title: Annotated[str, MaxLen(40)]
    pages: int = 0

    access = (grant("create", to=robot),)

    @allow("read", "create", "update")
    def own(self, viewer: Viewer) -> bool:
        return self.owner == viewer.id

    @allow("read", to=binder)
    def seen(self, viewer: Viewer) -> bool:
        return self.pages >= 0

    @action(background=True)
    async def bind(self, tx: JobTx, pages: Annotated[int, Min(1)], note: str | None = None) -> Book:
        """Bind it."""
        tx.progress(0.5, f"half of {pages}")
        self.pages = pages
        if note is not None:
            self.title = note
        return await tx.save(self)

    @action(background=True, attempts=3, retry=(ConnectionError,))
    @classmethod
    async def try_out(cls, tx: JobTx, how: str, data: Json | None = None) -> Json:
        """End as it is told."""
        TRIES.append(tx.attempt)
        await tx.save(Book(owner=ANN, title=f"{how} {tx.attempt}"))
        if how == "wait":
            await tx.checkpoint()
            tx.progress(0.25, "waits")
            await GATE.wait()
        elif how == "hold":
            await GATE.wait()
        elif how == "refuse":
            raise Refusal(Code.CONFLICT, "Not on a Sunday.")
        elif how == "fault":
            raise Fault("how", "it is at fault")
        elif how == "break":
            raise RuntimeError("the password is tiger")
        elif how == "retry" and tx.attempt < 3:
            raise Retry("not yet", after=0)
        elif how == "connect":
            raise ConnectionError("no route")
        return {"how": how, "data": data, "attempt": tx.attempt}

    @action(background=True, timeout=0.1, attempts=1)
    @classmethod
    async def dawdle(cls, tx: Tx) -> None:
        """Take too long."""
        await asyncio.sleep(10)

    @action(background=True)
    @classmethod
    async def count(cls, tx: JobTx) -> int:
        """Count in steps, and break after each."""
        done = tx.state or 0
        await tx.save(Book(owner=ANN, title=f"step {done}"))
        await tx.checkpoint(done + 1)
        if done < 2:
            raise Retry(after=0)
        return int(tx.state)

    @action(background=True)
    @classmethod
    async def all(cls, tx: JobTx) -> list[Book]:
        """All books that one may see."""
        return await tx.select(Book, order="title")


class Clock(Resource):
    """What the clock does."""

    text: str

    access = (grant("read"), grant("create", to=robot))

    @every(seconds=1, roles=(robot,))
    @classmethod
    async def strike(cls, tx: JobTx) -> None:
        await tx.save(Clock(text=f"tick {tx.attempt}"))


model = Model(Book)
ticking = Model(Clock)
ROWS = {"Book": [{"id": BOOK, "owner": ANN, "title": "Faust", "pages": 0, **_TIMES}]}
