"""Why a Write is refused: the first guard that failed, or the constraint that the database reports, as a Refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from diptych.ask.guarded import Guard, Why
from diptych.db.script import Violation
from diptych.db.violations import refusal_of
from diptych.engine.write_op import BoundWrite, PreparedWrite
from diptych.errors import MAX_FAULTS, Code, Fault, Path, Refusal
from diptych.model.defs import FieldDef
from diptych.model.naming import upper_first
from diptych.model.rules.expr import FALSE
from diptych.model.view import ViewName, not_yours


def failed_guard(row: Sequence[Any] | None, bound: BoundWrite) -> Refusal | None:
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
        case Why.DIFFERS | Why.ABSENT | Why.NUMBERED:
            wrong = [guard for guard in failed if guard.why in _REPLACED]
            faults = [Fault(prepared.place_of(guard.field), _REPLACED[guard.why]) for guard in wrong]
            return Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)


_REPLACED = {
    Why.DIFFERS: "the field is read-only, and has another value",
    Why.ABSENT: "expected a value",
    Why.NUMBERED: "it cannot change: the row is numbered within it",
}
"""Faults of a write that depend on the row, mostly of a replacement."""


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


def violated(violation: Violation, prepared: PreparedWrite) -> Refusal:
    """The refusal of a write that violates a constraint of the database; faults name fields that were sent."""
    refusal = refusal_of(violation.kind)
    if violation.kind not in ("unique", "reference"):
        return refusal
    resource = prepared.view.model[prepared.write.resource]
    own = {field.column: name for name, field in resource.fields.items() if field.stored}
    names = [own[column] for column in violation.columns if column in own and violation.table == resource.table]
    if violation.kind == "unique":
        sent = {assign.name for assign in prepared.write.values}  # what was not sent may be hidden, and has no path
        sent |= {"id"} if resource.client_ids else set()
        message = "another one has this value" if len(names) == 1 else "another one has these values together"
        faults = [Fault(prepared.place_of(name), message) for name in names if name in sent]
        return Refusal(refusal.code, refusal.message if len(names) == 1 else "Another one has these values.", faults)
    if prepared.write.verb in ("delete", "purge") or not names:
        return refusal
    faults = [Fault(prepared.place_of(name), "there is nothing with this id") for name in names]
    return Refusal(Code.CONFLICT, "A reference leads to nothing.", faults)


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
