"""What Python computes, put into the answers of the database.

    [{"title":"x","minutes":true,"__body":"…"}]     →     [{"title":"x","minutes":3}]

`ask.split` says what is where. The rows of a field are gathered from all answers of a request, whatever depth they
stand at, and its function is called once with all of them, or, if it is no batch, for each. It gets only rows on
which the field shows, and of them only what it needs. A request that picks no such field never comes here.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import msgspec

from diptych.ask.split import Finish, Resources, Spot, Task
from diptych.model.defs import FieldDef
from diptych.model.resource import Resource
from diptych.model.scalars import to_json
from diptych.model.transfer import row_of
from diptych.nesting import decode

_any = msgspec.json.Decoder()


async def finish(
    todo: Sequence[Finish | None], answers: Sequence[bytes | None], resources: Resources
) -> list[bytes | None]:
    """The answers of a request, each as its Finish says. What goes wrong names the field, for the log alone."""
    found = [None if each is None or answer is None else decode(each.decoder, answer)
             for each, answer in zip(todo, answers, strict=True)]  # fmt: skip
    jobs: dict[FieldDef, Job] = {}
    for each, root in zip(todo, found, strict=True):
        if each is not None and root is not None:
            _gather(each.spot, root if each.many else [root], jobs, resources)
    await _run([job for job in jobs.values() if job.rows])
    return [answer if root is None else msgspec.json.encode(root) for root, answer in zip(found, answers, strict=True)]


def _gather(spot: Spot, objects: Sequence[Any], jobs: dict[FieldDef, Job], resources: Resources) -> None:
    """Collect the rows of every field, at a place and at all places below."""
    for task in spot.tasks:
        job = jobs.get(task.field)
        if job is None:
            job = jobs[task.field] = Job(task)
        for each in objects:
            job.take(each, task, resources)
    for attribute, many, inner in spot.below:
        held = [value for each in objects if (value := getattr(each, attribute))]
        _gather(inner, [*chain.from_iterable(held)] if many else held, jobs, resources)
    for attribute in spot.hidden:
        for each in objects:
            setattr(each, attribute, msgspec.UNSET)


async def _run(jobs: Sequence[Job]) -> None:
    """Do all jobs; those that wait for something wait at the same time."""
    waiting = [job for job in jobs if job.waits]
    for job in jobs:
        if not job.waits or len(waiting) == 1:
            await job.run()
    if len(waiting) > 1:
        async with asyncio.TaskGroup() as group:
            for job in waiting:
                group.create_task(job.run())


class Job:
    """One field of a request: all its rows, and where their values go."""

    def __init__(self, task: Task) -> None:
        self.name = f"{task.resource.name}.{task.field.attr}"
        self.field = task.field
        self.waits = inspect.iscoroutinefunction(task.field.python)
        self.rows: list[Resource] = []
        self._places: list[tuple[Any, Task]] = []

    def take(self, found: Any, task: Task, resources: Resources) -> None:
        """Note the row that an object is, if the field shows on it."""
        if not getattr(found, task.attributes[0]):
            return _put(found, task, None)
        needs = {name: decode(_any, getattr(found, attribute)) for name, attribute in task.needs.items()}
        self.rows.append(row_of(resources, task.resource.name, needs))
        self._places.append((found, task))
        return None

    async def run(self) -> None:
        """Compute the values of all rows."""
        try:
            values = [self._on_wire(value) for value in await self._values()]
        except Exception as error:
            raise RuntimeError(f"the computed field {self.name} failed") from error
        for (found, task), value in zip(self._places, values, strict=True):
            _put(found, task, value)

    async def _values(self) -> Sequence[Any]:
        function = cast(Any, self.field.python)
        if not self.field.batch:
            return [function(row) for row in self.rows]
        values = function(self.rows)
        if inspect.isawaitable(values):
            values = await values
        if not isinstance(values, Sequence) or isinstance(values, str | bytes) or len(values) != len(self._places):
            raise TypeError(f"a batch of {len(self._places)} rows gives a list of {len(self._places)} values")
        return values

    def _on_wire(self, value: Any) -> Any:
        if value is None and self.field.nullable:
            return None
        made = to_json(self.field.scalar, value)
        if made is None:
            raise ValueError(f"expected a value of type {self.field.scalar}, got {type(value).__name__}")
        return made


def _put(found: Any, task: Task, value: Any) -> None:
    for attribute in task.attributes:
        setattr(found, attribute, value)
