"""The statements of one Write, in order: late guards before it, the change, late guards after it, and its answer.

If nothing changed, one more statement finds the reason (`refusals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import or_
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from diptych.ask.json_merge import merge_stored
from diptych.ask.nodes import Write
from diptych.compile.dialect import Dialect
from diptych.compile.plan import MAX_ANSWER, Plan, too_long
from diptych.db.script import Again, ResultRow, Script, Step, Violation
from diptych.db.sqlite.unicode import unicode
from diptych.db.violations import refusal_of
from diptych.engine.refusals import failed_guard, moved, violated
from diptych.engine.write_op import BoundWrite, PreparedWrite, WriteResult
from diptych.errors import Code, Fault, Refusal
from diptych.model.list_scalar import ElementError
from diptych.model.scalars import ID
from diptych.model.value_scalar import merged_value
from diptych.model.view import not_yours


def steps(bound: BoundWrite, dialect: Dialect) -> Script[WriteResult]:
    """The statements of one Write in an open transaction."""
    prepared = bound.op.prepared
    if prepared.composed is not None:
        return (yield from prepared.composed.steps(bound, dialect))
    plan, write = prepared.plan, prepared.write
    answer = None
    is_deleted = write.verb in ("delete", "purge")
    if plan.merge is not None:
        bound = yield from _merged(bound, plan.merge)
    if plan.answer is not None and is_deleted:
        row = yield bound.step(plan.answer)
        answer = row[0] if row else None
    before = yield from _before(bound)
    row = yield from _made(bound, dialect)
    if write.id.scalar is not ID:  # the database may have made it
        bound.values[write.id.index] = row[0]
    if plan.after is not None:
        yield from _check_late(bound, plan.after, before)
    if plan.answer is None:
        answer = row[1]
    elif not is_deleted:
        shown = yield bound.step(plan.answer)
        if shown is None:  # a row that refers to itself no longer passes its own rules
            raise not_yours(prepared.view)
        answer = shown[0]
    return WriteResult(bound.id, checked(answer, write), prepared.finish, write.verb == "create")


def begin(bound: BoundWrite, dialect: Dialect) -> Script[ResultRow]:
    """The first half of a write that waits for the end of its nested write; gives what `end` needs."""
    before = yield from _before(bound)
    row = yield from _made(bound, dialect)
    write = bound.op.prepared.write
    if write.id.scalar is not ID:  # the database may have made it
        bound.values[write.id.index] = row[0]
    return before


def finish_steps(bound: BoundWrite, before: ResultRow) -> Script[WriteResult]:
    """The second half: late guards and the answer."""
    prepared = bound.op.prepared
    plan, answer = prepared.plan, None
    if plan.after is not None:
        yield from _check_late(bound, plan.after, before)
    if plan.answer is not None:
        shown = yield bound.step(plan.answer)
        if shown is None:
            raise not_yours(prepared.view)
        answer = shown[0]
    return WriteResult(bound.id, checked(answer, prepared.write), prepared.finish, prepared.write.verb == "create")


def checked(answer: bytes | None, write: Write) -> bytes | None:
    """The answer, if it can be shown."""
    if answer is None and write.pick:
        raise Refusal(Code.CONFLICT, "The row holds a value that its type does not allow, and cannot be shown.")
    if answer is not None and len(answer) > MAX_ANSWER:  # the database cut it off
        raise too_long()
    return cast("bytes | None", unicode(answer))


def locked_steps(bound: BoundWrite, dialect: Dialect) -> Script[WriteResult]:
    """The statements of one Write in an open transaction, where locks are taken first."""
    yield from take(bound.op.prepared.plan.locks.alone)
    return (yield from steps(bound, dialect))


def take(locks: str) -> Script[None]:
    """Run a statement that takes locks."""
    if locks:
        try:
            yield Step(locks, ())
        except Violation:
            raise refusal_of("lock") from None


def _made(bound: BoundWrite, dialect: Dialect) -> Script[Sequence[Any]]:
    """Run the statement of the write and return its row. If no row changed though every guard holds, another
    transaction changed the row meanwhile: lock it and retry once."""
    plan = bound.op.prepared.plan
    allowed = not bound.conflicts or plan.ahead is None or (yield from _holds_ahead(bound, plan.ahead))
    for held in (False, True):
        try:
            row = yield bound.step(plan.change, marked=dialect.marks)
        except Violation as violation:
            if violation.kind == "unique" and plan.ahead is not None and not bound.conflicts:
                bound.conflicts.append(violation)
                raise Again from None
            if not allowed:
                raise not_yours(bound.op.prepared.view) from None
            raise moved(violated(violation, bound.op.prepared), bound.op.prefix) from violation
        if row is not None:
            return row
        refusal = failed_guard((yield bound.step(plan.why)), bound)
        if refusal is not None:
            raise moved(refusal, bound.op.prefix)
        if plan.hold is None or held:
            break
        yield bound.step(plan.hold)
    raise Again


def _merged(bound: BoundWrite, stored: Plan) -> Script[BoundWrite]:
    """The write with objects merged into the stored JSON, whether or not the viewer may read it; the row is locked.

    A missing or hidden row is reported before faults of what is stored.
    """
    prepared, values = bound.op.prepared, list(bound.values)
    slots = [assign.value.index for assign in prepared.write.values if assign.merge and assign.value is not None]
    if not any(isinstance(values[slot], dict) for slot in slots):
        return bound
    if prepared.plan.hold is not None:
        yield bound.step(prepared.plan.hold)
    row = yield bound.step(stored)
    try:
        for slot, text in zip(slots, row or (), strict=False):
            if isinstance(values[slot], dict):
                values[slot] = _merged_value(prepared, slot, text or "null", values[slot])
    except Refusal as refusal:
        other = failed_guard((yield bound.step(prepared.plan.why)), bound)
        raise moved(other or refusal, bound.op.prefix) from None
    return replace(bound, values=values)


def _merged_value(prepared: PreparedWrite, slot: int, stored: str | bytes, patch: Any) -> Any:
    assigned = next(assign.value for assign in prepared.write.values if assign.value and assign.value.index == slot)
    if assigned.scalar.members is None:
        return merge_stored(stored, patch)
    try:
        return merged_value(assigned.scalar, msgspec.json.decode(stored), patch)
    except ElementError as error:
        fault = Fault((*prepared.binder.sources[slot].path, *error.path), str(error))
        raise Refusal(prepared.binder.code, "Some values are not valid.", [fault]) from None


def _before(bound: BoundWrite) -> Script[ResultRow]:
    """The results of the deferred guards on the row before the write; the row is locked."""
    plan = bound.op.prepared.plan
    if plan.before is None:
        return None
    if plan.hold is not None:
        yield bound.step(plan.hold)
    return (yield bound.step(plan.before))


def _check_late(bound: BoundWrite, after: Plan, before: ResultRow) -> Script[None]:
    """Check the deferred guards on the row after the write: each must hold, or have held before."""
    row = yield bound.step(after)
    if row is None or not all(map(or_, before or row, row)):
        raise not_yours(bound.op.prepared.view)


def _holds_ahead(bound: BoundWrite, ahead: Plan) -> Script[bool]:
    """Do the deferred guards hold before the write? That a unique value is taken is told to those only who could make
    the change if it were not."""
    row = yield bound.step(ahead)
    return row is None or all(row)
