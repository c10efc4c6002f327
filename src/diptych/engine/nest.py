"""Runs the writes of a nested write: one after the other, then the late rules and the answer.

The writes are ordinary ones, each with its own rules. `WriteOp.more` says which belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from diptych.compile.dialect import Dialect
from diptych.db.script import ResultRow, Script
from diptych.engine.together import alike, create_together
from diptych.engine.write_op import BoundWrite, WriteOp, WriteResult
from diptych.engine.write_steps import begin, finish_steps, steps
from diptych.errors import Fault, Path, Refusal

T = TypeVar("T")


def in_nest(op: T, more: int, part: bool) -> T:
    """A write with its place in a nested write: how many follow, and is it a part that is not answered? No call is."""
    if not isinstance(op, WriteOp):
        return op
    return replace(op, more=more, part=part, step="" if part else op.step)


def nests(bound: Sequence[BoundWrite]) -> Iterator[Sequence[BoundWrite]]:
    """The writes of a request in groups: those of a nested write are one, any other write is one by itself."""
    start = 0
    for index, write in enumerate(bound):
        if not write.op.more:
            yield bound[start : index + 1]
            start = index + 1


def nest_steps(nest: Sequence[BoundWrite], ids: dict[str, Any], dialect: Dialect) -> Script[WriteResult]:
    """Run the writes of a group; the result is that of the one that is answered. `ids` are those of earlier steps."""
    rows: list[Any] = []
    waiting: list[tuple[BoundWrite, ResultRow]] = []
    answered = WriteResult(None, None)
    index = 0
    while index < len(nest):
        write = nest[index]
        op = write.op
        group = list(alike(nest, index)) if op.part else []
        if len(group) > 1:
            rows += [result.id for result in (yield from create_together(group, ids, rows, dialect))]
            index += len(group)
            continue
        index += 1
        here = write.resolved(ids, rows)
        try:
            if op.prepared.waits:
                waiting.append((here, (yield from begin(here, dialect))))
                row = here.id
            else:
                done = yield from steps(here, dialect)
                answered = answered if op.part else done
                row = done.id
        except Refusal as refusal:
            raise _placed(refusal, op) from None
        rows.append(row)
        if op.step:
            ids[op.step] = row
    for here, before in waiting:
        try:
            done = yield from finish_steps(here, before)
        except Refusal as refusal:
            raise _placed(refusal, here.op) from None
        answered = answered if here.op.part else done
    return answered


def _placed(refusal: Refusal, op: WriteOp) -> Refusal:
    """The refusal with the path of its write in the response; that of a nested row also says which row it is."""
    refusal.path = op.path
    if op.part and not refusal.faults:
        place: Path = op.prefix or op.prepared.path
        message = refusal.message[:1].lower() + refusal.message[1:].rstrip(".")
        refusal.faults = (Fault(place, message),)
    return refusal
