"""`JobResource`: the base class of the resource whose rows are the jobs of a service.

A model with background actions has a resource `Job`, whose rows only those may read who asked. One that declares its
own says who else may:

    class Job(JobResource):
        access = (grant("read", to=admin),)

        @allow("read")
        def own(self, viewer: Viewer) -> bool:
            return self.owner == viewer.id

Clients never create, change or delete jobs; who may read one may cancel it.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from diptych.model.declare import actions
from diptych.model.declare.markers import Index, Json, KeyMark, MaxLen, WriteBy
from diptych.model.declare.resource import Resource, allow
from diptych.model.declare.roles import Viewer
from diptych.model.declare.tx import Tx


class JobState(StrEnum):
    """The state of a job: queued → running → succeeded or failed; cancelled before it has ended."""

    queued = "queued"
    running = "running"
    succeeded = "succeeded"
    failed = "failed"
    cancelled = "cancelled"


ENDED = (JobState.succeeded, JobState.failed, JobState.cancelled)


class JobResource(Resource):
    """Jobs as rows: which action was called, by whom, how far it is, and its result or its error."""

    action: Annotated[str, MaxLen(200), WriteBy()]
    owner: Annotated[str | None, KeyMark(text=True), Index(), WriteBy()] = None
    state: Annotated[JobState, WriteBy()] = JobState.queued
    progress: Annotated[float, WriteBy()] = 0.0
    progress_text: Annotated[str | None, MaxLen(500), WriteBy()] = None
    attempts: Annotated[int, WriteBy()] = 0
    started_at: Annotated[datetime | None, WriteBy()] = None
    finished_at: Annotated[datetime | None, Index(), WriteBy()] = None
    result: Annotated[Json | None, WriteBy()] = None
    error_code: Annotated[str | None, MaxLen(100), WriteBy()] = None
    error_message: Annotated[str | None, MaxLen(2_000), WriteBy()] = None

    @actions.action
    async def cancel(self, tx: Tx) -> Self:
        """Cancel it: none of its changes is committed from now on."""
        return await tx.cancel_job(self)


class Job(JobResource):
    """A call that runs in the background."""

    @allow("read")
    def own(self, viewer: Viewer) -> bool:
        return self.owner == viewer.id
