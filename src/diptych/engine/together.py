"""Creates several rows by one statement, which is sent once with the values of all of them.

    create Post {"title": "First"}, create Post {"title": "Second"}     the rows of a nested write or of a batch
        → INSERT INTO "posts" … RETURNING …                             prepared once, run twice in one round trip

Each row is still judged by its own rules, in the statement. If one of them is refused, all are undone, and the script
runs again with one statement for each row, to see which it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diptych.ask.slots import Ref
from diptych.compile.dialect import Dialect
from diptych.compile.plan import Plan
from diptych.db.script import Again, Script, Step, Violation
from diptych.engine.references import resolved
from diptych.engine.write_op import BoundWrite, PreparedWrite, WriteOp, WriteResult
from diptych.engine.write_steps import checked
from diptych.errors import Refusal


def alike(bound: Sequence[BoundWrite], start: int) -> Iterator[BoundWrite]:
    """The writes from here on that create rows by the same statement and refer to none of each other."""
    first = bound[start].op
    change = first.prepared.plan.change
    names: set[str] = set()
    if not _is_plain(first.prepared):
        return
    for offset, write in enumerate(bound[start:]):
        op, prepared = write.op, write.op.prepared
        if write.alone or op.part is not first.part:
            return
        if prepared is not first.prepared and not (_is_plain(prepared) and _is_same(prepared.plan.change, change)):
            return
        if write.refers and any(_is_among(write.values[index], offset, names) for index in prepared.binder.references):
            return
        names.add(op.step)
        yield write


def _is_plain(prepared: PreparedWrite) -> bool:
    """Does a single statement create the row and read its answer?"""
    plan = prepared.plan
    if prepared.write.verb != "create" or prepared.waits or prepared.composed is not None:
        return False
    return plan.after is None and plan.answer is None and not prepared.pages


def _is_same(one: Plan, other: Plan) -> bool:
    return one is other or (one.sql == other.sql and one.binds == other.binds)


def _is_among(value: Any, offset: int, names: set[str]) -> bool:
    """Does a value refer to one of the `offset` rows just before, or to one of these names?"""
    if type(value) is not Ref:
        return False
    return value.step + offset >= 0 if isinstance(value.step, int) else value.step in names


def create_together(
    group: Sequence[BoundWrite], ids: Mapping[str, Any], rows: Sequence[Any], dialect: Dialect
) -> Script[list[WriteResult]]:
    """Create the rows of a group. `ids` and `rows` are those of the steps before."""
    first = group[0].op.prepared
    change, slot = first.plan.change, first.write.id.index
    before = [*rows]  # and those of this group, to which none of it refers
    runs = []
    for write in group:
        runs.append(resolved(write.values, write.op.prepared.binder, ids, before) if write.refers else write.values)
        before.append(None)
    try:
        made = yield Step(change.sql, (), dialect.marks, change.parameters_of(runs, group[0].viewer))
    except Violation:
        made = None
    if made is None or len(made) < len(group):
        for write in group:
            write.alone = True
        raise Again
    return [
        _result(write.op, row[0] if run[slot] is None else run[slot], row[1])
        for write, run, row in zip(group, runs, made, strict=True)
    ]


def _result(op: WriteOp, id: Any, answer: Any) -> WriteResult:
    prepared = op.prepared
    try:
        return WriteResult(id, checked(answer, prepared.write), prepared.finish, created=True)
    except Refusal as refusal:
        refusal.path = op.path
        raise
