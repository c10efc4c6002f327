"""One Write of a request: its values, its statements in their order, and why it was not made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import or_
from typing import Any, NamedTuple

from diptych.ask.asked import Asked
from diptych.ask.change import Guard, Why
from diptych.ask.nodes import Write
from diptych.ask.split import Finish
from diptych.check.cost import Cost
from diptych.check.values import Binder
from diptych.compile.dialect import Dialect
from diptych.compile.plan import MAX_ANSWER, Plan, too_long
from diptych.compile.write import WritePlan
from diptych.db.script import Again, Row, Script, Step, Violation
from diptych.db.unicode import unicode
from diptych.db.violations import refusal_of
from diptych.engine import FINISH, Paged
from diptych.errors import MAX_FAULTS, Code, Fault, Place, Refusal
from diptych.model.defs import FieldDef
from diptych.model.expr import FALSE
from diptych.model.roles import Viewer
from diptych.model.view import ViewName, not_yours


@dataclass(frozen=True, slots=True, eq=False)
class ReadyWrite:
    """A Write of a known shape: its plans, and how its values are got."""

    write: Write
    plan: WritePlan
    cost: Cost
    """The change itself, and its answer."""
    pages: tuple[Paged, ...]
    binder: Binder
    view: ViewName
    place: Place
    """Where the values of the row stand in the request."""
    asked: Asked | None = None
    finish: Finish | None = None
    """What Python does with the answer, if it has a part in it."""
    versioned: bool = False
    """Does the answer tell the version of the row?"""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.plan.size + self.binder.size + FINISH * (self.finish is not None)

    def place_of(self, field: str) -> Place:
        """Where the value of a field stands, or would stand."""
        for assign in self.write.values:
            if assign.name == field and assign.value is not None:
                return self.binder.sources[assign.value.index].place
        return (*self.place, field)


class Deed(NamedTuple):
    """A Write of a request, with its inputs; `path` is its place in the answer, `prefix` in the request."""

    ready: ReadyWrite
    inputs: Mapping[str, Any]
    path: Place = ()
    prefix: Place = ()


class Done(NamedTuple):
    """What became of a Write: the id of its row, the answer if anything was picked, and what is left to do with it."""

    id: Any
    answer: bytes | None
    finish: Finish | None = None


class Bound:
    """A Deed with its values."""

    __slots__ = ("deed", "keys", "values", "viewer")

    def __init__(self, deed: Deed, values: list[Any], keys: Mapping[int, bytes], viewer: Viewer) -> None:
        self.deed = deed
        self.values = values
        self.keys = keys
        self.viewer = viewer

    @property
    def id(self) -> Any:
        """The id of the row; a new row may have it from the database."""
        return self.values[self.deed.ready.write.id.index]

    @property
    def price(self) -> int:
        """What it costs."""
        return self.deed.ready.cost.price(self.values)

    def step(self, plan: Plan, marked: bool = False) -> Step:
        return Step(plan.sql, plan.parameters(self.values, self.viewer, self.keys), marked)


def joined(refusals: Sequence[Refusal]) -> Refusal:
    """One Refusal for several: the first, with the faults of all that have its code, as far as anyone reads."""
    first = refusals[0]
    faults = [fault for each in refusals if each.code is first.code for fault in each.faults]
    return Refusal(first.code, first.message, faults[:MAX_FAULTS], more=first.more)


def moved(refusal: Refusal, prefix: Place) -> Refusal:
    """The same Refusal, where the values stand deeper in the body."""
    if not prefix:
        return refusal
    faults = [replace(fault, place=(*prefix, *fault.place[1:])) if fault.place[:1] == prefix[:1] else fault
              for fault in refusal.faults]  # fmt: skip
    return Refusal(refusal.code, refusal.message, faults, more=refusal.more)


def steps(bound: Bound, dialect: Dialect) -> Script[Done]:
    """The statements of one Write."""
    ready = bound.deed.ready
    plan, write = ready.plan, ready.write
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
            raise not_yours(ready.view)
    if plan.answer is None:
        answer = row[1]
    elif write.verb != "delete":
        found = yield bound.step(plan.answer)
        if found is None:  # a row that leads to itself, and is not what its rules saw
            raise not_yours(ready.view)
        answer = found[0]
    if answer is None and write.pick:
        raise Refusal(Code.CONFLICT, "The row holds a value that its type does not allow, and cannot be shown.")
    if answer is not None and len(answer) > MAX_ANSWER:  # it is not whole
        raise too_long()
    return Done(bound.id, unicode(answer), ready.finish)


def locked_steps(bound: Bound, dialect: Dialect) -> Script[Done]:
    """The same in a transaction of which it is not known what else it does: its locks are taken first."""
    yield from take(bound.deed.ready.plan.locks.alone)
    return (yield from steps(bound, dialect))


def take(locks: str) -> Script[None]:
    """Take locks, by the statement for them."""
    if locks:
        try:
            yield Step(locks, ())
        except Violation:
            raise refusal_of("lock") from None


def _made(bound: Bound, dialect: Dialect) -> Script[Sequence[Any]]:
    """The row of the change itself. If nothing speaks against it and yet nothing changed, others changed the row
    meanwhile: then it is held, and the change made anew."""
    plan = bound.deed.ready.plan
    for held in (False, True):
        try:
            row = yield bound.step(plan.change, marked=dialect.marks)
        except Violation as violation:
            raise moved(_violated(violation, bound.deed.ready), bound.deed.prefix) from None
        if row is not None:
            return row
        refusal = _refused((yield bound.step(plan.why)), bound)
        if refusal is not None:
            raise moved(refusal, bound.deed.prefix)
        if plan.hold is None or held:
            break
        yield bound.step(plan.hold)
    raise Again


def _before(bound: Bound) -> Script[Row]:
    """What the guards that are tested after the change say of the row as it is, which is held for that."""
    plan = bound.deed.ready.plan
    if plan.before is None:
        return None
    if plan.hold is not None:
        yield bound.step(plan.hold)
    return (yield bound.step(plan.before))


# why nothing changed


def _refused(row: Sequence[Any] | None, bound: Bound) -> Refusal | None:
    """Why a change was not made; None if nothing speaks against it."""
    ready = bound.deed.ready
    guards = ready.plan.guards
    if row is None:
        return Refusal(Code.NOT_FOUND, "There is nothing here.")
    failed = [each for each, holds in zip(guards, row, strict=False) if not holds]
    if not failed:
        return None
    failed = _tellable(failed)
    first = failed[0]
    alike = [each for each in failed if each.why is first.why]
    match first.why:
        case Why.HIDDEN:
            return Refusal(Code.NOT_FOUND, "There is nothing here.")
        case Why.DENIED:
            return not_yours(ready.view)
        case Why.STALE:
            return Refusal(Code.PRECONDITION_FAILED, "It has changed since: read it again.")
        case Why.STATE:
            states = dict(zip(ready.plan.states, row[len(guards) :], strict=True))
            return _state(first, states.get(first.field), ready)
        case Why.DANGLING:
            told = "there is nothing with this id"
            return _faulty(Code.CONFLICT, "A reference leads to nothing.", alike, ready, told)
        case Why.DIFFERS | Why.ABSENT:
            wrong = [each for each in failed if each.why in _REPLACED]
            faults = [Fault(ready.place_of(each.field), _REPLACED[each.why]) for each in wrong]
            return Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)


_REPLACED = {Why.DIFFERS: "the field is read-only, and has another value", Why.ABSENT: "expected a value"}
"""What can be wrong with a replacement, once its row is known."""


def _tellable(failed: list[Guard]) -> list[Guard]:
    """Where a reference leads to nothing, not what rules say of the row as it would become: that could tell of a
    hidden row, to which the reference must seem to lead nowhere."""
    if all(each.why is not Why.DANGLING for each in failed):
        return failed
    return [each for each in failed if each.becomes == FALSE or each.why is Why.DANGLING]


def _faulty(code: Code, message: str, guards: Sequence[Guard], ready: ReadyWrite, told: str) -> Refusal:
    return Refusal(code, message, [Fault(ready.place_of(each.field), told) for each in guards])


def _state(failed: Guard, state: str | None, ready: ReadyWrite) -> Refusal:
    field = ready.view.model[ready.write.resource].fields[failed.field]
    if state is None and ready.write.verb != "create":  # the viewer may not see it
        return _faulty(Code.CONFLICT, "The state cannot move so.", [failed], ready, "the state cannot move so")
    allowed = _allowed(field, state, ready.view)
    begins = f"'{field.name}' is {state} and" if state is not None else f"'{field.name}' of a new row"
    told = f"{begins} can become {' or '.join(allowed)}" if allowed else f"{begins} cannot change"
    if state is None:
        told = f"{begins} can only be {allowed[0]}"
    faults = [Fault(ready.place_of(field.name), told)]
    return Refusal(Code.CONFLICT, told[:1].upper() + told[1:] + ".", faults, more={"allowed": allowed})


def _allowed(field: FieldDef, state: str | None, view: ViewName) -> list[str]:
    """The states that this viewer may choose next."""
    if state is None:
        return [field.default]
    roles = view.signature.roles
    moves = (move for move in field.moves if move.to is None or move.to.name in roles)
    return list(dict.fromkeys(move.target.value for move in moves if move.source.value == state))


def _violated(violation: Violation, ready: ReadyWrite) -> Refusal:
    refusal = refusal_of(violation.kind)
    if violation.kind not in ("unique", "reference"):
        return refusal
    resource = ready.view.model[ready.write.resource]
    own = {field.column: name for name, field in resource.fields.items() if field.stored}
    names = [own[column] for column in violation.columns if column in own and violation.table == resource.table]
    if violation.kind == "unique":
        given = {assign.name for assign in ready.write.values}  # what was not given may be hidden, and has no place
        faults = [Fault(ready.place_of(name), "another one has this value") for name in names if name in given]
        return Refusal(refusal.code, refusal.message, faults)
    if ready.write.verb == "delete" or not names:
        return refusal
    faults = [Fault(ready.place_of(name), "there is nothing with this id") for name in names]
    return Refusal(Code.CONFLICT, "A reference leads to nothing.", faults)
