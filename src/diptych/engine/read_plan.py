"""A prepared read, as it is cached: its plan, the binder of its values, and its price.

PreparedRead  →  ReadPlan  →  Plan          a request shape: what it costs · a list of Asks · one statement
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Page
from diptych.ask.python_fields import PythonFields
from diptych.compile.plan import Plan
from diptych.model.declare.roles import NOBODY
from diptych.model.scalars import Scalar
from diptych.policy.cost import Cost, Price
from diptych.policy.deprecations import Uses
from diptych.policy.values import Binder

FINISH = 8 << 10
"""An estimate of the bytes of the decoder types of an answer with Python fields."""
_SIZES = 4
"""Page sizes of one shape of requests that get a plan of their own."""
Row = tuple[bytes | None, ...] | list[bytes | None]
ROW = (tuple, list)
"""The columns of a statement that has run."""


class Paged(Struct, frozen=True, eq=False):
    """A paginated list of an Ask: what its cursors are bound to, and the slots and types that they are made of."""

    page: Page
    binding: bytes
    where: tuple[int, ...]
    keys: tuple[Scalar, ...]


class ReadPlan(Struct, frozen=True, eq=False):
    """A compiled read with all that is needed to run it again."""

    plan: Plan
    pages: tuple[Paged, ...]
    finish: tuple[PythonFields | None, ...] | None = None
    """The Python fields of each answer; None if there are none in any."""
    max_age: int = 0
    """Seconds for which a shared cache may keep the answers; 0 means never."""
    audited: bool = False
    """Does it read versions of rows?"""
    whole: Callable[[], Plan] | None = None
    """Compiles a page as one text: it may fit into an answer where its parts, with the row beyond it, do not."""

    @property
    def size(self) -> int:
        return self.plan.size + sum(len(paged.binding) for paged in self.pages) + FINISH * (self.finish is not None)


class PlansBySize(Struct, frozen=True, eq=False):
    """Plans for the page sizes of requests, as constants: PostgreSQL keeps the plan of such a statement, and plans one
    whose LIMIT is bound anew for every run. The first few sizes of a shape get one."""

    slots: tuple[int, ...]
    compile: Callable[[Mapping[int, int]], ReadPlan]
    plans: dict[tuple[int, ...], ReadPlan] = field(default_factory=dict)

    def get(self, values: Sequence[Any], otherwise: ReadPlan) -> ReadPlan:
        sizes = tuple(map(values.__getitem__, self.slots))
        planned = self.plans.get(sizes)
        if planned is None:
            if len(self.plans) >= _SIZES:
                return otherwise
            planned = self.plans[sizes] = self.compile(dict(zip(self.slots, sizes, strict=True)))
        return planned


class PreparedRead(Struct, frozen=True, eq=False):
    """A prepared read: its plan and the binder of its values. `price` is None if it is known to be within the limit."""

    planned: ReadPlan
    price: Price | None
    binder: Binder
    cost: Cost
    """The cost in any case, for the cost header."""
    measures: RequestMeasures | None = None
    """The measures of the request, without viewer and price."""
    by_size: PlansBySize | None = None
    """Plans for its page sizes, if the store makes better ones when it knows them."""
    uses: Uses | None = None
    """The deprecated parts of the API that it uses."""
    fixed_price: int = 0
    """The price of every request of its shape, where `price` is None."""

    @property
    def max_age(self) -> int:
        """Seconds for which a shared cache may keep the answers; 0 means never."""
        return self.planned.max_age

    @property
    def size(self) -> int:
        return self.planned.size * (1 if self.by_size is None else 1 + _SIZES) + self.binder.size


def without_viewer(measures: RequestMeasures | None) -> RequestMeasures | None:
    """The measures to keep with a cached plan, which must not hold on to the first viewer."""
    return None if measures is None else measures.of(NOBODY)
