"""Functions for rules and computed fields that Python's operators cannot express: `is_null`, `not_`, `one_of` …

To a type checker they are ordinary functions over values; while a rule is traced, they take and return traced values.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, TypeVar, cast

from diptych.model.rules.expr import Choose, Compare, Expr, IsNull, May, or_
from diptych.model.rules.expr import not_ as complement
from diptych.model.rules.source_check import Untraceable
from diptych.model.rules.trace import Traced, TracedRow, TracedValues, condition, has, is_in, path_of, value
from diptych.model.scalars import BOOLEAN, PLAIN, STRING, Scalar, enumeration

T = TypeVar("T")


def is_null(of: object) -> bool:
    """Is the field null?"""
    if isinstance(of, TracedRow):
        raise Untraceable("is_null() takes a field; write is_null(self.author.id)")
    if not isinstance(of, Traced):
        raise Untraceable("is_null() takes a field")
    return _condition(IsNull(of.expr))


def not_(of: bool) -> bool:
    """The negation of a condition."""
    return _condition(complement(condition(of)))


def one_of(of: object, *choices: object) -> bool:
    """Is the field one of these values, or, as in `one_of(self.team.id, viewer.teams)`, one of the viewer's?"""
    if not isinstance(of, Traced):
        raise Untraceable("one_of() takes a field first, then the values")
    if len(choices) == 1 and isinstance(choices[0], TracedValues):
        return _condition(is_in(of, choices[0]))
    return _condition(or_(*(condition(of == choice) for choice in choices)))


def contains(of: str | None, part: str) -> bool:
    """Does the text contain the other text?"""
    if not isinstance(of, Traced) or not of.scalar.is_text:
        raise Untraceable("contains() takes a text field first, then the text to find")
    searched = value(part, STRING)
    if not searched.scalar.is_text:
        raise Untraceable("contains() takes a text field first, then the text to find")
    return _condition(Compare("contains", of.expr, searched.expr))


def either(when: bool, then: T, other: T) -> T:
    """`then` if the condition holds, else `other`: the traceable form of `a if c else b`."""
    scalar = _scalar(then) or _scalar(other)
    if scalar is None:
        raise Untraceable("the type of either() is not clear; give a field, text, a number or an Enum")
    first, second = value(then, scalar), value(other, scalar)
    if first.scalar is not second.scalar:
        types = f"either() has the types {first.scalar.name} and {second.scalar.name}"
        raise Untraceable(f"{types}; both sides need one type")
    return cast(T, Traced(Choose(condition(when), first.expr, second.expr), scalar))


def given(of: T | None) -> T:
    """An optional field or relation, for the type checker: `given(self.editor).id == viewer.id`.

    It adds no condition: if there is no editor, its fields are null, and a comparison with null is false.
    """
    if not isinstance(of, Traced | TracedRow):
        raise Untraceable("given() takes a field or a to-one relation")
    return cast(T, of)


def may_read(row: object) -> bool:
    """May the viewer read that row? `return may_read(self.post)` allows viewers who may read the post."""
    if not isinstance(row, TracedRow) or not path_of(row):
        raise Untraceable("may_read() takes a to-one relation, such as may_read(self.post)")
    return _condition(May(path_of(row)))


def some(rows: list[T], where: Callable[[T], bool] | None = None) -> bool:
    """Is there a related row that matches the condition? It counts whether or not the viewer may read it.

    `some(self.members, lambda member: member.user.id == viewer.id)` allows the members.
    """
    return _condition(has(rows, where))


def none(rows: list[T], where: Callable[[T], bool] | None = None) -> bool:
    """Is there no related row that matches the condition?"""
    return _condition(complement(has(rows, where)))


def every(rows: list[T], where: Callable[[T], bool]) -> bool:
    """Do all related rows match the condition? True if there are none."""
    return _condition(complement(has(rows, where, opposite=True)))


def _condition(expr: Expr) -> bool:
    return cast(bool, Traced(expr, BOOLEAN))


def _scalar(of: Any) -> Scalar | None:
    """The type of one side of either(): of a field, or of a constant if it is clear."""
    if isinstance(of, Traced):
        return of.scalar
    return enumeration(type(of)) if isinstance(of, enum.Enum) else PLAIN.get(type(of))
