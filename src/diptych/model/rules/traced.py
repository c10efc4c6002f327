"""The proxies on which rules and computed fields run: values, rows and the viewer, whose operators build expressions.

Python cannot overload `and or not in is`, and a rule that is decided while tracing would be a security hole. So a
Traced value has no truth value, and plain booleans are rejected as operands and results.
"""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from diptych.model.declare.declared import Now
from diptych.model.declare.roles import Role
from diptych.model.operators import Op
from diptych.model.rules.expr import (
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    HasRole,
    Moment,
    Part,
    Shift,
    Slice,
    Span,
    ViewerId,
    ViewerValue,
    and_,
    is_condition,
    or_,
)
from diptych.model.rules.expr import not_ as complement
from diptych.model.rules.paths import shorten
from diptych.model.rules.source_check import Untraceable
from diptych.model.scalar_values import as_json
from diptych.model.scalars import BOOLEAN, DATE, DATETIME, DURATION, ID, IDS, STRING, Scalar

_MOST = 2**31 - 1
_FAR = dt.timedelta(days=365_250)
"""The largest constant that is added to a moment: both databases can compute with dates that far outside of the years
1 to 9999."""
_DECIDED = "{!r} was decided in Python before SQL saw the row; use is_null(), one_of(), &, |"


class Traced:
    """The proxy of a value in the database."""

    __slots__ = ("expr", "scalar")
    __hash__ = None  # type: ignore[assignment]  # no hash, since `==` is traced

    def __init__(self, expr: Expr, scalar: Scalar) -> None:
        self.expr = expr
        self.scalar = scalar

    def __bool__(self) -> bool:
        raise Untraceable("a traced value has no truth in Python; write & | not_() instead of and, or, not")

    def __eq__(self, other: object) -> Traced:  # type: ignore[override]  # an expression, and no bool
        return self._compare("eq", other)

    def __ne__(self, other: object) -> Traced:  # type: ignore[override]  # an expression, and no bool
        return Traced(complement(self._compare("eq", other).expr), BOOLEAN)

    def __lt__(self, other: object) -> Traced:
        return self._compare("lt", other)

    def __le__(self, other: object) -> Traced:
        return self._compare("lte", other)

    def __gt__(self, other: object) -> Traced:
        return self._compare("gt", other)

    def __ge__(self, other: object) -> Traced:
        return self._compare("gte", other)

    def __and__(self, other: object) -> Traced:
        return Traced(and_(condition(self), condition(other)), BOOLEAN)

    def __or__(self, other: object) -> Traced:
        return Traced(or_(condition(self), condition(other)), BOOLEAN)

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Traced:
        return Traced(complement(condition(self)), BOOLEAN)

    def __add__(self, other: object) -> Traced:
        if isinstance(other, dt.timedelta):
            return _shifted(self, other)
        return Traced(Concat((self._text(self), self._text(other))), STRING)

    def __sub__(self, other: object) -> Traced:
        return _shifted(self, -other) if isinstance(other, dt.timedelta) else _between(self, value(other, self.scalar))

    def __rsub__(self, other: object) -> Traced:
        return _between(value(other, self.scalar), self)

    def __radd__(self, other: object) -> Traced:
        if isinstance(other, dt.timedelta):
            return _shifted(self, other)
        own = self._text(self)
        return Traced(Concat((self._text(other), own)), STRING)

    def __getitem__(self, part: object) -> Traced:
        if not self.scalar.is_text or not isinstance(part, slice) or part.step is not None:
            raise Untraceable("only text can be cut, and only as text[a:b] or text[:b]")
        start: Any = 0 if part.start is None else part.start
        stop: Any = _MOST if part.stop is None else part.stop
        if not (isinstance(start, int) and isinstance(stop, int) and 0 <= start <= stop <= _MOST):
            raise Untraceable("the bounds of a cut are constants, zero or greater, in order")
        return Traced(Slice(self.expr, start, None if part.stop is None else stop - start), STRING)

    def __getattr__(self, name: str) -> Any:
        for member in (self.scalar.members or {}).values():
            if member.attr == name:
                return Traced(Part(self.expr, member.name, member.scalar), member.scalar)
        raise Untraceable(f"'.{name}' of a {self.scalar.name} cannot be traced to SQL")

    def __len__(self) -> int:
        raise Untraceable("len() cannot be traced to SQL")

    def __iter__(self) -> Any:
        raise Untraceable("a traced value cannot be looped over")

    def __contains__(self, item: object) -> bool:
        raise Untraceable("'in' cannot be traced to SQL; write contains(text, part)")

    def __str__(self) -> str:
        raise Untraceable("str() cannot be traced to SQL; join text by +")

    def __format__(self, spec: str) -> str:
        raise Untraceable("formatting cannot be traced to SQL; join text by +")

    def _compare(self, op: Op, other: object) -> Traced:
        if op not in self.scalar.ops:
            raise Untraceable(f"values of type {self.scalar.name} cannot be compared so")
        right = value(other, self.scalar)
        if not _comparable(self, right):
            raise Untraceable(f"{self.scalar.name} and {right.scalar.name} cannot be compared")
        if is_condition(self.expr) or is_condition(right.expr):
            raise Untraceable("two conditions cannot be compared; write (a & b) | (not_(a) & not_(b))")
        return Traced(Compare(op, self.expr, right.expr), BOOLEAN)

    @staticmethod
    def _text(part: object) -> Expr:
        traced = value(part, STRING)
        if not traced.scalar.is_text:
            raise Untraceable("only text can be joined by +; other arithmetic cannot be traced")
        return traced.expr


