"""Computes fields written in Python and puts their values into the answers of the database.

    [{"title":"x","minutes":true,"__body":"…"}]     →     [{"title":"x","minutes":3}]

`ask.python_fields` says where these fields are. The rows of a field are collected from all answers of a request, at
any depth. A batch function is called once with all of them, another one once for each row. It gets only rows on which
the viewer may see the field, and of them only the fields that it needs. Requests without such fields skip this module.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import msgspec

from diptych.ask.python_fields import ObjectShape, PythonField, PythonFields
from diptych.fair.eager import in_task
from diptych.model.declare.resource import Resource
from diptych.model.defs import FieldDef, Resources
from diptych.model.scalar_values import to_json
from diptych.model.transfer import row_of
from diptych.nesting import decode

_any = msgspec.json.Decoder()


async def finish(
    todo: Sequence[PythonFields | None], answers: Sequence[bytes | None], resources: Resources
) -> list[bytes | None]:
    """Compute the Python fields of all answers of a request. An error names the field, for the log only."""
    decoded = [
        None if python_fields is None or answer is None else decode(python_fields.decoder, answer)
        for python_fields, answer in zip(todo, answers, strict=True)
    ]
    jobs: dict[FieldDef, FieldBatch] = {}
    for python_fields, root in zip(todo, decoded, strict=True):
        if python_fields is not None and root is not None:
            objects = [part for part in root if part is not None] if python_fields.many else [root]
            _gather(python_fields.spot, objects, jobs, resources)
    await _run([job for job in jobs.values() if job.rows])
    return [
        answer if root is None else msgspec.json.encode(root) for root, answer in zip(decoded, answers, strict=True)
    ]


def _gather(spot: ObjectShape, objects: Sequence[Any], jobs: dict[FieldDef, FieldBatch], resources: Resources) -> None:
    """Collect the rows of every field, in these objects and in all that are nested in them."""
    for task in spot.tasks:
        job = jobs.get(task.field)
        if job is None:
            job = jobs[task.field] = FieldBatch(task)
        for target in objects:
            job.take(target, task, resources)
    for attribute, many, inner in spot.below:
        held = [value for target in objects if (value := getattr(target, attribute))]
        _gather(inner, [*chain.from_iterable(held)] if many else held, jobs, resources)
    for attribute in spot.hidden:
        for target in objects:
            setattr(target, attribute, msgspec.UNSET)


async def _run(jobs: Sequence[FieldBatch]) -> None:
    """Run all batches; coroutines run concurrently."""
    waiting = [job for job in jobs if job.waits]
    if waiting:
        await in_task()
    for job in jobs:
        if not job.waits or len(waiting) == 1:
            await job.run()
    if len(waiting) > 1:
        async with asyncio.TaskGroup() as group:
            for job in waiting:
                group.create_task(job.run())


class FieldBatch:
    """One field of a request: all its rows, and the objects that their values are written to."""

    def __init__(self, task: PythonField) -> None:
        self.name = f"{task.resource.name}.{task.field.attr}"
        self.field = task.field
        self.waits = inspect.iscoroutinefunction(task.field.python)
        self.rows: list[Resource] = []
        self._places: list[tuple[Any, PythonField]] = []

    def take(self, target: Any, task: PythonField, resources: Resources) -> None:
        """Add the row of a decoded object, if the viewer may see the field on it."""
        if not getattr(target, task.attributes[0]):
            return _put(target, task, None)
        needs = {name: decode(_any, getattr(target, attribute)) for name, attribute in task.needs.items()}
        self.rows.append(row_of(resources, task.resource.name, needs))
        self._places.append((target, task))
        return None

    async def run(self) -> None:
        """Compute the values of all rows."""
        try:
            values = [self._on_wire(value) for value in await self._values()]
        except Exception as error:
            raise RuntimeError(f"the computed field {self.name} failed") from error
        for (target, task), value in zip(self._places, values, strict=True):
            _put(target, task, value)

    async def _values(self) -> Sequence[Any]:
        function = cast(Any, self.field.python)
        if not self.field.batch:
            return [function(row) for row in self.rows]
        values = function(self.rows)
        if inspect.isawaitable(values):
            values = await values
        if not isinstance(values, Sequence) or isinstance(values, str | bytes) or len(values) != len(self._places):
            raise TypeError(f"a batch of {len(self._places)} rows must return a list of {len(self._places)} values")
        return values

    def _on_wire(self, value: Any) -> Any:
        if value is None and self.field.nullable:
            return None
        made = to_json(self.field.scalar, value)
        if made is None:
            raise ValueError(f"expected a value of type {self.field.scalar}, got {type(value).__name__}")
        return made


def _put(target: Any, task: PythonField, value: Any) -> None:
    for attribute in task.attributes:
        setattr(target, attribute, value)
