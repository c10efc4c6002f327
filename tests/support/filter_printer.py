"""A Draft, backwards: the common parts of an Ask as the trees and arguments that a client would write for it.

What a Draft draws comes back equal: Wheres give a tree of `where` from which the same expression is drawn,
with its slots in the same order. What stands in the place of a slot is up to the style: a variable in a
GraphQL document, the value itself in a REST query.

    Not(Has("comments", Not(Compare("eq", Col(("body",)), Slot(0, STRING)))))
    {"comments": {"every": {"body": {"eq": …}}}}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diptych.ask.nodes import Page, Read, Watch, Write
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.rules.expr import TRUE, And, Col, Compare, Expr, Has, IsNull, Not, Or, Slot, and_

Tree = dict[str, Any]


class Wheres:
    """Writes filters; `leaf` says what stands in the place of a slot."""

    def __init__(self, model: Model, leaf: Callable[[Slot], Any]) -> None:
        self.model = model
        self.leaf = leaf

    def tree(self, expr: Expr, resource: ResourceDef) -> Tree:
        """The object of `where` from which the expression is drawn."""
        match expr:
            case And(of):
                return _all([self.tree(part, resource) for part in of], resource)
            case Or(of):
                return {"or": [self.tree(part, resource) for part in of]}
            case Compare(op, Col((name,)), Slot() as slot):
                return {name: {op: self.leaf(slot)}}
            case IsNull(Col((name,))):
                return {name: {"isNull": True}}
            case Has(relation, where):
                return self._has(relation, "some", where, resource)
            case Not(of):
                return self._not(of, resource)
        raise ValueError(f"no filter of a client draws {expr}")

    def _not(self, expr: Expr, resource: ResourceDef) -> Tree:
        match expr:
            case Compare("eq", Col((name,)), Slot() as slot):
                return {name: {"ne": self.leaf(slot)}}
            case IsNull(Col((name,))):
                return {name: {"isNull": False}}
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


def sort_names(read: Read) -> list[tuple[str, bool]]:
    """The keys of a sort as (field, descending)."""
    return [(key.by.path[0], key.descending) for key in read.order if isinstance(key.by, Col)]


def page_slots(page: Page) -> dict[str, Slot]:
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
    return {each.name: None if each.value is None else leaf(each.value) for each in write.values}
