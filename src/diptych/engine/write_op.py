"""One Write of a request: prepared (`PreparedWrite`), with its inputs (`WriteOp`), and with its values (`BoundWrite`).

`write_steps` runs its statements, `refusals` says why it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Write
from diptych.ask.python_fields import PythonFields
from diptych.compile.dialect import Dialect
from diptych.compile.plan import Plan
from diptych.compile.write import WritePlan
from diptych.db.script import Script, Step, Violation
from diptych.engine.read_plan import FINISH, Paged
from diptych.engine.references import resolved
from diptych.errors import Path
from diptych.model.declare.roles import Viewer
from diptych.model.view import ViewName
from diptych.policy.cost import Cost
from diptych.policy.deprecations import Uses
from diptych.policy.values import Binder


class PreparedWrite(Struct, frozen=True, eq=False):
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
    waits: bool = False
    """Are its late guards and its answer left to the end of the nested write that it is part of?"""
    composed: Composed | None = None
    """How it runs, if it is made of several changes."""
    uses: Uses | None = None
    """The deprecated parts of the API that it uses."""

    @property
    def size(self) -> int:
        more = self.composed.size if self.composed is not None else 0
        return more + self.plan.size + self.binder.size + FINISH * (self.finish is not None)

    def place_of(self, field: str) -> Path:
        """The path of a field's value in the request, sent or missing."""
        for assign in self.write.values:
            if assign.name == field and assign.value is not None:
                return self.binder.sources[assign.value.index].path
        return (*self.path, field)


class Composed(Protocol):
    """A Write that is made of several changes."""

    @property
    def size(self) -> int: ...

    def steps(self, bound: BoundWrite, dialect: Dialect) -> Script[WriteResult]: ...


class WriteOp(Struct, frozen=True, eq=False):
    """A Write of a request, with its inputs; `path` is its path in the response, `prefix` in the request."""

    prepared: PreparedWrite
    inputs: Mapping[str, Any]
    path: Path = ()
    prefix: Path = ()
    step: str = ""
    """The name by which later steps refer to its row."""
    more: int = 0
    """How many writes of the same nested write follow."""
    part: bool = False
    """Is it a part of a nested write that is not answered?"""

    @property
    def prepared_inputs(self) -> tuple[PreparedWrite, Mapping[str, Any]]:
        return self.prepared, self.inputs


class WriteResult(Struct, frozen=True, eq=False):
    """The result of a Write: the id of its row, the answer if one is selected, and its Python fields to compute."""

    id: Any
    answer: bytes | None
    finish: PythonFields | None = None
    created: bool = False


class BoundWrite(Struct, eq=False):
    """A WriteOp with its values."""

    op: WriteOp
    values: list[Any]
    keys: Mapping[int, bytes]
    viewer: Viewer
    refers: bool = False
    """Are there references to earlier steps among the values?"""
    alone: bool = False
    """Did it fail together with others, so that it has to run by itself to see why?"""
    conflicts: list[Violation] = field(default_factory=list)
    """The unique value that is taken, if there was one, for the next run of the script."""

    def part(self, prepared: PreparedWrite, id: Any) -> BoundWrite:
        """A change that this write is made of, of the row with this id."""
        values = list(self.values)
        values[prepared.write.id.index] = id
        return BoundWrite(replace(self.op, prepared=prepared), values, self.keys, self.viewer, conflicts=self.conflicts)

    def resolved(self, ids: Mapping[str, Any], rows: Sequence[Any] = ()) -> BoundWrite:
        """This write, with the ids of the rows of earlier steps."""
        if not self.refers:
            return self
        values = resolved(self.values, self.op.prepared.binder, ids, rows)
        return BoundWrite(self.op, values, self.keys, self.viewer, conflicts=self.conflicts)

    @property
    def id(self) -> Any:
        """The id of the row; a new row may have it from the database."""
        return self.values[self.op.prepared.write.id.index]

    @property
    def price(self) -> int:
        return self.op.prepared.cost.price(self.values)

    def step(self, plan: Plan, marked: bool = False) -> Step:
        makes = self.id if plan.batches else ""
        return Step(plan.sql, plan.parameters(self.values, self.viewer, self.keys), marked, (), makes)
