"""The expression language of rules, filters and computed fields.

An expression is a frozen, hashable tree over one row. A rule in a model file is traced into one; a `where` of a request
is translated into one; applying a rule to a request is `and_(rule, where)`, and the compiler does not know where a part
came from.

    return self.published | (self.author.id == viewer.id)          a rule
    Or((Col(("published",)), Compare("eq", Col(("authorId",)), ViewerId())))

Logic is two-valued: a comparison with null is false, `Not` is the complement, "ne" is Not(eq). So there is no
"ne" here. `And(())` is true and `Or(())` is false; build with `and_ or_ not_`, which keep trees in one normal
form, so that equal requests are equal trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from diptych.model.operators import Op
from diptych.model.scalars import STRING, Scalar

Fn = Literal["count", "distinct", "sum", "avg", "min", "max"]
Bucket = Literal["value", "year", "month", "day", "hour"]


class Col(Struct, frozen=True):
    """A field of the row, possibly through to-one relations: Col(("post", "author", "name"))."""

    path: tuple[str, ...]


class Const(Struct, frozen=True):
    """A constant in a rule of a model file; bound as a parameter like any value."""

    value: str | int | float | bool | Decimal | None
    scalar: Scalar


class Moment(Struct, frozen=True):
    """The current time, or date, when the statement is bound; or so much later."""

    scalar: Scalar
    offset: timedelta = timedelta()


class Slot(Struct, frozen=True):
    """A placeholder for one value of the request; values are passed beside the tree, never in it."""

    index: int
    scalar: Scalar
    many: bool = False
    """Is the value a list, of elements of this scalar?"""


class ViewerId(Struct, frozen=True):
    """The id of the viewer."""


class ViewerValue(Struct, frozen=True):
    """A field of the model's own viewer class, such as a tenant; a set of values if `many`."""

    name: str
    scalar: Scalar
    many: bool = False


class HasRole(Struct, frozen=True):
    """Does the viewer have the role? Folded to true or false by the View."""

    role: str


class May(Struct, frozen=True):
    """May the viewer read the row at the end of a to-one path? Replaced by that resource's read rule in the View.

    The empty path is the row itself: one of many, in the `where` of a Has.
    """

    path: tuple[str, ...]


class Compare(Struct, frozen=True):
    op: Op
    left: Expr
    right: Expr


class IsNull(Struct, frozen=True):
    of: Expr


class And(Struct, frozen=True):
    of: tuple[Expr, ...]


class Or(Struct, frozen=True):
    of: tuple[Expr, ...]


class Not(Struct, frozen=True):
    of: Expr


class Has(Struct, frozen=True):
    """Is there a related row that matches `where`? `link` restricts the rows of a linking resource.

    `where` is an expression over the other row: tree traversals stop here unless they resolve the relation.
    """

    relation: str
    where: Expr
    link: Expr | None = None


class Via(Struct, frozen=True):
    """A value of the row that a to-one relation leads to, if that row matches `where`; else null."""

    relation: str
    of: Expr
    where: Expr = And(())


class Measure(Struct, frozen=True):
    """A number of many rows: of those of a group or, with `relation`, of those that it leads to and `where` matches.

    `of` is the value of each row; a count has none. Nulls are in no measure but the count. `rule` is a condition on
    the row itself, without which there are no rows.
    """

    fn: Fn
    of: Expr = And(())
    relation: str = ""
    where: Expr = And(())
    link: Expr | None = None
    rule: Expr = And(())


class GroupKey(Struct, frozen=True):
    """A key of a group: a value that its rows share, or the year, month, day or hour that they share (in UTC)."""

    of: Expr
    by: Bucket = "value"


class Matches(Struct, frozen=True):
    """Are all words of a search in these fields of the row? (`model/searching.py`)"""

    of: tuple[Expr, ...]
    text: Expr


class Mask(Struct, frozen=True):
    """The value if the rule holds, else null."""

    rule: Expr
    of: Expr


class Slice(Struct, frozen=True):
    """A substring: `length` characters after `start`, or all."""

    of: Expr
    start: int
    length: int | None


class Concat(Struct, frozen=True):
    of: tuple[Expr, ...]


class Choose(Struct, frozen=True):
    """`then` if the condition holds, else `other`."""

    when: Expr
    then: Expr
    other: Expr


class Shift(Struct, frozen=True):
    """A moment or a day that is later by a constant."""

    of: Expr
    delta: timedelta


class Span(Struct, frozen=True):
    """The time between two moments or days: how much later is `left` than `right`?"""

    left: Expr
    right: Expr


class Part(Struct, frozen=True):
    """A member of a value object; null if the object is."""

    of: Expr
    name: str
    scalar: Scalar


class KeyText(Struct, frozen=True):
    """The id of a row whose key has several columns, from the columns that refer to it; null if one of them is."""

    of: tuple[Expr, ...]


