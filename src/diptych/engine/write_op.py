"""One Write of a request: its values, its statements in order, and the reason if it is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import or_
from typing import Any, NamedTuple

from diptych.ask.guarded import Guard, Why
from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Write
from diptych.ask.python_fields import PythonFields
from diptych.compile.dialect import Dialect
from diptych.compile.plan import MAX_ANSWER, Plan, too_long
from diptych.compile.write import WritePlan
from diptych.db.script import Again, ResultRow, Script, Step, Violation
from diptych.db.sqlite.unicode import unicode
from diptych.db.violations import refusal_of
from diptych.engine.read import FINISH, Paged
from diptych.engine.references import resolved
from diptych.errors import MAX_FAULTS, Code, Fault, Path, Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.defs import FieldDef
from diptych.model.naming import upper_first
from diptych.model.rules.expr import FALSE
from diptych.model.view import ViewName, not_yours
from diptych.policy.cost import Cost
from diptych.policy.values import Binder


@dataclass(frozen=True, slots=True, eq=False)
class PreparedWrite:
    """A prepared Write: its plans and the binder of its values."""

    write: Write
    plan: WritePlan
    cost: Cost
    """The cost of the write and of its answer."""
    pages: tuple[Paged, ...]
    binder: Binder
    view: ViewName
    path: Path
    """The path of the row's values in the request."""
    measures: RequestMeasures | None = None
    finish: PythonFields | None = None
    """The Python fields of the answer, if there are any."""
    versioned: bool = False
    """Does the answer include the version of the row?"""

    @property
    def size(self) -> int:
        return self.plan.size + self.binder.size + FINISH * (self.finish is not None)

    def place_of(self, field: str) -> Path:
        """The path of a field's value in the request, sent or missing."""
        for assign in self.write.values:
            if assign.name == field and assign.value is not None:
                return self.binder.sources[assign.value.index].path
        return (*self.path, field)


class WriteOp(NamedTuple):
    """A Write of a request, with its inputs; `path` is its path in the response, `prefix` in the request."""

    prepared: PreparedWrite
    inputs: Mapping[str, Any]
    path: Path = ()
    prefix: Path = ()
    step: str = ""
    """The name by which later steps refer to its row."""


class WriteResult(NamedTuple):
    """The result of a Write: the id of its row, the answer if one is selected, and its Python fields to compute."""

    id: Any
    answer: bytes | None
    finish: PythonFields | None = None


@dataclass(slots=True, eq=False)
class BoundWrite:
    """A WriteOp with its values."""

    op: WriteOp
    values: list[Any]
    keys: Mapping[int, bytes]
    viewer: Viewer
    refers: bool = False
    """Are there references to earlier steps among the values?"""

    def resolved(self, ids: Mapping[str, Any]) -> BoundWrite:
        """This write, with the ids of the rows of earlier steps."""
        if not self.refers:
            return self
        return replace(self, values=resolved(self.values, self.op.prepared.binder, ids), refers=False)

    @property
    def id(self) -> Any:
        """The id of the row; a new row may have it from the database."""
        return self.values[self.op.prepared.write.id.index]

    @property
    def price(self) -> int:
        return self.op.prepared.cost.price(self.values)

    def step(self, plan: Plan, marked: bool = False) -> Step:
        return Step(plan.sql, plan.parameters(self.values, self.viewer, self.keys), marked)


def joined(refusals: Sequence[Refusal]) -> Refusal:
    """Merge refusals: the first, with the faults of all that have its code, up to MAX_FAULTS."""
    first = refusals[0]
    faults = [fault for refusal in refusals if refusal.code is first.code for fault in refusal.faults]
    return Refusal(first.code, first.message, faults[:MAX_FAULTS], more=first.more)


def moved(refusal: Refusal, prefix: Path) -> Refusal:
    """The same Refusal with its paths under a prefix of the body."""
    if not prefix:
        return refusal
    faults = [
        replace(fault, path=(*prefix, *fault.path[1:])) if fault.path[:1] == prefix[:1] else fault
        for fault in refusal.faults
    ]
    return Refusal(refusal.code, refusal.message, faults, more=refusal.more)


def steps(bound: BoundWrite, dialect: Dialect) -> Script[WriteResult]:
    prepared = bound.op.prepared
    plan, write = prepared.plan, prepared.write
    answer = None
    if plan.answer is not None and write.verb == "delete":
        row = yield bound.step(plan.answer)
        answer = row[0] if row else None
    before = yield from _before(bound)
    row = yield from _made(bound, dialect)
    if write.id.scalar.python is int:
        bound.values[write.id.index] = row[0]
    if plan.after is not None:
        after = yield bound.step(plan.after)
        if after is None or not all(map(or_, before or after, after)):
            raise not_yours(prepared.view)
    if plan.answer is None:
        answer = row[1]
    elif write.verb != "delete":
        shown = yield bound.step(plan.answer)
        if shown is None:  # a row that refers to itself no longer passes its own rules
            raise not_yours(prepared.view)
        answer = shown[0]
    if answer is None and write.pick:
        raise Refusal(Code.CONFLICT, "The row holds a value that its type does not allow, and cannot be shown.")
    if answer is not None and len(answer) > MAX_ANSWER:  # the database cut it off
        raise too_long()
    return WriteResult(bound.id, unicode(answer), prepared.finish)


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
    for held in (False, True):
        try:
            row = yield bound.step(plan.change, marked=dialect.marks)
        except Violation as violation:
            raise moved(_violated(violation, bound.op.prepared), bound.op.prefix) from None
        if row is not None:
            return row
        refusal = _refused((yield bound.step(plan.why)), bound)
        if refusal is not None:
            raise moved(refusal, bound.op.prefix)
        if plan.hold is None or held:
            break
        yield bound.step(plan.hold)
    raise Again


