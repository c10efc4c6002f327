"""Runs the writes of a nested write: one after the other, then the late rules and the answer.

The writes are ordinary ones, each with its own rules. `WriteOp.more` says which belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from diptych.ask.slots import Ref
from diptych.compile.dialect import Dialect
from diptych.db.script import Again, ResultRow, Script, Step, Violation
from diptych.engine.write_op import BoundWrite, WriteOp, WriteResult
from diptych.engine.write_steps import begin, end, steps
from diptych.errors import Fault, Path, Refusal

T = TypeVar("T")


def in_nest(op: T, more: int, part: bool) -> T:
    """A write with its place in a nested write: how many follow, and is it a part that is not answered? No call is."""
    if not isinstance(op, WriteOp):
        return op
    return op._replace(more=more, part=part, step="" if part else op.step)


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
        alike = [] if op.more == 0 else list(_alike(nest, index))
        if len(alike) > 1:
            rows += yield from _together(alike, ids, rows, dialect)
            index += len(alike)
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
            done = yield from end(here, before)
        except Refusal as refusal:
            raise _placed(refusal, here.op) from None
        answered = answered if here.op.part else done
    return answered


def _alike(nest: Sequence[BoundWrite], start: int) -> Iterator[BoundWrite]:
    """The writes from here on that create rows by the same statement and refer to none of each other."""
    text = nest[start].op.prepared.plan.change.sql
    for offset, write in enumerate(nest[start:]):
        prepared = write.op.prepared
        if write.alone or not write.op.part or prepared.waits or prepared.write.verb != "create":
            return
        if prepared.plan.change.sql != text or prepared.plan.after is not None:
            return
        references = (write.values[index] for index in prepared.binder.references)
        if any(type(ref) is Ref and type(ref.step) is int and ref.step + offset >= 0 for ref in references):
            return
        yield write


def _together(
    nest: Sequence[BoundWrite], ids: Mapping[str, Any], rows: list[Any], dialect: Dialect
) -> Script[list[Any]]:
    """Create rows by one statement that is sent once with all their values; their ids. If one of them is refused, all
    are undone, and run one by one, to see which."""
    bound = [write.resolved(ids, [*rows, *[None] * offset]) for offset, write in enumerate(nest)]
    made = [write.step(write.op.prepared.plan.change, marked=dialect.marks) for write in bound]
    try:
        created = yield Step(made[0].sql, (), made[0].marked, [step.parameters for step in made])
    except Violation:
        created = None
    if created is None or len(created) < len(nest):
        for write in nest:
            write.alone = True
        raise Again
    return [row[0] if write.id is None else write.id for write, row in zip(bound, created, strict=True)]


def _placed(refusal: Refusal, op: WriteOp) -> Refusal:
    """The refusal with the path of its write in the response; that of a nested row also says which row it is."""
    refusal.path = op.path
    if op.part and not refusal.faults:
        place: Path = op.prefix or op.prepared.path
        message = refusal.message[:1].lower() + refusal.message[1:].rstrip(".")
        refusal.faults = (Fault(place, message),)
    return refusal
