"""Rewrites a rule for a past version of a row: if a row it refers to was deleted since, it is unknown, so it denies.

The references of a current row point to rows that exist: foreign keys ensure that, and rules rely on it. A past version
of a row may refer to a row that was deleted since, and what a rule says of that one is unknown: neither the rule nor
its negation is true.

    Not(Col(("post", "secret")))     →     And((Not(Col(("post", "secret"))), Has("post", TRUE)))

The same holds for a to-many relation of a row that was deleted itself: that it is empty now says nothing. A row in the
trash is there, and so are its values; but what it had is deleted along with it, and so is as unknown.

    Not(Has("post", Has("locks")))   →     And((Not(Has("post", Has("locks"))), Has("post", deletedAt is null)))
"""

from __future__ import annotations

from collections.abc import Iterator

from diptych.model.defs import ResourceDef, Resources
from diptych.model.rules.expr import (
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


def certain(rule: Expr, resource: ResourceDef, resources: Resources, *, there: bool) -> Expr:
    """The condition under which the rule is certainly true of a past version. `there`: does the row still exist, and
    is it not deleted?"""
    return _Certain(resource, resources, there).true(rule)


class _Certain:
    def __init__(self, resource: ResourceDef, resources: Resources, there: bool) -> None:
        self.resource = resource
        self.resources = resources
        self.there = there

    def true(self, expr: Expr) -> Expr:
        """The condition under which the expression is certainly true."""
        match expr:
            case And(of):
                return and_(*map(self.true, of))
            case Or(of):
                return or_(*map(self.true, of))
            case Not(of):
                return self.false(of)
            case Has():
                return and_(expr, self.kept(expr))  # the rows that it finds exist
            case Compare(_, left, right) if self._is_null_if_gone(left) and self._is_null_if_gone(right):
                return expr  # a comparison with null is false
            case Col() if self._is_null_if_gone(expr):
                return expr
        return and_(expr, self.known(expr))

    def false(self, expr: Expr) -> Expr:
        """The condition under which the expression is certainly false."""
        match expr:
            case And(of):
                return or_(*map(self.false, of))
            case Or(of):
                return and_(*map(self.false, of))
            case Not(of):
                return self.true(of)
        return and_(not_(expr), self.known(expr))

    def known(self, expr: Expr) -> Expr:
        """The condition under which all rows that the expression refers to exist."""
        return and_(*map(self._exists, dict.fromkeys(self._steps(expr))), self.kept(expr))

    def kept(self, expr: Expr) -> Expr:
        """The condition under which the rows are not in the trash through which the expression looks at lists."""
        return and_(*map(self._present, dict.fromkeys(self._to_lists(expr))))

    def _is_null_if_gone(self, value: Expr) -> bool:
        if isinstance(value, Col):
            return len(value.path) > 1 or self.resource.fields[value.path[0]].computed is None
        return isinstance(value, Const | Slot | ViewerId | ViewerValue)

    def _steps(self, expr: Expr) -> Iterator[str]:
        """The relations through which the expression refers to other rows."""
        for part in leaves(expr):
            if isinstance(part, Has):
                yield part.relation
            elif isinstance(part, Col) and len(part.path) > 1:
                yield part.path[0]
            elif isinstance(part, Col):
                computed = self.resource.fields[part.path[0]].computed
                if computed is not None:
                    yield from self._steps(computed)

    def _exists(self, step: str, where: Expr = TRUE) -> Expr:
        relation = self.resource.relations[step]
        if relation.kind != "one":
            return TRUE if self.there else FALSE
        exists = Has(step, where)
        return or_(IsNull(Col((step + "Id",))), exists) if relation.nullable else exists

    def _present(self, step: str) -> Expr:
        return self._exists(step, self.resources[self.resource.relations[step].target].present)

    def _to_lists(self, expr: Expr) -> Iterator[str]:
        """The relations through which the expression looks at lists of a row that may be in the trash."""
        for part in leaves(expr):
            if isinstance(part, Has) and self._looks_at_list(part, self.resource):
                relation = self.resource.relations[part.relation]
                if relation.kind == "one" and self.resources[relation.target].trash:
                    yield relation.name

    def _looks_at_list(self, expr: Expr, resource: ResourceDef) -> bool:
        """Does a condition on a row look at a to-many relation, of this row or of one that it refers to?"""
        if not isinstance(expr, Has):
            return False
        relation = resource.relations[expr.relation]
        target = self.resources[relation.target]
        return relation.kind != "one" or any(self._looks_at_list(part, target) for part in leaves(expr.where))
