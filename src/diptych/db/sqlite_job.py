"""A script on its way through SQLite's writer: it waits for its turn, then for its commit, and then it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from diptych.asking import ASKER
from diptych.db.script import Script, Step

T = TypeVar("T")


class Job(Generic[T]):
    """A script that waits for its turn, and then for its commit."""

    __slots__ = ("alone", "error", "future", "loop", "result", "script", "settled", "step", "turn", "who")

    def __init__(
        self, script: Callable[[], Script[T]], loop: asyncio.AbstractEventLoop, step: Step | None = None
    ) -> None:
        self.script = script
        self.step = step
        """Its one statement, if that is all: it is made or not, and needs no savepoint."""
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None
        self.settled = False
        """Is it known what became of it?"""
        self.alone = False
        """Must it have a transaction of its own? It failed with others, or would collide with them again."""
        self.who = ASKER.get()
        self.turn = 0
        """The turn in which it was taken from the line."""

    def fail(self, error: BaseException) -> None:
        """It cannot be done."""
        self.error = error
        settle([self])

    def tell(self) -> None:
        """Tell whoever waits, in the loop's own thread."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]


def settle(batch: Sequence[Job[Any]]) -> None:
    """Tell all who wait: one call for each loop among them."""
    for job in batch:
        job.settled = True
    for loop in {job.loop for job in batch}:
        own = [job for job in batch if job.loop is loop]
        call(loop, partial(_tell, own))


def call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(what)


def _tell(batch: Sequence[Job[Any]]) -> None:
    for job in batch:
        job.tell()