def _before(bound: BoundWrite) -> Script[ResultRow]:
    """The results of the deferred guards on the row before the write; the row is locked."""
    plan = bound.op.prepared.plan
    if plan.before is None:
        return None
    if plan.hold is not None:
        yield bound.step(plan.hold)
    return (yield bound.step(plan.before))


# why nothing changed


def _refused(row: Sequence[Any] | None, bound: BoundWrite) -> Refusal | None:
    """The reason why no row changed; None if every guard holds."""
    prepared = bound.op.prepared
    guards = prepared.plan.guards
    if row is None:
        return Refusal(Code.NOT_FOUND, "There is nothing here.")
    failed = [guard for guard, holds in zip(guards, row, strict=False) if not holds]
    if not failed:
        return None
    failed = _reportable(failed)
    first = failed[0]
    alike = [guard for guard in failed if guard.why is first.why]
    match first.why:
        case Why.HIDDEN:
            return Refusal(Code.NOT_FOUND, "There is nothing here.")
        case Why.DENIED:
            return not_yours(prepared.view)
        case Why.STALE:
            return Refusal(Code.PRECONDITION_FAILED, "It has changed since: read it again.")
        case Why.BROKEN:
            return _broken(alike, prepared)
        case Why.STATE:
            states = dict(zip(prepared.plan.states, row[len(guards) :], strict=True))
            return _state(first, states.get(first.field), prepared)
        case Why.DANGLING:
            reason = "there is nothing with this id"
            return _faulty(Code.CONFLICT, "A reference leads to nothing.", alike, prepared, reason)
        case Why.DIFFERS | Why.ABSENT:
            wrong = [guard for guard in failed if guard.why in _REPLACED]
            faults = [Fault(prepared.place_of(guard.field), _REPLACED[guard.why]) for guard in wrong]
            return Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)


_REPLACED = {Why.DIFFERS: "the field is read-only, and has another value", Why.ABSENT: "expected a value"}
"""Faults of a replacement that depend on its row."""


def _reportable(failed: list[Guard]) -> list[Guard]:
    """The failed guards that may be reported. If a reference dangles, guards on the new row are left out: they could
    reveal that the row it refers to exists and is hidden."""
    if all(guard.why is not Why.DANGLING for guard in failed):
        return failed
    return [guard for guard in failed if guard.becomes == FALSE or guard.why is Why.DANGLING]


def _faulty(code: Code, message: str, guards: Sequence[Guard], prepared: PreparedWrite, reason: str) -> Refusal:
    return Refusal(code, message, [Fault(prepared.place_of(guard.field), reason) for guard in guards])


def _broken(guards: Sequence[Guard], prepared: PreparedWrite) -> Refusal:
    """The sentence of each broken check, at each of its fields that was sent."""
    resource = prepared.view.model[prepared.write.resource]
    sent = {assign.name for assign in prepared.write.values}
    faults = []
    for check in (resource.checks[guard.field] for guard in guards):
        paths = [prepared.place_of(name) for name in check.fields if name in sent] or [prepared.path]
        faults += [Fault(path, check.message) for path in paths]
    return Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults[:MAX_FAULTS])


def _state(failed: Guard, state: str | None, prepared: PreparedWrite) -> Refusal:
    field = prepared.view.model[prepared.write.resource].fields[failed.field]
    if state is None and prepared.write.verb != "create":  # the viewer may not see it
        return _faulty(
            Code.CONFLICT,
            "This transition is not allowed from the current state.",
            [failed],
            prepared,
            "this transition is not allowed",
        )
    allowed = _allowed(field, state, prepared.view)
    begins = f"'{field.name}' is {state} and" if state is not None else f"'{field.name}' of a new row"
    reason = f"{begins} can become {' or '.join(allowed)}" if allowed else f"{begins} cannot change"
    if state is None:
        reason = f"{begins} can only be {allowed[0]}"
    faults = [Fault(prepared.place_of(field.name), reason)]
    return Refusal(Code.CONFLICT, upper_first(reason) + ".", faults, more={"allowed": allowed})


def _allowed(field: FieldDef, state: str | None, view: ViewName) -> list[str]:
    """The states that this viewer may choose next."""
    if state is None:
        return [field.default]
    roles = view.signature.roles
    moves = (move for move in field.moves if move.to is None or move.to.name in roles)
    return list(dict.fromkeys(move.target.value for move in moves if move.source.value == state))


def _violated(violation: Violation, prepared: PreparedWrite) -> Refusal:
    refusal = refusal_of(violation.kind)
    if violation.kind not in ("unique", "reference"):
        return refusal
    resource = prepared.view.model[prepared.write.resource]
    own = {field.column: name for name, field in resource.fields.items() if field.stored}
    names = [own[column] for column in violation.columns if column in own and violation.table == resource.table]
    if violation.kind == "unique":
        sent = {assign.name for assign in prepared.write.values}  # what was not sent may be hidden, and has no path
        message = "another one has this value" if len(names) == 1 else "another one has these values together"
        faults = [Fault(prepared.place_of(name), message) for name in names if name in sent]
        return Refusal(refusal.code, refusal.message if len(names) == 1 else "Another one has these values.", faults)
    if prepared.write.verb == "delete" or not names:
        return refusal
    faults = [Fault(prepared.place_of(name), "there is nothing with this id") for name in names]
    return Refusal(Code.CONFLICT, "A reference leads to nothing.", faults)
