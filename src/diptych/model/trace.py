"""Rules and computed fields are ordinary Python that runs once, on stand-ins, and leaves an expression behind.

    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id          →  Compare("eq", Col(("authorId",)), ViewerId())

`self` is a Row: a field of it is a Traced value, a to-one relation another Row. Python cannot overload
`and or not in is`, and a rule that Python decides before SQL sees it opens a door. So there are two nets: a
Traced value has no truth, and raw booleans are refused as operands and results; and `scan` reads the source
of the function and refuses the words that cannot be traced.
"""

from __future__ import annotations

import ast
import enum
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from diptych.model.expr import (
    Choose,
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    HasRole,
    IsNull,
    May,
    Op,
    Slice,
    ViewerId,
    and_,
    is_condition,
    or_,
    rewrite,
)
from diptych.model.expr import not_ as complement
from diptych.model.roles import Role
from diptych.model.scalars import BOOLEAN, ID, INTEGER_ID, STRING, Scalar


class Untraceable(TypeError):
    """A rule or a computed field that cannot become SQL; the message says how to write it."""


_WORDS: dict[type[ast.AST], str] = {
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Not: "not", ast.And: "and",
    ast.Or: "or", ast.IfExp: "if", ast.If: "if", ast.While: "while", ast.For: "for", ast.comprehension: "for",
    ast.JoinedStr: "an f-string", ast.Try: "try", ast.NamedExpr: ":=", ast.Match: "match", ast.Assert: "assert",
    ast.With: "with", ast.Await: "await", ast.Lambda: "lambda",
}  # fmt: skip
_INSTEAD = {
    "is": "is_null(x)", "is not": "not_(is_null(x))", "in": "one_of(x, …)", "not in": "not_(one_of(x, …))", "not": "not_(x)",
    "and": "&", "or": "|", "if": "either(condition, a, b)",
}  # fmt: skip


