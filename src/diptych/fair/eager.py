"""Eager start of coroutines: one that never waits runs to its end at once, without a task.

    result = start(handler.handle(request))
    if isinstance(result, Waiting):                        the rest of it, to be awaited in a task
        loop.create_task(finish(result))

A coroutine that waits is continued in a task, which takes over the future that it waits for. (Python 3.12 has eager
tasks; this needs no task at all for what does not wait.)

Until a coroutine has waited once, `asyncio.current_task()` is None in it, which `asyncio.timeout` and task groups do
not accept. `in_task` is awaited before code that may use them, such as functions of the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Waiting(Generic[T]):
    """The rest of a coroutine that waits for a future."""

    __slots__ = ("_awaited", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], awaited: Any) -> None:
        self._work = work
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        work, awaited = self._work, self._awaited
        try:
            while True:
                try:
                    yield awaited
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as error:
                    awaited = work.throw(error)
                else:
                    return (yield from work.__await__())
        except StopIteration as done:
            result: T = done.value
            return result


def start(work: Coroutine[Any, Any, T]) -> T | Waiting[T]:
    """Run a coroutine until it waits or ends: its result, or the rest of it, to be awaited in a task."""
    try:
        awaited = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    return Waiting(work, awaited)


async def in_task() -> None:
    """Return in a task, whether or not the caller runs in one."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


async def ready(value: T) -> T:
    """A value that is there, for who awaits it."""
    return value
