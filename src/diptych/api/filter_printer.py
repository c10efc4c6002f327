"""Prints what both styles share of an Ask, filters, sort keys, pages and values: the inverse of `ask_builder`.

Translating them again gives an equal Ask, with its slots in the same order. How a slot is printed is up to the style:
as a variable in a GraphQL document, as the value itself in a REST query.

    Not(Has("comments", Not(Compare("eq", Col(("body",)), Slot(0, STRING)))))
    {"comments": {"every": {"body": {"eq": …}}}}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from diptych.ask.nodes import Page, Read, Watch, Write
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.operators import NEGATIONS
from diptych.model.rules.expr import TRUE, And, Col, Compare, Expr, Has, IsNull, Matches, Not, Or, Part, Slot, and_
from diptych.model.scalars import BIGINT, INTEGER_ID, Scalar

Tree = dict[str, Any]


def wire_values(slots: Sequence[Slot], values: Sequence[Any]) -> list[Any]:
    """Canonical values as a client sends them."""
    return [_wire(slot.scalar, value) for slot, value in zip(slots, values, strict=True)]


def _wire(scalar: Scalar, value: Any) -> Any:
    if isinstance(value, list):
        return [_wire(scalar.items or scalar, item) for item in value]
    if isinstance(value, dict) and scalar.members is not None:
        return {name: _wire(scalar.members[name].scalar, part) for name, part in value.items()}
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value) if isinstance(value, int) and scalar in (BIGINT, INTEGER_ID) else value


class Wheres:
    """Prints filters; `leaf` prints a slot."""

    def __init__(self, model: Model, leaf: Callable[[Slot], Any]) -> None:
        self.model = model
        self.leaf = leaf

    def tree(self, expr: Expr, resource: ResourceDef) -> Tree:
        """The object of `where` that is translated to the expression."""
        match expr:
            case And(of):
                return _all([self.tree(part, resource) for part in of], resource)
            case Or(of):
                return {"or": [self.tree(part, resource) for part in of]}
            case Compare(op, Col((name,)), Slot() as slot):
                return {name: {op: self.leaf(slot)}}
            case Compare(op, Part(Col((name,)), member), Slot() as slot):
                return {name: {member: {op: self.leaf(slot)}}}
            case IsNull(Col((name,))):
                return {name: {"isNull": True}}
            case IsNull(Part(Col((name,)), member)):
                return {name: {member: {"isNull": True}}}
            case Has(relation, where):
                return self._has(relation, "some", where, resource)
            case Not(of):
                return self._not(of, resource)
        raise ValueError(f"a filter by {type(expr).__name__} is not printed")

    def _not(self, expr: Expr, resource: ResourceDef) -> Tree:
        match expr:
            case Compare(op, Col((name,)), Slot() as slot) if op in NEGATIONS:
                return {name: {NEGATIONS[op]: self.leaf(slot)}}
            case IsNull(Col((name,))):
                return {name: {"isNull": False}}
            case Compare(op, Part(Col((name,)), member), Slot() as slot) if op in NEGATIONS:
                return {name: {member: {NEGATIONS[op]: self.leaf(slot)}}}
            case IsNull(Part(Col((name,)), member)):
                return {name: {member: {"isNull": False}}}
            case Has(relation, Not(where)) if resource.relations[relation].kind != "one":
                return self._has(relation, "every", where, resource)
            case Has(relation, where) if resource.relations[relation].kind != "one":
                return self._has(relation, "none", where, resource)
        return {"not": self.tree(expr, resource)}

    def _has(self, name: str, word: str, where: Expr, resource: ResourceDef) -> Tree:
        relation = resource.relations[name]
        inner = self.tree(where, self.model.resources[relation.target])
        return {name: inner if relation.kind == "one" else {word: inner}}


def _all(trees: list[Tree], resource: ResourceDef) -> Tree:
    """One object in which all of them hold: their keys side by side, or under `and` where these collide."""
    merged: Tree = {}
    for tree in trees:
        ((key, value),) = tree.items()
        if key not in merged:
            merged[key] = value
        elif key == next(reversed(merged)) and _joins(key, resource) and merged[key].keys().isdisjoint(value):
            merged[key] = {**merged[key], **value}
        else:
            return {"and": trees}
    return merged


def _joins(key: str, resource: ResourceDef) -> bool:
    """Does the key hold operators, or some, none and every, which are joined by "and"?"""
    return key in resource.fields or (key in resource.relations and resource.relations[key].kind != "one")


def split_search(where: Expr) -> tuple[Expr, Slot | None]:
    """The filter of a list without its search, and the slot of what is searched for."""
    match where:
        case Matches(_, Slot() as slot):
            return TRUE, slot
        case And((*others, Matches(_, Slot() as slot))):
            return and_(*others), slot
    return where, None


def check_take(read: Read) -> None:
    """Refuse what is not printed."""
    if read.take in ("summary", "groups"):
        raise ValueError("numbers of rows are printed in the style in which they are asked for")
    if read.take == "each":
        raise ValueError("rows by a list of ids are GraphQL's alone")


def sort_names(read: Read) -> list[tuple[str, bool]]:
    """The keys of a sort as (field or member of a value object, descending)."""
    names = ((_sort_name(key.by), key.descending) for key in read.order)
    return [(name, descending) for name, descending in names if name]


def _sort_name(by: Expr) -> str:
    match by:
        case Col((name,)):
            return name
        case Part(Col((name,)), member):
            return f"{name}.{member}"
    return ""


def page_arguments(page: Page) -> dict[str, Slot]:
    """The arguments of a page, by name."""
    named = {
        "last" if page.backward else "first": page.size,
        "after": page.after,
        "before": page.before,
        "offset": page.offset,
    }
    return {name: slot for name, slot in named.items() if slot is not None}


def one_slot(read: Read) -> Slot:
    """The slot of the id by which a Read takes one row."""
    match read.where:
        case Compare("eq", Col(("id",)), Slot() as slot):
            return slot
    raise ValueError("one row is read by its id")


def watched_id(watch: Watch) -> tuple[Slot | None, Expr]:
    """The slot of the id of the one row that a Watch follows, if that is its first condition; and the other ones."""
    match watch.where:
        case Compare("eq", Col(("id",)), Slot() as slot):
            return slot, TRUE
        case And((Compare("eq", Col(("id",)), Slot() as slot), *others)):
            return slot, and_(*others)
    return None, watch.where


def row_values(write: Write, leaf: Callable[[Slot], Any]) -> Tree:
    """The values that a Write gives for its row, by name."""
    return {value.name: None if value.value is None else leaf(value.value) for value in write.values}
