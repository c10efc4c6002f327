"""Functions for rules and computed fields that Python's operators cannot express: `is_null`, `not_`, `one_of` …

To a type checker they are ordinary functions over values; while a rule is traced, they take and return traced values.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, TypeVar, Unpack, cast, overload

from msgspec.structs import replace

from diptych.model.declare.declared import Now
from diptych.model.declare.every import Scheduled, ScheduleOptions, scheduled
from diptych.model.enum_scalar import enumeration
from diptych.model.list_scalar import element_of
from diptych.model.rules.expr import Choose, Compare, Const, Expr, IsNull, May, ViewerId, or_
from diptych.model.rules.expr import not_ as complement
from diptych.model.rules.source_check import Untraceable
from diptych.model.rules.trace import has
from diptych.model.rules.traced import Traced, TracedRow, TracedValues, condition, is_in, path_of, value
from diptych.model.scalars import BOOLEAN, DATE, DATETIME, IDS, PLAIN, STRING, UUID, Scalar

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


@overload
def contains(of: str | None, part: str) -> bool: ...
@overload
def contains(of: list[T] | None, part: T | None) -> bool: ...
def contains(of: Any, part: Any) -> bool:
    """Does the text contain the other text, or the list this element?"""
    if isinstance(of, Traced) and of.scalar.items is not None:
        return _condition(_element_of(of, of.scalar.items, part))
    if not isinstance(of, Traced) or not of.scalar.is_text:
        raise Untraceable("contains() takes a text field first, then the text to find")
    searched = value(part, STRING)
    if not searched.scalar.is_text:
        raise Untraceable("contains() takes a text field first, then the text to find")
    return _condition(Compare("contains", of.expr, searched.expr))


def _element_of(of: Traced, item: Scalar, part: object) -> Expr:
    """Is it an element of the list? A constant is one in its form on the wire; others must have that form."""
    sought = value(part, item)
    if sought.scalar is not item and not (isinstance(sought.expr, ViewerId) and item in IDS):
        raise Untraceable(f"a list of {item.name} cannot contain a value of type {sought.scalar.name}")
    if isinstance(sought.expr, Const):
        return Compare("has", of.expr, replace(sought.expr, scalar=element_of(item)))
    if item not in (STRING, *IDS, UUID) and not item.choices:
        raise Untraceable(f"contains() takes a constant for a list of {item.name}")
    return Compare("has", of.expr, sought.expr)


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


@overload
def every(rows: list[T], where: Callable[[T], bool]) -> bool: ...
@overload
def every(text: str = "", /, **options: Unpack[ScheduleOptions]) -> Callable[[Scheduled], Scheduled]: ...
def every(rows: Any = "", where: Any = None, **options: Any) -> Any:
    """Do all related rows match the condition? True if there are none.

    As a decorator, `@every(minutes=5)`, it declares a function that runs by the clock (`model/declare/every.py`).
    """
    if where is None and isinstance(rows, str):
        return scheduled(rows, **options)
    return _condition(complement(has(rows, where, opposite=True)))


def _condition(expr: Expr) -> bool:
    return cast(bool, Traced(expr, BOOLEAN))


def _scalar(of: Any) -> Scalar | None:
    """The type of one side of either(): of a field, or of a constant if it is clear."""
    if isinstance(of, Traced):
        return of.scalar
    if isinstance(of, Now):
        return DATETIME if of.kind == "now" else DATE
    return enumeration(type(of)) if isinstance(of, enum.Enum) else PLAIN.get(type(of))
