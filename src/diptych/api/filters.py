"""Builds filters, for both styles: the tree of `where` and a full-text search become expressions over the rows.

    {title: {contains: "a"}, author: {name: {eq: "Ada"}}}    →    and_(Compare("contains", …), Has("author", …))

Names are resolved through the View of the role, values become slots, and faults are collected.
"""

from __future__ import annotations

from diptych.api.aggregates import NumberFilters
from diptych.ask.slots import RawValue, Slots
from diptych.model.declare.markers import MaxLen
from diptych.model.list_scalar import element_of
from diptych.model.operators import MAX_SEARCHED, OPERATORS, SEARCHES, op_of, takes_list
from diptych.model.resource_view import FieldView, ResourceView
from diptych.model.rules.expr import Col, Compare, Const, Expr, Has, IsNull, Matches, Part, and_, not_, or_
from diptych.model.scalars import BOOLEAN, Scalar
from diptych.model.searching import SEARCH
from diptych.model.view import View

_SEARCHED = (MaxLen(MAX_SEARCHED),)


class Filters(NumberFilters):
    """Builds the filters of an Ask."""

    view: View
    slots: Slots

    def where(self, raw: RawValue, resource: ResourceView) -> Expr:
        """The condition of a filter on the rows of a resource."""
        if not isinstance(raw.value, dict):
            self.fault(raw.path, "expected an object of fields")
            return and_()
        return and_(*(self._term(key, child, resource) for key, child in raw.entries()))

    def _term(self, key: str, raw: RawValue, resource: ResourceView) -> Expr:
        if raw.value is None:
            self.fault(raw.path, "null is no filter; leave it out, or use isNull")
        elif key in ("and", "or"):
            parts = (self.where(part, resource) for part in self._list(raw))
            return and_(*parts) if key == "and" else or_(*parts)
        elif key == "not":
            return not_(self.where(raw, resource))
        elif key in resource.searchable:
            return self.operators(raw, resource.fields[key])
        elif key in resource.ways:
            return self._related(key, raw, resource)
        else:
            self.fault(raw.path, f"{resource.resource.name} has no field '{key}'")
        return and_()

    def search(self, raw: RawValue | None, resource: ResourceView) -> Expr:
        """The condition of a full-text search; TRUE without one."""
        if raw is None or raw.value is None:
            return and_()
        if not resource.searched:
            self.fault(raw.path, f"{resource.resource.name} has no search")
            return and_()
        return Matches(tuple(Col((name,)) for name in resource.searched), self.slots.take(SEARCH, raw))

    def _list(self, raw: RawValue) -> list[RawValue]:
        if not isinstance(raw.value, list | dict):
            self.fault(raw.path, "expected a list of filters")
            return []
        return raw.items()

    def operators(self, raw: RawValue, field: FieldView) -> Expr:
        """The comparisons of one field: {gte: 1, lt: 9}."""
        scalar, column = field.field.scalar, Col((field.field.name,))
        if scalar.members is not None:
            return self._inside(raw, scalar, column)
        return self.comparisons(raw, column, scalar)

    def comparisons(self, raw: RawValue, column: Expr, scalar: Scalar) -> Expr:
        """The comparisons of one value: {gte: 1, lt: 9}."""
        if not isinstance(raw.value, dict) or not raw.value:
            self.fault(raw.path, f"expected an object of operators: {', '.join(scalar.ops)}")
            return and_()
        return and_(*(self._comparison(op, child, column, scalar) for op, child in raw.entries()))

    def _inside(self, raw: RawValue, scalar: Scalar, column: Expr) -> Expr:
        """Conditions on the members of a value object: {city: {eq: "Oslo"}}."""
        members = scalar.members or {}
        if not isinstance(raw.value, dict) or not raw.value:
            self.fault(raw.path, f"expected an object of {', '.join((*members, 'isNull'))}")
            return and_()
        terms: list[Expr] = []
        for name, child in raw.entries():
            if name in members:
                member = members[name].scalar
                terms.append(self.comparisons(child, Part(column, name, member), member))
            elif name == "isNull":
                terms.append(self._comparison(name, child, column, scalar))
            else:
                self.fault(child.path, f"{scalar.name} has no field '{name}'")
        return and_(*terms)

    def member(self, name: str, op: str, raw: RawValue, field: FieldView) -> Expr:
        """A comparison of one member of a value object."""
        member = (field.field.scalar.members or {}).get(name)
        if member is None:
            self.fault(raw.path, f"{field.field.name} has no field '{name}' to filter by")
            return and_()
        return self._comparison(op, raw, Part(Col((field.field.name,)), name, member.scalar), member.scalar)

    def operator(self, op: str, raw: RawValue, field: FieldView) -> Expr:
        return self._comparison(op, raw, Col((field.field.name,)), field.field.scalar)

    def _comparison(self, op: str, raw: RawValue, column: Expr, scalar: Scalar) -> Expr:
        if op not in scalar.ops:
            self.fault(raw.path, f"'{op}' is no operator here; there are {', '.join(scalar.ops)}")
        elif raw.value is None:
            self.fault(raw.path, "null equals nothing; use isNull")
        elif op == "isNull":
            return self._is_null(column, raw)
        elif op == "isEmpty":
            return self._is_empty(column, raw)
        else:
            compared = scalar if scalar.items is None else element_of(scalar.items)
            constraints = _SEARCHED if op in SEARCHES else ()
            value = self.slots.take(compared, raw, many=takes_list(op), constraints=constraints)
            comparison = Compare(op_of(op), column, value)
            return not_(comparison) if OPERATORS[op].negates else comparison
        return and_()

    def _is_empty(self, column: Expr, raw: RawValue) -> Expr:
        """Is a list empty? Null is neither empty nor not."""
        empty = Compare("isEmpty", column, Const(True, BOOLEAN))
        return empty if self._truth(raw) else and_(not_(empty), not_(IsNull(column)))

    def _truth(self, raw: RawValue) -> bool:
        wanted = {"true": True, "false": False}.get(raw.value) if raw.text else raw.value
        if not isinstance(wanted, bool):
            self.fault(raw.path, "expected true or false")
        return wanted is True

    def _is_null(self, column: Expr, raw: RawValue) -> Expr:
        return IsNull(column) if self._truth(raw) else not_(IsNull(column))

    def _related(self, key: str, raw: RawValue, resource: ResourceView) -> Expr:
        relation = resource.relations[key].relation
        target = self.view.resources[relation.target]
        if relation.kind == "one":
            return Has(key, self.where(raw, target))
        if not isinstance(raw.value, dict) or not raw.value:
            self.fault(raw.path, "expected an object with some, none, every, or numbers of them")
            return and_()
        return and_(*(self._quantified(key, word, child, target) for word, child in raw.entries()))

    def _quantified(self, relation: str, word: str, raw: RawValue, target: ResourceView) -> Expr:
        if word not in ("some", "none", "every"):
            return self.number_filter(word, raw, target, relation)
        inner = self.where(raw, target)
        if word == "every":
            return not_(Has(relation, not_(inner)))
        return Has(relation, inner) if word == "some" else not_(Has(relation, inner))
