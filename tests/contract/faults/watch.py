"""What a store is asked to run, statement by statement, whoever runs it: a read, a change, a script or a session.

with watched(service.app.store) as seen:
    service.get(…)
[statement.sql for statement in seen]
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import pytest

from diptych.compile.plan import Plan
from diptych.db.script import ResultRow, Script, Step, Violation
from diptych.db.store import Session, Store

T = TypeVar("T")


class Statement(NamedTuple):
    """A statement with its values."""

    sql: str
    parameters: Sequence[Any]


class WatchedSession:
    """A session that tells of what runs in it."""

    def __init__(self, session: Session, seen: list[Statement]) -> None:
        self._session = session
        self._seen = seen
        self.commit = session.commit
        self.end = session.end

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        return await self._session.drive(lambda: _told(script(), self._seen))

    async def rows(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        self._seen.append(Statement(sql, parameters))
        return await self._session.rows(sql, parameters)


@contextmanager
def watched(store: Store) -> Iterator[list[Statement]]:
    """All that runs on a store meanwhile."""
    seen: list[Statement] = []
    run, change, write, session = store.run, store.change, store.write, store.session

    async def watched_run(plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        seen.append(Statement(plan.sql, parameters))
        return await run(plan, parameters)

    def watched_change(step: Step, found: Callable[[], Step]) -> Awaitable[ResultRow]:
        seen.append(Statement(step.sql, step.parameters))
        return change(step, found)

    async def watched_write(script: Callable[[], Script[T]], locks: str = "") -> T:
        if locks:
            seen.append(Statement(locks, ()))
        return await write(lambda: _told(script(), seen), locks)

    async def watched_session(*, reading: bool = False) -> WatchedSession:
        return WatchedSession(await session(reading=reading), seen)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("run", watched_run),
            ("change", watched_change),
            ("write", watched_write),
            ("session", watched_session),
        ):
            patch.setattr(store, name, value)
        yield seen


def _told(script: Script[T], seen: list[Statement]) -> Script[T]:
    """The same script, which tells of its steps."""
    try:
        step = next(script)
        while True:
            seen.append(Statement(step.sql, step.parameters))
            try:
                row = yield step
            except Violation as violation:
                step = script.throw(violation)
            else:
                step = script.send(row)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        script.close()
