"""Expressions as readable text: `published or author.id = viewer.id`.

The names are those of the model file; `==` is written as `=`, and `& | not_()` as `and or not`. There are no redundant
parentheses. Constants are data: text is quoted as in Python, so that nothing in it can be mistaken for a part of the
rule, or move the cursor of a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import IntEnum
from typing import Literal

from msgspec.structs import replace

from diptych.model.defs import RelationDef, ResourceDef
from diptych.model.operators import Op
from diptych.model.rules.expr import (
    TRUE,
    And,
    Choose,
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    GroupKey,
    Has,
    HasRole,
    IsNull,
    KeyText,
    Mask,
    Matches,
    May,
    Measure,
    Moment,
    Not,
    Or,
    Part,
    RowDigest,
    Shift,
    Slice,
    Slot,
    Span,
    Via,
    ViewerId,
    ViewerValue,
    rewrite,
)
from diptych.model.scalars import DATE


class Precedence(IntEnum):
    """Operator precedence: an operand of lower precedence is put in parentheses."""

    CHOICE = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    WORD = 6


Rendered = tuple[str, Precedence]

_OPERATORS: Mapping[Op, str] = {
    "eq": "=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "in": "in",
    "contains": "contains",
    "startsWith": "starts with",
    "endsWith": "ends with",
    "ieq": "is like",
    "icontains": "contains like",
    "istartsWith": "starts like",
    "iendsWith": "ends like",
    "has": "has",
    "hasAny": "has any of",
    "hasAll": "has all of",
    "isEmpty": "is empty",
}


def render(expr: Expr) -> str:
    """An expression as text, with the names on the wire unless `in_words` replaced them by those of the model file."""
    return _render(expr)[0]


def in_words(expr: Expr, resources: Mapping[str, ResourceDef], resource: str) -> Expr:
    """An expression over a resource with the names of the model file, for `render` only."""

    def leaf(part: Expr) -> Expr | None:
        match part:
            case Col(path):
                return Col(_attributes(path, resources, resource))
            case May(path):
                return May(_attributes(path, resources, resource))
            case Has(name, where, link):
                relation = resources[resource].relations[name]
                linked = None if link is None else in_words(link, resources, relation.link)
                return _joined(relation, in_words(where, resources, relation.target), linked)
        return None

    return rewrite(expr, leaf)


def _joined(relation: RelationDef, where: Expr, link: Expr | None) -> Has:
    """Join a to-one step with the Has below it: some post.comments (…)."""
    if relation.kind == "one" and isinstance(where, Has):
        return Has(f"{relation.attr}.{where.relation}", where.where, where.link)
    return Has(relation.attr, where, link)


def _attributes(path: tuple[str, ...], resources: Mapping[str, ResourceDef], resource: str) -> tuple[str, ...]:
    current, words = resources[resource], []
    for name in path:
        if name in current.relations:
            words.append(current.relations[name].attr)
            current = resources[current.relations[name].target]
        elif current.fields[name].relation:
            words += [current.relations[current.fields[name].relation].attr, "id"]
        else:
            words.append(current.fields[name].attr)
    return tuple(words)


def _render(expr: Expr) -> Rendered:
    match expr:
        case Col(path):
            return _path(path), Precedence.WORD
        case Const(value):
            return _constant(value), Precedence.WORD
        case Slot():
            return "?", Precedence.WORD
        case Moment(scalar, offset):
            clock = "today()" if scalar is DATE else "now()"
            return (clock + _delta(offset), Precedence.SUM) if offset else (clock, Precedence.WORD)
        case ViewerId():
            return "viewer.id", Precedence.WORD
        case ViewerValue(name):
            return f"viewer.{name}", Precedence.WORD
        case RowDigest():
            return "version", Precedence.WORD
        case Mask() | Slice() | Concat() | KeyText() | Choose() | Shift() | Span() | Part():
            return _compound(expr)
        case GroupKey(of):
            return _render(of)
        case Via(relation, of):
            return f"{relation}.{_at(of, Precedence.WORD)}", Precedence.WORD
        case Measure(fn, of, relation):
            names = [relation] * bool(relation) + [_at(of, Precedence.WORD)] * (fn != "count")
            return ".".join((*names, fn)), Precedence.WORD
    return _condition(expr)


def _delta(delta: timedelta) -> str:
    """A constant that is added, as a model file writes it."""
    return f" {'-' if delta < timedelta() else '+'} {repr(abs(delta)).removeprefix('datetime.')}"


def _compound(expr: Mask | Slice | Concat | KeyText | Choose | Shift | Span | Part) -> Rendered:
    """The text of a compound value."""
    match expr:
        case Mask(rule, of):
            return f"{_at(of, Precedence.OR)} where {_at(rule, Precedence.OR)}", Precedence.CHOICE
        case Slice(of, start, length):
            end = "" if length is None else start + length
            return f"{_at(of, Precedence.WORD)}[{start or ''}:{end}]", Precedence.WORD
        case Part(of, name):
            return f"{_at(of, Precedence.WORD)}.{name}", Precedence.WORD
        case Shift(of, delta):
            return _at(of, Precedence.SUM) + _delta(delta), Precedence.SUM
        case Span(left, right):
            return f"{_at(left, Precedence.SUM)} - {_at(right, Precedence.WORD)}", Precedence.SUM
        case KeyText(of):
            return f"({', '.join(_at(part, Precedence.WORD) for part in of)})", Precedence.WORD
        case Concat(of):
            return " + ".join(_at(part, Precedence.SUM) for part in of), Precedence.SUM
        case Choose(when, then, other):
            return (
                f"{_at(then, Precedence.OR)} if {_at(when, Precedence.OR)} else {_at(other, Precedence.OR)}",
                Precedence.CHOICE,
            )


def _condition(expr: HasRole | May | Compare | IsNull | Matches | And | Or | Not | Has) -> Rendered:
    match expr:
        case HasRole(role):
            return f"viewer is {role}", Precedence.COMPARISON
        case May(path):
            return f"may read {_row(path)}", Precedence.COMPARISON
        case Compare("isEmpty", left):
            return f"{_at(left, Precedence.SUM)} is empty", Precedence.COMPARISON
        case Compare(op, left, right):
            shown = f"({render(right)})" if isinstance(right, Slot) and right.many else _at(right, Precedence.SUM)
            return f"{_at(left, Precedence.SUM)} {_OPERATORS[op]} {shown}", Precedence.COMPARISON
        case IsNull(of):
            return f"{_at(of, Precedence.SUM)} is null", Precedence.COMPARISON
        case Matches(parts, text):
            return f"{', '.join(map(render, parts))} match {render(text)}", Precedence.COMPARISON
        case And(of):
            return _and(of)
        case Or(of):
            return _or(of)
        case Not(of):
            return _not(of)
        case Has():
            return _has("some", expr), Precedence.COMPARISON


def _at(expr: Expr, least: Precedence) -> str:
    """The text of an operand, in parentheses if its precedence is lower."""
    return _parenthesized(_render(expr), least)


def _parenthesized(rendered: Rendered, least: Precedence) -> str:
    text, precedence = rendered
    return text if precedence >= least else f"({text})"


def _and(of: Iterable[Expr]) -> Rendered:
    parts = [_at(part, Precedence.AND) for part in of]
    return (" and ".join(parts), Precedence.AND) if parts else ("always", Precedence.WORD)


def _or(of: Iterable[Expr]) -> Rendered:
    """The text of a disjunction; comparisons of one value with several constants become a list, as in `one_of`."""
    gathered: dict[tuple[Literal["is", "equals"], Expr], list[Expr]] = {}
    for part in of:
        match part:
            case Compare("eq", left, Const() as right):
                gathered.setdefault(("equals", left), []).append(right)
            case _:
                gathered["is", part] = []
    parts = [_render(expr) if how == "is" else _one_of(expr, choices) for (how, expr), choices in gathered.items()]
    if len(parts) == 1:
        return parts[0]
    return (
        (" or ".join(_parenthesized(part, Precedence.OR) for part in parts), Precedence.OR)
        if parts
        else ("never", Precedence.WORD)
    )


def _one_of(left: Expr, choices: list[Expr]) -> Rendered:
    if len(choices) == 1:
        return _render(Compare("eq", left, choices[0]))
    return f"{_at(left, Precedence.SUM)} in ({', '.join(map(render, choices))})", Precedence.COMPARISON


def _not(of: Expr) -> Rendered:
    """The text of a negation, with the negated operator where there is one."""
    match of:
        case Compare("eq", left, right):
            return f"{_at(left, Precedence.SUM)} != {_at(right, Precedence.SUM)}", Precedence.COMPARISON
        case IsNull(value):
            return f"{_at(value, Precedence.SUM)} is not null", Precedence.COMPARISON
        case HasRole(role):
            return f"viewer is not {role}", Precedence.COMPARISON
        case May(path):
            return f"may not read {_row(path)}", Precedence.COMPARISON
        case Has(where=Not(where)):
            return _has("every", replace(of, where=where)), Precedence.COMPARISON
        case Has():
            return _has("none", of), Precedence.COMPARISON
    return f"not {_at(of, Precedence.NOT)}", Precedence.NOT


def _has(word: str, has: Has) -> str:
    through = "" if has.link in (None, TRUE) else f" through ({render(has.link)})"
    where = "" if has.where == TRUE else f" ({render(has.where)})"
    return f"{word} {has.relation}{where}{through}"


def _path(path: tuple[str, ...]) -> str:
    """The text of a path; the foreign key `authorId` is `author.id` in a model file."""
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
