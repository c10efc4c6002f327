"""An expression as text, for people who want to read what a rule says: `published or author.id = viewer.id`.

The words are those of a model file; `=` stands for `==`, and `and or not` for `& | not_()`. Parentheses stand only
where the text would say something else without them. Constants are data: text is quoted as Python quotes it, so that
nothing in it can pass for a word of the rule, or move the cursor of a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Literal

from diptych.model.defs import RelationDef, ResourceDef
from diptych.model.expr import (
    TRUE,
    And,
    Choose,
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    Has,
    HasRole,
    IsNull,
    Mask,
    May,
    Moment,
    Not,
    Op,
    Or,
    Slice,
    Slot,
    ViewerId,
    ViewerValue,
    rewrite,
)
from diptych.model.scalars import DATE


class Bond(IntEnum):
    """How firmly the parts of a text hold together; a part that holds less firmly stands in parentheses."""

    CHOICE = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    WORD = 6


Told = tuple[str, Bond]

_OPERATORS: Mapping[Op, str] = {
    "eq": "=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=",
    "in": "in", "contains": "contains", "startsWith": "starts with",
}  # fmt: skip


def tell(expr: Expr) -> str:
    """What an expression says. It has the names of the wire, unless `in_words` put those of the model file in."""
    return _told(expr)[0]


def in_words(expr: Expr, resources: Mapping[str, ResourceDef], resource: str) -> Expr:
    """The same expression over the row of a resource, with the names that a model file has: only to be told."""

    def leaf(part: Expr) -> Expr | None:
        match part:
            case Col(path):
                return Col(_attributes(path, resources, resource))
            case May(path):
                return May(_attributes(path, resources, resource))
            case Has(name, where, link):
                way = resources[resource].relations[name]
                linked = None if link is None else in_words(link, resources, way.link)
                return _joined(way, in_words(where, resources, way.target), linked)
        return None

    return rewrite(expr, leaf)


def _joined(way: RelationDef, where: Expr, link: Expr | None) -> Has:
    """What is asked of the many rows of one row is told in one step: some post.comments (…)."""
    if way.kind == "one" and isinstance(where, Has):
        return Has(f"{way.attr}.{where.relation}", where.where, where.link)
    return Has(way.attr, where, link)


def _attributes(path: tuple[str, ...], resources: Mapping[str, ResourceDef], resource: str) -> tuple[str, ...]:
    found, words = resources[resource], []
    for name in path:
        if name in found.relations:
            words.append(found.relations[name].attr)
            found = resources[found.relations[name].target]
        elif found.fields[name].relation:
            words += [found.relations[found.fields[name].relation].attr, "id"]
        else:
            words.append(found.fields[name].attr)
    return tuple(words)


def _told(expr: Expr) -> Told:
    match expr:
        case Col(path):
            return _way(path), Bond.WORD
        case Const(value):
            return _constant(value), Bond.WORD
        case Slot():
            return "?", Bond.WORD
        case Moment(scalar):
            return ("today()" if scalar is DATE else "now()"), Bond.WORD
        case ViewerId():
            return "viewer.id", Bond.WORD
        case ViewerValue(name):
            return f"viewer.{name}", Bond.WORD
        case Mask() | Slice() | Concat() | Choose():
            return _made(expr)
    return _condition(expr)


def _made(expr: Mask | Slice | Concat | Choose) -> Told:
    """A value that is made of others."""
    match expr:
        case Mask(rule, of):
            return f"{_at(of, Bond.OR)} where {_at(rule, Bond.OR)}", Bond.CHOICE
        case Slice(of, start, length):
            end = "" if length is None else start + length
            return f"{_at(of, Bond.WORD)}[{start or ''}:{end}]", Bond.WORD
        case Concat(of):
            return " + ".join(_at(part, Bond.SUM) for part in of), Bond.SUM
        case Choose(when, then, other):
            return f"{_at(then, Bond.OR)} if {_at(when, Bond.OR)} else {_at(other, Bond.OR)}", Bond.CHOICE


def _condition(expr: HasRole | May | Compare | IsNull | And | Or | Not | Has) -> Told:
    match expr:
        case HasRole(role):
            return f"viewer is {role}", Bond.COMPARISON
        case May(path):
            return f"may read {_row(path)}", Bond.COMPARISON
        case Compare(op, left, right):
            shown = f"({tell(right)})" if isinstance(right, Slot) and right.many else _at(right, Bond.SUM)
            return f"{_at(left, Bond.SUM)} {_OPERATORS[op]} {shown}", Bond.COMPARISON
        case IsNull(of):
            return f"{_at(of, Bond.SUM)} is null", Bond.COMPARISON
        case And(of):
            return _and(of)
        case Or(of):
            return _or(of)
        case Not(of):
            return _not(of)
        case Has():
            return _has("some", expr), Bond.COMPARISON


def _at(expr: Expr, least: Bond) -> str:
    """A part of a text that holds together at least so firmly."""
    return _held(_told(expr), least)


def _held(told: Told, least: Bond) -> str:
    text, bond = told
    return text if bond >= least else f"({text})"


def _and(of: Iterable[Expr]) -> Told:
    parts = [_at(part, Bond.AND) for part in of]
    return (" and ".join(parts), Bond.AND) if parts else ("always", Bond.WORD)


def _or(of: Iterable[Expr]) -> Told:
    """Several constants that one value may equal are told as a list: what `one_of` says."""
    gathered: dict[tuple[Literal["is", "equals"], Expr], list[Expr]] = {}
    for part in of:
        match part:
            case Compare("eq", left, Const() as right):
                gathered.setdefault(("equals", left), []).append(right)
            case _:
                gathered["is", part] = []
    parts = [_told(expr) if how == "is" else _one_of(expr, choices) for (how, expr), choices in gathered.items()]
    if len(parts) == 1:
        return parts[0]
    return (" or ".join(_held(part, Bond.OR) for part in parts), Bond.OR) if parts else ("never", Bond.WORD)


def _one_of(left: Expr, choices: list[Expr]) -> Told:
    if len(choices) == 1:
        return _told(Compare("eq", left, choices[0]))
    return f"{_at(left, Bond.SUM)} in ({', '.join(map(tell, choices))})", Bond.COMPARISON


def _not(of: Expr) -> Told:
    """The opposite of a condition, with the word for it where there is one."""
    match of:
        case Compare("eq", left, right):
            return f"{_at(left, Bond.SUM)} != {_at(right, Bond.SUM)}", Bond.COMPARISON
        case IsNull(value):
            return f"{_at(value, Bond.SUM)} is not null", Bond.COMPARISON
        case HasRole(role):
            return f"viewer is not {role}", Bond.COMPARISON
        case May(path):
            return f"may not read {_row(path)}", Bond.COMPARISON
        case Has(where=Not(where)):
            return _has("every", replace(of, where=where)), Bond.COMPARISON
        case Has():
            return _has("none", of), Bond.COMPARISON
    return f"not {_at(of, Bond.NOT)}", Bond.NOT


def _has(word: str, has: Has) -> str:
    through = "" if has.link in (None, TRUE) else f" through ({tell(has.link)})"
    where = "" if has.where == TRUE else f" ({tell(has.where)})"
    return f"{word} {has.relation}{where}{through}"


def _way(path: tuple[str, ...]) -> str:
    """The id of a related row stands in this row as `authorId`, and is `author.id` in a model file."""
    last = path[-1]
    steps = (last[:-2], "id") if last.endswith("Id") and last != "Id" else (last,)
    return ".".join((*path[:-1], *steps))


def _row(path: tuple[str, ...]) -> str:
    return ".".join(path) or "it"


def _constant(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, str) else str(value)
