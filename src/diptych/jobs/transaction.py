"""The transaction of the function of a job: it begins at its first use.

A function that downloads for a minute keeps no connection meanwhile, and on SQLite no other writer waits for it. What
it reports of its progress is kept here, and stored by the run (`run.py`) in transactions of their own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from diptych.db.job_queue import QueuedJob, Run
from diptych.db.script import Script
from diptych.db.store import Session, Store
from diptych.engine.transaction import ModelTx
from diptych.engine.write import WriteEngine
from diptych.model.declare.job_tx import JobTx, LostJob
from diptych.model.declare.roles import Viewer
from diptych.model.view import View

T = TypeVar("T")
_LONGEST_TEXT = 500


class LazySession:
    """A session that begins at its first use, and again after a commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: Session | None = None
        self._beginning = asyncio.Lock()

    async def _begun(self) -> Session:
        async with self._beginning:
            if self._session is None:
                self._session = await self._store.session()
            return self._session

    async def drive(self, script: Callable[[], Script[T]]) -> T:
        return await (await self._begun()).drive(script)

    async def rows(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return await (await self._begun()).rows(sql, parameters)

    async def commit(self) -> None:
        session = await self._begun()
        await session.commit()
        await self.end()

    async def end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.end()


class JobTransaction(ModelTx, JobTx):
    """The transaction of one run of a job."""

    def __init__(
        self, write_engine: WriteEngine, session: LazySession, viewer: Viewer, view: View, job: QueuedJob, run: Run
    ) -> None:
        super().__init__(write_engine, session, viewer, view)
        self._job = job
        self._run = run
        self._state = json.loads(job.state)
        self.reported: tuple[float, str] | None = None
        """The progress that is not stored yet."""

    @property
    def job_id(self) -> str:
        return self._job.id

    @property
    def attempt(self) -> int:
        return self._run.attempt

    @property
    def state(self) -> Any:
        return self._state

    def progress(self, part: float, text: str = "") -> None:
        self.reported = min(1.0, max(0.0, float(part))), text[:_LONGEST_TEXT]

    async def checkpoint(self, state: Any = None) -> None:
        dialect, text = self._engine.store.dialect, json.dumps(state)
        if not await self._session.drive(lambda: self._run.keep_state(dialect, text)):
            raise LostJob
        await self._session.commit()
        self._state = json.loads(text)
