"""A rule about a row as it was, while rows that it looks at may be gone.

A row that is there leads to rows that are there: references see to that, and rules rely on it. A row of the past may
lead to one that was deleted since, and what a rule says of that one is unknown: neither it nor its opposite is true.
What is unknown allows nothing:

    Not(Col(("post", "secret")))     →     And((Not(Col(("post", "secret"))), Has("post", TRUE)))

The same holds for the many rows that led to a row which is gone itself: that there are none now says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from diptych.model.defs import ResourceDef
from diptych.model.expr import (
    FALSE,
    TRUE,
    And,
    Col,
    Compare,
    Const,
    Expr,
    Has,
    IsNull,
    Not,
    Or,
    Slot,
    ViewerId,
    ViewerValue,
    and_,
    leaves,
    not_,
    or_,
)


def sure(rule: Expr, resource: ResourceDef, *, there: bool) -> Expr:
    """The same rule where it is surely true of a row as it was. Is the row itself still `there`?"""
    return _Sure(resource, there).true(rule)


class _Sure:
    def __init__(self, resource: ResourceDef, there: bool) -> None:
        self.resource = resource
        self.there = there

    def true(self, expr: Expr) -> Expr:
        """Where it is true, and nothing is unknown that could make it so."""
        match expr:
            case And(of):
                return and_(*map(self.true, of))
            case Or(of):
                return or_(*map(self.true, of))
            case Not(of):
                return self.false(of)
            case Has():
                return expr  # whatever is found is there
            case Compare(_, left, right) if self._is_null_if_gone(left) and self._is_null_if_gone(right):
                return expr  # a comparison with null is false
            case Col() if self._is_null_if_gone(expr):
                return expr
        return and_(expr, self.known(expr))

    def false(self, expr: Expr) -> Expr:
        """Where it is false, and nothing is unknown that could make it true."""
        match expr:
            case And(of):
                return or_(*map(self.false, of))
            case Or(of):
                return and_(*map(self.false, of))
            case Not(of):
                return self.true(of)
        return and_(not_(expr), self.known(expr))

    def known(self, expr: Expr) -> Expr:
        """Where all that it looks at is there."""
        return and_(*map(self._is_there, dict.fromkeys(self._steps(expr))))

    def _is_null_if_gone(self, value: Expr) -> bool:
        if isinstance(value, Col):
            return len(value.path) > 1 or self.resource.fields[value.path[0]].computed is None
        return isinstance(value, Const | Slot | ViewerId | ViewerValue)

    def _steps(self, expr: Expr) -> Iterator[str]:
        """The relations through which it looks at other rows."""
        for part in leaves(expr):
            if isinstance(part, Has):
                yield part.relation
            elif isinstance(part, Col) and len(part.path) > 1:
                yield part.path[0]
            elif isinstance(part, Col):
                computed = self.resource.fields[part.path[0]].computed
                if computed is not None:
                    yield from self._steps(computed)

    def _is_there(self, step: str) -> Expr:
        relation = self.resource.relations[step]
        if relation.kind != "one":
            return TRUE if self.there else FALSE
        found = Has(step, TRUE)
        return or_(IsNull(Col((step + "Id",))), found) if relation.nullable else found
