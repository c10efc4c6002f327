"""Rules and computed fields are ordinary Python that runs once, on stand-ins, and leaves an expression.

    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id          →  Compare("eq", Col(("authorId",)), ViewerId())

`self` is a Row: a field of it is a Traced value, a to-one relation another Row, a to-many relation Many, of which
`some(self.members, lambda member: …)` asks. Python cannot overload
`and or not in is`, and a rule that Python decides before SQL sees it opens a door. So there are two nets: a
Traced value has no truth, and raw booleans are refused as operands and results; and `model/scan.py` reads the
source of the function and refuses the words that cannot be traced.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from types import FunctionType
from typing import Any, NoReturn, Protocol

from diptych.model.expr import (
    TRUE,
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    Has,
    HasRole,
    May,
    Op,
    Slice,
    ViewerId,
    ViewerValue,
    and_,
    is_condition,
    leaves,
    or_,
    rewrite,
)
from diptych.model.expr import not_ as complement
from diptych.model.paths import Scope, shorten, through
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
    if isinstance(of, Many | Values):
        of.refuse()
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


def is_in(of: Traced, values: Values) -> Expr:
    """Is the value one of those of the viewer?"""
    one = Traced(values.expr, values.expr.scalar)
    if "in" not in of.scalar.ops or not _comparable(of, one) or is_condition(of.expr):
        raise Untraceable(f"{of.scalar.name} and {one.scalar.name} cannot be compared")
    return Compare("in", of.expr, values.expr)


def condition(of: object) -> Expr:
    """Something that is true or false of the row."""
    if of is None:
        raise Untraceable("it gives nothing; write return before the condition")
    if isinstance(of, Many | Values):
        of.refuse()
    if not isinstance(of, Traced):
        raise Untraceable(_DECIDED.format(of))
    if of.scalar is not BOOLEAN:
        raise Untraceable(f"a condition is wanted, and this is of type {of.scalar.name}; compare it")
    return of.expr


class Known(Protocol):
    """What a Row must be able to look up: the model while it is being built."""

    def step(self, resource: str, attribute: str) -> Step: ...

    def note(self, role: object) -> None: ...

    def viewer_value(self, name: str) -> ViewerValue | None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """Where an attribute of a row leads: to a value of a type, or to a row of another resource, or to many."""

    name: str
    scalar: Scalar | None = None
    resource: str = ""
    many: bool = False


class Row:
    """Stands in for a row: every attribute is a value of it, a to-one relation opens the next row."""

    __slots__ = ("_known", "_path", "_resource")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, known: Known, resource: str, path: tuple[str, ...] = ()) -> None:
        self._known = known
        self._resource = resource
        self._path = path

    def __getattr__(self, name: str) -> Traced | Row | Many:
        step = self._known.step(self._resource, name)
        path = (*self._path, step.name)
        if step.scalar is not None:
            return Traced(Col(shorten(path)), step.scalar)
        return (Many if step.many else Row)(self._known, step.resource, path)

    def __bool__(self) -> bool:
        raise Untraceable("a row has no truth in Python; write is_null(self.author.id)")

    def __eq__(self, other: object) -> bool:
        raise Untraceable("a row cannot be compared; compare its id: self.author.id == viewer.id")


class _Refused:
    """Something of which nothing can be asked by itself."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    told = ""

    def refuse(self, *_: object) -> NoReturn:
        raise Untraceable(self.told)

    __bool__ = __eq__ = __ne__ = __iter__ = __len__ = __contains__ = __getitem__ = __and__ = __or__ = refuse
    __rand__ = __ror__ = __lt__ = __le__ = __gt__ = __ge__ = __invert__ = __add__ = __radd__ = __str__ = refuse


class Many(_Refused):
    """Stands in for the rows of a to-many relation."""

    __slots__ = ("_known", "_path", "_resource")
    told = "it leads to many rows; write some(self.members, lambda member: …), every(…) or none(…)"

    def __init__(self, known: Known, resource: str, path: tuple[str, ...]) -> None:
        self._known = known
        self._resource = resource
        self._path = path

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()


class Values(_Refused):
    """Stands in for many values of a viewer."""

    __slots__ = ("expr",)
    told = "a viewer has many of these; write one_of(self.team.id, viewer.teams)"

    def __init__(self, expr: ViewerValue) -> None:
        self.expr = expr


_scopes = count()


def has(rows: object, where: Callable[[Any], Any] | None, *, opposite: bool = False) -> Expr:
    """Is there one of the rows for which the condition holds, or its opposite?"""
    if not isinstance(rows, Many):
        raise Untraceable("some(), every() and none() take a to-many relation first, such as self.members")
    inner: Expr = TRUE
    if where is not None:
        if not isinstance(where, FunctionType):
            raise Untraceable("the condition is no plain function, so it cannot be checked; write a lambda")
        if where.__name__ != "<lambda>":  # a lambda stands in a function that is scanned
            scan(where)
        scope = Scope(f"\0{next(_scopes)}")
        inner = _leave(scope, condition(where(Row(rows._known, rows._resource, (scope,)))))
        inner = complement(inner) if opposite else inner
    return through(rows._path, inner)


def _leave(scope: Scope, expr: Expr) -> Expr:
    """A condition on one of many rows, as that row alone sees it."""

    def leaf(part: Expr) -> Expr | None:
        match part:
            case Col(path) | May(path):
                if path[0] is not scope:
                    raise Untraceable(_OTHER)
                return replace(part, path=path[1:])
            case Has(relation, where):
                if relation is not scope:
                    raise Untraceable(_OTHER)
                return where
        return None

    return rewrite(expr, leaf)


_OTHER = "the condition on one of many rows asks about another row; it can ask about the row that it is given"


def path_of(row: Row) -> tuple[str, ...]:
    """The to-one relations that lead to the row."""
    return row._path


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

    def __getattr__(self, name: str) -> Traced | Values:
        found = self._known.viewer_value(name)
        if found is None:
            own = f"declare it: class Member(Viewer): {name}: …, and Model(…, viewer=Member)"
            raise Untraceable(f"a viewer has `id` and `has(role)`, and no '{name}'; {own}")
        return Values(found) if found.many else Traced(found, found.scalar)


def trace_rule(known: Known, resource: str, function: Callable[..., Any]) -> Expr:
    """Run a rule once on stand-ins; what comes back is the condition under which it allows."""
    scan(function)
    expr = condition(function(Row(known, resource), Asker(known)))
    starts = (part.path[:1] if isinstance(part, Col | May) else (part.relation,) for part in leaves(expr)
              if isinstance(part, Col | May | Has))  # fmt: skip
    if any(isinstance(name, Scope) for start in starts for name in start):
        raise Untraceable("one of many rows is asked about outside of its some(), every() or none()")
    return expr


def trace_value(known: Known, resource: str, function: Callable[..., Any], scalar: Scalar) -> Expr:
    """Run a computed field once on a stand-in; what comes back is its value as an expression."""
    scan(function)
    given = function(Row(known, resource))
    if given is None or isinstance(given, Row | Many):
        raise Untraceable("it gives no value; write return before a field, or a value made of fields")
    result = value(given, scalar)
    if result.scalar is not scalar:
        raise Untraceable(f"it gives {result.scalar.name} and is declared as {scalar.name}")
    if any(isinstance(part, May) for part in leaves(result.expr)):
        raise Untraceable("may_read() belongs in a rule, and a computed field is the same for everyone")
    if any(isinstance(part, Has) for part in leaves(result.expr)):
        raise Untraceable("some(), every() and none() belong in a rule")
    return result.expr
