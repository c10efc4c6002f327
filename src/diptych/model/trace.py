"""Rules and computed fields are ordinary Python that runs once, on stand-ins, and leaves an expression.

    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id          →  Compare("eq", Col(("authorId",)), ViewerId())

`self` is a Row: a field of it is a Traced value, a to-one relation another Row. Python cannot overload
`and or not in is`, and a rule that Python decides before SQL sees it opens a door. So there are two nets: a
Traced value has no truth, and raw booleans are refused as operands and results; and `model/scan.py` reads the
source of the function and refuses the words that cannot be traced.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from diptych.model.expr import (
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    HasRole,
    May,
    Op,
    Slice,
    ViewerId,
    and_,
    is_condition,
    leaves,
    or_,
    rewrite,
)
from diptych.model.expr import not_ as complement
from diptych.model.roles import Role
from diptych.model.scalars import BOOLEAN, ID, INTEGER_ID, JSON, STRING, Scalar, as_json
from diptych.model.scan import Untraceable, scan

_MOST = 2**31 - 1
_DECIDED = "{!r} was decided in Python before SQL saw the row; use is_null(), one_of(), &, |"


class Traced:
    """A value that the database will know."""

    __slots__ = ("expr", "scalar")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: Expr, scalar: Scalar) -> None:
        self.expr = expr
        self.scalar = scalar

    def __bool__(self) -> bool:
        raise Untraceable("a traced value has no truth in Python; write & | not_() instead of and, or, not")

    def __eq__(self, other: object) -> Traced:  # type: ignore[override]
        return self._compare("eq", other)

    def __ne__(self, other: object) -> Traced:  # type: ignore[override]
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
        return Traced(Concat((self._text(self), self._text(other))), STRING)

    def __radd__(self, other: object) -> Traced:
        own = self._text(self)
        return Traced(Concat((self._text(other), own)), STRING)

    def __getitem__(self, part: object) -> Traced:
        if self.scalar is not STRING or not isinstance(part, slice) or part.step is not None:
            raise Untraceable("only text can be cut, and only as text[a:b] or text[:b]")
        start: Any = 0 if part.start is None else part.start
        stop: Any = _MOST if part.stop is None else part.stop
        if not (isinstance(start, int) and isinstance(stop, int) and 0 <= start <= stop <= _MOST):
            raise Untraceable("the bounds of a cut are constants, zero or greater, in order")
        return Traced(Slice(self.expr, start, None if part.stop is None else stop - start), STRING)

    def __getattr__(self, name: str) -> Any:
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
        if traced.scalar is not STRING:
            raise Untraceable("only text can be joined by +; other arithmetic cannot be traced")
        return traced.expr


def _comparable(one: Traced, other: Traced) -> bool:
    """The id of a viewer is compared with ids of both types; all else with its own type only."""
    asker = isinstance(one.expr, ViewerId) or isinstance(other.expr, ViewerId)
    ids = (ID, INTEGER_ID)
    return one.scalar is other.scalar or (asker and one.scalar in ids and other.scalar in ids)


def value(of: object, scalar: Scalar) -> Traced:
    """A traced value, or a constant of the given type."""
    if isinstance(of, Traced):
        return of
    if isinstance(of, Row):
        raise Untraceable("a row cannot be compared; compare its id: self.author.id == viewer.id")
    if of is None:
        raise Untraceable("a comparison with None is never true; write is_null(x)")
    if isinstance(of, bool):
        raise Untraceable(_DECIDED.format(of))
    if scalar is JSON or (isinstance(of, enum.Enum) and scalar.choices and not isinstance(of, scalar.python)):
        raise Untraceable(f"{of!r} cannot stand here: expected a value of type {scalar.name}")
    try:
        parsed = scalar.parse(as_json(of))
    except ValueError as error:
        raise Untraceable(f"{of!r} cannot stand here: {error}") from None
    if parsed is None:
        raise Untraceable(f"{of!r} cannot stand here: expected an id")
    return Traced(Const(parsed, scalar), scalar)


def condition(of: object) -> Expr:
    """Something that is true or false of the row."""
    if of is None:
        raise Untraceable("it gives nothing; write return before the condition")
    if not isinstance(of, Traced):
        raise Untraceable(_DECIDED.format(of))
    if of.scalar is not BOOLEAN:
        raise Untraceable(f"a condition is wanted, and this is of type {of.scalar.name}; compare it")
    return of.expr


class Known(Protocol):
    """What a Row must be able to look up: the model while it is being built."""

    def step(self, resource: str, attribute: str) -> Step: ...

    def note(self, role: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """Where an attribute of a row leads: to a value of a type, or to a row of another resource."""

    name: str
    scalar: Scalar | None = None
    resource: str = ""


class Row:
    """Stands in for a row: every attribute is a value of it, a to-one relation opens the next row."""

    __slots__ = ("_known", "_path", "_resource")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, known: Known, resource: str, path: tuple[str, ...] = ()) -> None:
        self._known = known
        self._resource = resource
        self._path = path

    def __getattr__(self, name: str) -> Traced | Row:
        step = self._known.step(self._resource, name)
        path = (*self._path, step.name)
        if step.scalar is not None:
            return Traced(Col(_shorten(path)), step.scalar)
        return Row(self._known, step.resource, path)

    def __bool__(self) -> bool:
        raise Untraceable("a row has no truth in Python; write is_null(self.author.id)")

    def __eq__(self, other: object) -> bool:
        raise Untraceable("a row cannot be compared; compare its id: self.author.id == viewer.id")


def path_of(row: Row) -> tuple[str, ...]:
    """The to-one relations that lead to the row."""
    return row._path


def rebase(expr: Expr, path: tuple[str, ...]) -> Expr:
    """The same expression, seen from the row at whose `path` it holds."""

    def leaf(part: Expr) -> Expr | None:
        match part:
            case Col(steps):
                return Col(_shorten((*path, *steps)))
            case May(steps):
                return May((*path, *steps))
        return None

    return rewrite(expr, leaf) if path else expr


def _shorten(path: tuple[str, ...]) -> tuple[str, ...]:
    """The id of a related row stands in this row: author.id is authorId."""
    return (*path[:-2], path[-2] + "Id") if len(path) > 1 and path[-1] == "id" else path


class Asker:
    """Stands in for the viewer while a rule is traced."""

    __slots__ = ("_known",)
    id = Traced(ViewerId(), ID)

    def __init__(self, known: Known) -> None:
        self._known = known

    def has(self, role: object) -> Traced:
        if not isinstance(role, Role):
            raise Untraceable("viewer.has() takes a Role")
        self._known.note(role)
        return Traced(HasRole(role.name), BOOLEAN)

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"a viewer has `id` and `has(role)`, and no '{name}'")


def trace_rule(known: Known, resource: str, function: Callable[..., Any]) -> Expr:
    """Run a rule once on stand-ins; what comes back is the condition under which it allows."""
    scan(function)
    return condition(function(Row(known, resource), Asker(known)))


def trace_value(known: Known, resource: str, function: Callable[..., Any], scalar: Scalar) -> Expr:
    """Run a computed field once on a stand-in; what comes back is its value as an expression."""
    scan(function)
    given = function(Row(known, resource))
    if given is None or isinstance(given, Row):
        raise Untraceable("it gives no value; write return before a field, or a value made of fields")
    result = value(given, scalar)
    if result.scalar is not scalar:
        raise Untraceable(f"it gives {result.scalar.name} and is declared as {scalar.name}")
    if any(isinstance(part, May) for part in leaves(result.expr)):
        raise Untraceable("may_read() belongs in a rule, and a computed field is the same for everyone")
    return result.expr
