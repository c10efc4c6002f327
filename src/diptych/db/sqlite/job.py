"""A write job of SQLite: a script with the future that gets its result once it is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from msgspec import Struct

from diptych.ask.act import Act
from diptych.db.script import Script, Step, one_step

T = TypeVar("T")


class WriterJob(Struct, Generic[T], eq=False):
    """A script in the queue of the writer, and its outcome."""

    script: Callable[[], Script[T]] | None
    """None if it is one statement."""
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    caller: str
    act: Act | None = None
    """Who makes its changes, where that is recorded."""
    step: Step | None = None
    """Its one statement, if that is all; that is atomic and needs no savepoint."""
    result: Any = None
    error: BaseException | None = None
    settled: bool = False
    """Is its outcome final?"""
    alone: bool = False
    """Must it have a transaction of its own? It failed in a shared one, or would collide there again."""
    ticket: int = 0
    """Its ticket in the fair queue, to be put back with."""

    def begin(self) -> Script[Any]:
        """A run of the script, from its start."""
        if self.script is not None:
            return self.script()
        assert self.step is not None
        return one_step(self.step)

    def fail(self, error: BaseException) -> None:
        """Settle it with an error."""
        self.error = error
        settle([self])

    def deliver(self) -> None:
        """Set the future, in the thread of its loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def settle(batch: Sequence[WriterJob[Any]]) -> None:
    """Set the futures of all jobs, with one callback for each loop."""
    for job in batch:
        job.settled = True
    for loop in {job.loop for job in batch}:
        own = [job for job in batch if job.loop is loop]
        call(loop, partial(_deliver, own))


def call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(what)


def _deliver(batch: Sequence[WriterJob[Any]]) -> None:
    for job in batch:
        job.deliver()
