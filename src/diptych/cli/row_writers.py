"""Writes the rows of an import: as they are, or as the creations or upserts of a viewer.

`DirectWriter` inserts stored values, with ids, versions and times, as a restored backup would: constraints of types and
of the database hold, access rules and state transitions do not. `AskWriter` makes of each row the Ask of a POST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from uuid_utils import uuid7

from diptych.api.rest.query import read_query
from diptych.api.rest.target import Target
from diptych.api.rest.translate import write_inputs
from diptych.api.understand import understand_write
from diptych.ask.nodes import WriteVerb
from diptych.ask.slots import RawValue, Slots
from diptych.compile.plan import Plan
from diptych.compile.tables import catch_up
from diptych.db.script import Script, Step, Violation
from diptych.db.store import insert_plan
from diptych.db.violations import refusal_of
from diptych.engine.read import Engine
from diptych.engine.write import WriteEngine
from diptych.engine.write_op import PreparedWrite, WriteOp
from diptych.engine.write_steps import locked_steps
from diptych.errors import Code, Fault, Refusal, StartError
from diptych.model.declare.markers import KeyMark
from diptych.model.declare.roles import NOBODY, Viewer
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.scalars import ID, INTEGER_ID, TEXT_ID
from diptych.model.view import View
from diptych.policy.values import Binder

_KEYS = (ID, INTEGER_ID, TEXT_ID)
"""Types whose parsers make None of what is no key."""
RowScript = Callable[[], Script[Any]]


class RowWriter(Protocol):
    def script(self, row: Any) -> RowScript:
        """The statements that write a row; raises a Refusal if its values are not valid."""

    def after(self) -> list[str]:
        """Statements for when the rows of a batch are written."""


class DirectWriter:
    """Inserts rows as they are."""

    def __init__(self, engine: Engine, resource: ResourceDef) -> None:
        self._engine = engine
        self._resource = resource
        self._stored = {name: field for name, field in resource.fields.items() if field.stored}
        self._known: dict[tuple[str, ...], tuple[Binder, Plan]] = {}
        self._gives_ids = False

    def script(self, row: Any) -> RowScript:
        if not isinstance(row, dict):
            raise _invalid([Fault(("row",), "expected an object of fields")])
        present = {name: value for name, value in row.items() if value is not None}
        faults = list(self._faults(row))
        if faults:
            raise _invalid(faults)
        if "id" not in present and self._resource.key is ID:
            present["id"] = str(uuid7())
        self._gives_ids |= "id" in present
        nulls = tuple(name for name, value in row.items() if value is None and name != "id")
        names = tuple(present)
        if names not in self._known:
            self._known[names] = self._prepare(names)
        binder, _ = self._known[names]
        values = [*binder(present), *[None] * len(nulls)]
        plan = insert_plan(self._resource, (*names, *nulls), self._engine.store.dialect)
        step = Step(plan.sql, plan.parameters(values, NOBODY, {}))
        return lambda: self._insert(step)

    def _faults(self, row: Mapping[str, Any]) -> Iterator[Fault]:
        for name, value in row.items():
            field = self._stored.get(name)
            if field is None:
                yield Fault(("row", name), f"{self._resource.name} has no stored field '{name}'")
            elif value is None and not field.nullable and name != "id":
                yield Fault(("row", name), "expected a value, and not null")
        for name, field in self._stored.items():
            if field.required and name not in row:
                yield Fault(("row", name), "expected a value")

    def _prepare(self, names: tuple[str, ...]) -> tuple[Binder, Plan]:
        slots = Slots()
        for name in names:
            field = self._stored[name]
            slots.take(field.scalar, RawValue(None, ("row", name)), constraints=_constraints(field))
        binder = Binder(slots.slots, slots.sources, self._engine.limits, Code.BAD_USER_INPUT)
        return binder, insert_plan(self._resource, names, self._engine.store.dialect)

    @staticmethod
    def _insert(step: Step) -> Script[None]:
        try:
            yield step
        except Violation as violation:
            refusal = refusal_of(violation.kind)
            if violation.kind == "reference":
                refusal = Refusal(Code.CONFLICT, "A reference leads to nothing.")
            faults = [Fault(("row", column), refusal.message.rstrip(".")) for column in violation.columns]
            raise Refusal(refusal.code, refusal.message, faults) from None

    def after(self) -> list[str]:
        makes = self._resource.managed and self._resource.key.python is int
        counted = self._gives_ids and makes and self._engine.store.dialect.lock
        return [catch_up(self._resource)] if counted else []


class AskWriter:
    """Creates rows, or upserts them, as a viewer would. What the server sets is left out if the viewer is trusted."""

    def __init__(
        self, engine: Engine, resource: ResourceDef, viewer: Viewer, view: View, key: str | None, *, trusted: bool
    ) -> None:
        self._engine = WriteEngine(engine)
        self._resource = resource
        self._viewer = viewer
        self._view = view
        self._upserts = key is not None
        self._target = Target(resource.name)
        self._query = read_query("" if key is None else f"by={key}", self._target)
        self._known: dict[object, PreparedWrite] = {}
        self._left_out = {name for name, field in resource.fields.items() if trusted and field.is_server_set}
        if key is not None and key not in resource.unique_keys:
            keys = ", ".join(resource.unique_keys) or "none"
            raise StartError(f"{resource.name} has no unique key named {key}; there are {keys}.")

    def script(self, row: Any) -> RowScript:
        if isinstance(row, dict) and self._left_out:
            row = {name: value for name, value in row.items() if name not in self._left_out}
        inputs = write_inputs(self._target, row, None)
        shape = frozenset((name, value is None) for name, value in row.items()) if isinstance(row, dict) else None
        prepared = self._known.get(shape)
        if prepared is None:
            verb: WriteVerb = "upsert" if self._upserts else "create"
            wish, _ = understand_write(verb, self._target, self._query, row, None, self._view, answer=False)
            prepared = self._known[shape] = self._engine.prepare(wish, inputs, self._view)
        (bound,) = self._engine.bind([WriteOp(prepared, inputs)], self._viewer)
        dialect = self._engine.engine.store.dialect
        return lambda: locked_steps(bound, dialect)

    def after(self) -> list[str]:
        return []


def _constraints(field: FieldDef) -> tuple[object, ...]:
    return (*field.constraints, KeyMark()) if field.scalar in _KEYS else field.constraints


def _invalid(faults: list[Fault]) -> Refusal:
    return Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)