class RowDigest(Struct, frozen=True):
    """A number that changes with the values of the row: the version of a row whose table has none."""


Expr = (
    Col
    | Const
    | Moment
    | Slot
    | ViewerId
    | ViewerValue
    | HasRole
    | May
    | Compare
    | IsNull
    | And
    | Or
    | Not
    | Has
    | Via
    | Measure
    | GroupKey
    | Matches
    | Mask
    | Slice
    | Concat
    | Choose
    | Shift
    | Span
    | Part
    | KeyText
    | RowDigest
)

TRUE = And(())
FALSE = Or(())
NULL = Const(None, STRING)


def and_(*parts: Expr) -> Expr:
    """Conjunction, flattened; true parts are dropped, a false one makes it false."""
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.of if isinstance(part, And) else (part,))
    if len(flat) < 2:
        return flat[0] if flat else TRUE
    if FALSE in flat:
        return FALSE
    unique = tuple(dict.fromkeys(flat))
    return unique[0] if len(unique) == 1 else And(unique)


def or_(*parts: Expr) -> Expr:
    """Disjunction, flattened; false parts are dropped, a true one makes it true."""
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.of if isinstance(part, Or) else (part,))
    if len(flat) < 2:
        return flat[0] if flat else FALSE
    if TRUE in flat:
        return TRUE
    unique = tuple(dict.fromkeys(flat))
    return unique[0] if len(unique) == 1 else Or(unique)


def not_(part: Expr) -> Expr:
    """The complement."""
    if part == TRUE:
        return FALSE
    if part == FALSE:
        return TRUE
    return part.of if isinstance(part, Not) else Not(part)


def rewrite(expr: Expr, leaf: Callable[[Expr], Expr | None]) -> Expr:
    """Rebuild a tree top-down: a node is replaced by what `leaf` returns for it; for None, its parts are rewritten."""
    replaced = leaf(expr)
    if replaced is not None:
        return replaced
    match expr:
        case And(of):
            return and_(*(rewrite(part, leaf) for part in of))
        case Or(of):
            return or_(*(rewrite(part, leaf) for part in of))
        case Not(of):
            return not_(rewrite(of, leaf))
        case Compare(op, left, right):
            return Compare(op, rewrite(left, leaf), rewrite(right, leaf))
        case IsNull(of):
            return IsNull(rewrite(of, leaf))
        case Matches(of, text):
            return Matches(tuple(rewrite(part, leaf) for part in of), rewrite(text, leaf))
        case Mask(rule, of):
            return mask(rewrite(rule, leaf), rewrite(of, leaf))
    return _rewrite_value(expr, leaf)


def _rewrite_value(expr: Expr, leaf: Callable[[Expr], Expr | None]) -> Expr:
    match expr:
        case Slice(of) | Shift(of) | Part(of) | GroupKey(of) | Measure(of=of, relation=""):
            return replace(expr, of=rewrite(of, leaf))
        case Span(left, right):
            return Span(rewrite(left, leaf), rewrite(right, leaf))
        case Concat(of):
            return Concat(tuple(rewrite(part, leaf) for part in of))
        case KeyText(of):
            return KeyText(tuple(rewrite(part, leaf) for part in of))
        case Choose(when, then, other):
            return choose(rewrite(when, leaf), rewrite(then, leaf), rewrite(other, leaf))
    return expr


def leaves(expr: Expr) -> list[Expr]:
    """The leaves of a tree over this row, from left to right; a condition on or a value of other rows is a leaf."""
    collected: list[Expr] = []

    def leaf(part: Expr) -> Expr | None:
        is_leaf = isinstance(part, Col | Const | Moment | Slot | ViewerId | ViewerValue | HasRole | May | Has | Via)
        if is_leaf or (isinstance(part, Measure) and part.relation):
            collected.append(part)
        return None

    rewrite(expr, leaf)
    return collected


def all_leaves(expr: Expr) -> Iterator[Expr]:
    """The leaves, with those of conditions on related rows."""
    for part in leaves(expr):
        yield part
        if isinstance(part, Has | Via | Measure):
            yield from all_leaves(part.where)
        if isinstance(part, Via | Measure):
            yield from all_leaves(part.of)


def mask(rule: Expr, of: Expr) -> Expr:
    """The value if the rule holds, else null, simplified."""
    if rule == TRUE:
        return of
    return NULL if rule == FALSE else Mask(rule, of)


def choose(when: Expr, then: Expr, other: Expr) -> Expr:
    """A choice between two values, simplified."""
    if when == TRUE:
        return then
    return other if when == FALSE else Choose(when, then, other)


def is_condition(expr: Expr) -> bool:
    """Is an expression a predicate, not a value?"""
    return isinstance(expr, Compare | IsNull | And | Or | Not | Has | Matches | May | HasRole)