def scan(function: Callable[..., Any]) -> None:
    """The net by source: refuse the words of Python that decide before SQL sees the row."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        raise Untraceable("its source cannot be read, so it cannot be checked") from None
    for node in ast.walk(tree):
        word = _WORDS.get(type(node))
        if word:
            instead = f"; write {_INSTEAD[word]}" if word in _INSTEAD else ""
            raise Untraceable(f"'{word}' cannot be traced to SQL{instead}")
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            raise Untraceable("a chained comparison cannot be traced to SQL; write (a < b) & (b < c)")


class Traced:
    """A value that the database will know."""

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
        return Traced(Concat((self._text(other), self._text(self))), STRING)

    def __getitem__(self, part: object) -> Traced:
        bounds = (part.start or 0, part.stop) if isinstance(part, slice) and part.step is None else None
        if self.scalar is not STRING or bounds is None:
            raise Untraceable("only text can be cut, and only as text[a:b] or text[:b]")
        start, stop = bounds
        if not isinstance(start, int) or start < 0 or not (stop is None or (isinstance(stop, int) and stop >= start)):
            raise Untraceable("the bounds of a cut are constants, zero or greater, in order")
        return Traced(Slice(self.expr, start, None if stop is None else stop - start), STRING)

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
        right = value(other, self.scalar)
        if not _comparable(self.scalar, right.scalar):
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


def _comparable(one: Scalar, other: Scalar) -> bool:
    ids = (ID, INTEGER_ID)
    return one is other or (one in ids and other in ids)


def value(of: object, scalar: Scalar) -> Traced:
    """A traced value, or a constant of the given type."""
    if isinstance(of, Traced):
        return of
    if isinstance(of, Row):
        raise Untraceable("a row cannot be compared; compare its id: self.author.id == viewer.id")
    if of is None:
        raise Untraceable("a comparison with None is never true; write is_null(x)")
    if isinstance(of, bool) and scalar is not BOOLEAN:
        raise Untraceable(f"{of!r} was decided in Python before SQL saw the row; use is_null(), one_of(), &, |")
    if isinstance(of, enum.Enum):
        of = of.value
    try:
        parsed = scalar.parse(str(of) if isinstance(of, Decimal) else of)
    except ValueError as error:
        raise Untraceable(f"{of!r} cannot stand here: {error}") from None
    return Traced(Const(parsed, scalar), scalar)


def condition(of: object) -> Expr:
    """Something that is true or false of the row."""
    if not isinstance(of, Traced):
        raise Untraceable(f"{of!r} was decided in Python before SQL saw the row; use is_null(), one_of(), &, |")
    if of.scalar is not BOOLEAN:
        raise Untraceable(f"a condition is wanted here, and this is a {of.scalar.name}; compare it with something")
    return of.expr


class Known(Protocol):
    """What a Row must be able to look up: the model while it is being built."""

    def step(self, resource: str, attribute: str) -> Step: ...


@dataclass(frozen=True, slots=True)
class Step:
    """Where an attribute of a row leads: to a value (`expr` over the row, with its type) or to another row."""

    name: str
    expr: Expr | None = None
    scalar: Scalar | None = None
    resource: str = ""


class Row:
    """Stands in for a row: every attribute is a value of it, a to-one relation opens the next row."""

    def __init__(self, known: Known, resource: str, path: tuple[str, ...] = ()) -> None:
        self._known = known
        self._resource = resource
        self._path = path

    def __getattr__(self, name: str) -> Traced | Row:
        step = self._known.step(self._resource, name)
        if step.expr is not None and step.scalar is not None:
            return Traced(rebase(step.expr, self._path), step.scalar)
        return Row(self._known, step.resource, (*self._path, step.name))

    def __bool__(self) -> bool:
        raise Untraceable("a row has no truth in Python; write is_null(self.author.id)")

    def __eq__(self, other: object) -> bool:
        raise Untraceable("a row cannot be compared; compare its id: self.author.id == viewer.id")

    __hash__ = None  # type: ignore[assignment]


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

    id = Traced(ViewerId(), ID)

    def has(self, role: object) -> Traced:
        if not isinstance(role, Role):
            raise Untraceable("viewer.has() takes a Role")
        return Traced(HasRole(role.name), BOOLEAN)

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"a viewer has `id` and `has(role)`, and no '{name}'")


def is_null(of: object) -> bool:
    """Has the field no value?"""
    if not isinstance(of, Traced):
        raise Untraceable("is_null() takes a field")
    return Traced(IsNull(of.expr), BOOLEAN)  # type: ignore[return-value]


def not_(of: bool) -> bool:
    """The opposite of a condition."""
    return Traced(complement(condition(of)), BOOLEAN)  # type: ignore[return-value]


def one_of(of: object, *choices: object) -> bool:
    """Is the field one of these values?"""
    if not isinstance(of, Traced):
        raise Untraceable("one_of() takes a field first, then the values")
    return Traced(or_(*(condition(of == choice) for choice in choices)), BOOLEAN)  # type: ignore[return-value]


def contains(of: str | None, part: str) -> bool:
    """Does the text hold the other text?"""
    if not isinstance(of, Traced) or of.scalar is not STRING:
        raise Untraceable("contains() takes a text field first, then the text to find")
    return Traced(Compare("contains", of.expr, value(part, STRING).expr), BOOLEAN)


def either(when: bool, then: Any, other: Any) -> Any:
    """`then` where the condition holds, else `other`: what `a if c else b` would say."""
    first = then if isinstance(then, Traced) else value(then, other.scalar if isinstance(other, Traced) else STRING)
    second = value(other, first.scalar)
    if first.scalar is not second.scalar:
        raise Untraceable("both sides of either() need one type")
    return Traced(Choose(condition(when), first.expr, second.expr), first.scalar)


def may_read(row: object) -> bool:
    """May the viewer read that row? `return may_read(self.post)`: whoever may read the post."""
    if not isinstance(row, Row) or not row._path:
        raise Untraceable("may_read() takes a to-one relation, such as may_read(self.post)")
    return Traced(May(row._path), BOOLEAN)  # type: ignore[return-value]


def trace_rule(known: Known, resource: str, function: Callable[..., Any]) -> Expr:
    """Run a rule once on stand-ins; what comes back is the condition under which it allows."""
    scan(function)
    return condition(function(Row(known, resource), Asker()))


def trace_value(known: Known, resource: str, function: Callable[..., Any], scalar: Scalar) -> Expr:
    """Run a computed field once on a stand-in; what comes back is its value as an expression."""
    scan(function)
    result = value(function(Row(known, resource)), scalar)
    if result.scalar is not scalar:
        raise Untraceable(f"it gives {result.scalar.name} and is declared as {scalar.name}")
    return result.expr