def _shifted(of: Traced, delta: dt.timedelta) -> Traced:
    """A moment or a day, so much later."""
    if of.scalar not in (DATE, DATETIME):
        raise Untraceable(f"a timedelta cannot be added to a value of type {of.scalar.name}")
    if of.scalar is DATE and delta % dt.timedelta(days=1):
        raise Untraceable("only whole days can be added to a date")
    total = delta + of.expr.offset if isinstance(of.expr, Moment) else delta
    if abs(total) > _FAR:
        raise Untraceable("at most 1,000 years can be added or subtracted")
    return Traced(replace(of.expr, offset=total) if isinstance(of.expr, Moment) else Shift(of.expr, delta), of.scalar)


def _between(left: Traced, right: Traced) -> Traced:
    """How much later is one than the other?"""
    if left.scalar is not right.scalar or left.scalar not in (DATE, DATETIME):
        raise Untraceable(f"{right.scalar.name} cannot be subtracted from {left.scalar.name}")
    return Traced(Span(left.expr, right.expr), DURATION)


def _comparable(one: Traced, other: Traced) -> bool:
    """Can the values be compared? The viewer's id with ids of both types, others with their own type only."""
    with_viewer_id = isinstance(one.expr, ViewerId) or isinstance(other.expr, ViewerId)
    return one.scalar is other.scalar or (with_viewer_id and one.scalar in IDS and other.scalar in IDS)


def value(of: object, scalar: Scalar) -> Traced:
    """A traced value, or a constant converted to the type."""
    if isinstance(of, Traced):
        return of
    if isinstance(of, Now):
        kind = DATETIME if of.kind == "now" else DATE
        return _shifted(Traced(Moment(kind), kind), of.offset)
    if isinstance(of, TracedRow):
        raise Untraceable("a row cannot be compared; compare its id: self.author.id == viewer.id")
    if isinstance(of, TracedRows | TracedValues):
        of.refuse()
    if of is None:
        raise Untraceable("a comparison with None is never true; write is_null(x)")
    if isinstance(of, bool):
        raise Untraceable(_DECIDED.format(of))
    if scalar.is_json or (isinstance(of, enum.Enum) and scalar.choices and not isinstance(of, scalar.python)):
        raise Untraceable(f"{of!r} is not valid here: expected a value of type {scalar.name}")
    try:
        parsed = scalar.parse(as_json(of))
    except ValueError as error:
        raise Untraceable(f"{of!r} is not valid here: {error}") from None
    if parsed is None:
        raise Untraceable(f"{of!r} is not valid here: expected an id")
    return Traced(Const(parsed, scalar), scalar)


def is_in(of: Traced, values: TracedValues) -> Expr:
    """Is the value one of the viewer's?"""
    one = Traced(values.expr, values.expr.scalar)
    if "in" not in of.scalar.ops or not _comparable(of, one) or is_condition(of.expr):
        raise Untraceable(f"{of.scalar.name} and {one.scalar.name} cannot be compared")
    return Compare("in", of.expr, values.expr)


