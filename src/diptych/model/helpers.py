"""The words of rules and computed fields that Python's operators cannot say: `is_null`, `not_`, `one_of` …

To a type checker they are ordinary functions over values; when a rule is traced, they take stand-ins and give
stand-ins.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, TypeVar, cast

from diptych.model.expr import Choose, Compare, Expr, IsNull, May, or_
from diptych.model.expr import not_ as complement
from diptych.model.scalars import BOOLEAN, PLAIN, STRING, Scalar, enumeration
from diptych.model.scan import Untraceable
from diptych.model.trace import Row, Traced, Values, condition, has, is_in, path_of, value

T = TypeVar("T")


def is_null(of: object) -> bool:
    """Has the field no value?"""
    if isinstance(of, Row):
        raise Untraceable("is_null() takes a field; write is_null(self.author.id)")
    if not isinstance(of, Traced):
        raise Untraceable("is_null() takes a field")
    return _condition(IsNull(of.expr))


def not_(of: bool) -> bool:
    """The opposite of a condition."""
    return _condition(complement(condition(of)))


def one_of(of: object, *choices: object) -> bool:
    """Is the field one of these values? `one_of(self.team.id, viewer.teams)` takes those of a viewer."""
    if not isinstance(of, Traced):
        raise Untraceable("one_of() takes a field first, then the values")
    if len(choices) == 1 and isinstance(choices[0], Values):
        return _condition(is_in(of, choices[0]))
    return _condition(or_(*(condition(of == choice) for choice in choices)))


def contains(of: str | None, part: str) -> bool:
    """Does the text hold the other text?"""
    if not isinstance(of, Traced) or of.scalar is not STRING:
        raise Untraceable("contains() takes a text field first, then the text to find")
    found = value(part, STRING)
    if found.scalar is not STRING:
        raise Untraceable("contains() takes a text field first, then the text to find")
    return _condition(Compare("contains", of.expr, found.expr))


def either(when: bool, then: T, other: T) -> T:
    """`then` where the condition holds, else `other`: what `a if c else b` would say."""
    scalar = _scalar(then) or _scalar(other)
    if scalar is None:
        raise Untraceable("the type of either() is not clear; give a field, text, a number or an Enum")
    first, second = value(then, scalar), value(other, scalar)
    if first.scalar is not second.scalar:
        told = f"either() has the types {first.scalar.name} and {second.scalar.name}"
        raise Untraceable(f"{told}; both sides need one type")
    return cast(T, Traced(Choose(condition(when), first.expr, second.expr), scalar))


def given(of: T | None) -> T:
    """An optional field or relation, for the type checker: `given(self.editor).id == viewer.id`.

    Nothing is asked of the row: where there is no editor, its fields are null, and a comparison with null is
    false.
    """
    if not isinstance(of, Traced | Row):
        raise Untraceable("given() takes a field or a to-one relation")
    return cast(T, of)


def may_read(row: object) -> bool:
    """May the viewer read that row? `return may_read(self.post)`: whoever may read the post."""
    if not isinstance(row, Row) or not path_of(row):
        raise Untraceable("may_read() takes a to-one relation, such as may_read(self.post)")
    return _condition(May(path_of(row)))


def some(rows: list[T], where: Callable[[T], bool] | None = None) -> bool:
    """Is there a related row for which the condition holds? Whether the viewer may read it plays no part.

    `some(self.members, lambda member: member.user.id == viewer.id)`: whoever is one of the members.
    """
    return _condition(has(rows, where))


def none(rows: list[T], where: Callable[[T], bool] | None = None) -> bool:
    """Is there no related row for which the condition holds?"""
    return _condition(complement(has(rows, where)))


def every(rows: list[T], where: Callable[[T], bool]) -> bool:
    """Does the condition hold for every related row? Where there is none, it does."""
    return _condition(complement(has(rows, where, opposite=True)))


def _condition(expr: Expr) -> bool:
    return cast(bool, Traced(expr, BOOLEAN))


def _scalar(of: Any) -> Scalar | None:
    """The type of one side of either(): that of a field, or of a constant if it tells it."""
    if isinstance(of, Traced):
        return of.scalar
    return enumeration(type(of)) if isinstance(of, enum.Enum) else PLAIN.get(type(of))
