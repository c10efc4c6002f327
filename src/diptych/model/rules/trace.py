"""Symbolic tracing: rules and computed fields are ordinary Python functions, run once on proxies to get an expression.

    def own(self, viewer: Viewer) -> bool:
        return self.author.id == viewer.id          →  Compare("eq", Col(("authorId",)), ViewerId())

`self` is a TracedRow (`traced`): its fields are Traced values, a to-one relation is another TracedRow, a to-many
relation TracedRows, for `some(self.members, lambda member: …)`. `source_check` parses the source of the function and
rejects syntax that cannot be traced.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import count
from types import FunctionType
from typing import Any

from msgspec.structs import replace

from diptych.model.rules.expr import TRUE, Col, Expr, Has, May, leaves, rewrite
from diptych.model.rules.expr import not_ as complement
from diptych.model.rules.paths import PathScope, exists_through
from diptych.model.rules.source_check import Untraceable, scan
from diptych.model.rules.traced import TracedRow, TracedRows, TracedViewer, TraceLookup, condition, value
from diptych.model.scalars import Scalar

_scopes = count()


def has(rows: object, where: Callable[[Any], Any] | None, *, opposite: bool = False) -> Expr:
    """Is there one of the rows that matches the condition, or, if `opposite`, its negation?"""
    if not isinstance(rows, TracedRows):
        raise Untraceable("some(), every() and none() take a to-many relation first, such as self.members")
    inner: Expr = TRUE
    if where is not None:
        if not isinstance(where, FunctionType):
            raise Untraceable("the condition is no plain function, so it cannot be checked; write a lambda")
        if where.__name__ != "<lambda>":  # a lambda is inside a function that is scanned
            scan(where)
        scope = PathScope(f"\0{next(_scopes)}")
        inner = _unscope(scope, condition(where(TracedRow(rows._known, rows._resource, (scope,)))))
        inner = complement(inner) if opposite else inner
    return exists_through(rows._path, inner)


def _unscope(scope: PathScope, expr: Expr) -> Expr:
    """Remove the scope from a condition on one of many rows, so that it is an expression over that row."""

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


def trace_rule(known: TraceLookup, resource: str, function: Callable[..., Any]) -> Expr:
    """Trace a rule: the condition under which it allows."""
    scan(function)
    _check_arguments(function, "self, viewer: Viewer")
    expr = condition(function(TracedRow(known, resource), TracedViewer(known)))
    starts = (
        part.path[:1] if isinstance(part, Col | May) else (part.relation,)
        for part in leaves(expr)
        if isinstance(part, Col | May | Has)
    )
    if any(isinstance(name, PathScope) for start in starts for name in start):
        raise Untraceable("one of many rows is asked about outside of its some(), every() or none()")
    return expr


def _check_arguments(function: Callable[..., Any], arguments: str) -> None:
    """Raise Untraceable if the function does not take these arguments."""
    try:
        inspect.signature(function).bind(*arguments.split(", "))
    except TypeError:
        raise Untraceable(f"its arguments must be ({arguments})") from None


def trace_check(known: TraceLookup, resource: str, function: Callable[..., Any]) -> Expr:
    """Trace a condition on the row alone: a check, or the rows of a partial key."""
    scan(function)
    _check_arguments(function, "self")
    return condition(function(TracedRow(known, resource)))


def trace_value(known: TraceLookup, resource: str, function: Callable[..., Any], scalar: Scalar) -> Expr:
    """Trace a computed field: its value as an expression."""
    scan(function)
    _check_arguments(function, "self")
    returned = function(TracedRow(known, resource))
    if returned is None or isinstance(returned, TracedRow | TracedRows):
        raise Untraceable("it gives no value; write return before a field, or a value made of fields")
    result = value(returned, scalar)
    if result.scalar is not scalar:
        raise Untraceable(f"it gives {result.scalar.name} and is declared as {scalar.name}")
    if any(isinstance(part, May) for part in leaves(result.expr)):
        raise Untraceable("may_read() belongs in a rule, and a computed field is the same for everyone")
    if any(isinstance(part, Has) for part in leaves(result.expr)):
        raise Untraceable("some(), every() and none() belong in a rule")
    return result.expr