def condition(of: object) -> Expr:
    """The expression of a traced condition. Raises Untraceable for anything else."""
    if of is None:
        raise Untraceable("it gives nothing; write return before the condition")
    if isinstance(of, TracedRows | TracedValues):
        of.refuse()
    if not isinstance(of, Traced):
        raise Untraceable(_DECIDED.format(of))
    if of.scalar is not BOOLEAN:
        raise Untraceable(f"a condition is wanted, and this is of type {of.scalar.name}; compare it")
    return of.expr


class TraceLookup(Protocol):
    """What tracing looks up: the model while it is being built."""

    def step(self, resource: str, attribute: str) -> TracedAttribute: ...

    def note(self, role: object) -> None: ...

    def viewer_value(self, name: str) -> ViewerValue | None: ...


class TracedAttribute(Struct, frozen=True):
    """What an attribute of a row is: a value of a type, a row of another resource, or many."""

    name: str
    scalar: Scalar | None = None
    resource: str = ""
    many: bool = False


class TracedRow:
    """The proxy of a row: its attributes are traced values and proxies of related rows."""

    __slots__ = ("_known", "_path", "_resource")
    __hash__ = None  # type: ignore[assignment]  # no hash, since `==` is traced

    def __init__(self, known: TraceLookup, resource: str, path: tuple[str, ...] = ()) -> None:
        self._known = known
        self._resource = resource
        self._path = path

    def __getattr__(self, name: str) -> Traced | TracedRow | TracedRows:
        step = self._known.step(self._resource, name)
        path = (*self._path, step.name)
        if step.scalar is not None:
            return Traced(Col(shorten(path)), step.scalar)
        return (TracedRows if step.many else TracedRow)(self._known, step.resource, path)

    def __bool__(self) -> bool:
        raise Untraceable("a row has no truth in Python; write is_null(self.author.id)")

    def __eq__(self, other: object) -> bool:
        raise Untraceable("a row cannot be compared; compare its id: self.author.id == viewer.id")


class _Refused:
    """A proxy on which every operation is rejected."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # no hash, since `==` is traced
    hint = ""

    def refuse(self, *_: object) -> NoReturn:
        raise Untraceable(self.hint)

    __bool__ = __eq__ = __ne__ = __iter__ = __len__ = __contains__ = __getitem__ = __and__ = __or__ = refuse
    __rand__ = __ror__ = __lt__ = __le__ = __gt__ = __ge__ = __invert__ = __add__ = __radd__ = __str__ = refuse


class TracedRows(_Refused):
    """The proxy of the rows of a to-many relation."""

    __slots__ = ("_known", "_path", "_resource")
    hint = "it leads to many rows; write some(self.members, lambda member: …), every(…) or none(…)"

    def __init__(self, known: TraceLookup, resource: str, path: tuple[str, ...]) -> None:
        self._known = known
        self._resource = resource
        self._path = path

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()


class TracedValues(_Refused):
    """The proxy of a set of values of the viewer."""

    __slots__ = ("expr",)
    hint = "a viewer has many of these; write one_of(self.team.id, viewer.teams)"

    def __init__(self, expr: ViewerValue) -> None:
        self.expr = expr


def path_of(row: TracedRow) -> tuple[str, ...]:
    """The path of to-one relations to the row."""
    return row._path


class TracedViewer:
    __slots__ = ("_known",)
    id = Traced(ViewerId(), ID)

    def __init__(self, known: TraceLookup) -> None:
        self._known = known

    def has(self, role: object) -> Traced:
        if not isinstance(role, Role):
            raise Untraceable("viewer.has() takes a Role")
        self._known.note(role)
        return Traced(HasRole(role.name), BOOLEAN)

    def __getattr__(self, name: str) -> Traced | TracedValues:
        value = self._known.viewer_value(name)
        if value is None:
            own = f"declare it: class Member(Viewer): {name}: …, and Model(…, viewer=Member)"
            raise Untraceable(f"a viewer has `id` and `has(role)`, and no '{name}'; {own}")
        return TracedValues(value) if value.many else Traced(value, value.scalar)
