"""The annotated attributes of a class, with the inherited ones, before their types are evaluated.

title: str                                      a required field
published: bool = False                         a field with a default
id: Id = auto()                                 set by the server
opened: datetime = now()                        the time of creation by default
author: User = from_viewer()                    who creates the row by default
posts: list[Post] = inverse("author")           the rows whose author is this row
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

MISSING: Any = object()
"""The default of an attribute that has none."""
_CLASS_VARIABLE = re.compile(r"(\w+\.)*ClassVar\b")


class Auto(Struct, frozen=True):
    """The default of a field that the server sets."""


class Now(Struct, frozen=True):
    """The current time, or the day in UTC, or so much later: a generated default, or a value in a rule."""

    kind: Literal["now", "today"]
    offset: timedelta = timedelta()

    def __add__(self, other: object) -> Now:
        return replace(self, offset=self.offset + other) if isinstance(other, timedelta) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: object) -> Now:
        return replace(self, offset=self.offset - other) if isinstance(other, timedelta) else NotImplemented


class FromViewer(Struct, frozen=True):
    """A generated default: the id of who creates the row, or a field of the model's own viewer class."""

    name: str = ""


class Inverse(Struct, frozen=True):
    """To many: the rows whose relation `field` is this row."""

    field: str


class Through(Struct, frozen=True):
    """Many to many: the rows that rows of the resource `link` connect with this one."""

    link: str
    mine: str
    theirs: str


class Declared(Struct, frozen=True):
    """An annotated attribute: its name, its unevaluated type, its default, and the class that declares it."""

    attr: str
    hint: Any
    default: Any
    base: type

    @property
    def is_class_variable(self) -> bool:
        """Is the member annotated as a ClassVar?"""
        if isinstance(self.hint, str):
            return _CLASS_VARIABLE.match(self.hint) is not None
        return self.hint is ClassVar or typing.get_origin(self.hint) is ClassVar


def annotated(cls: type) -> list[Declared]:
    """All annotated attributes of a class and its bases."""
    attributes: dict[str, Declared] = {}
    for base in reversed(cls.__mro__):
        for attr, hint in inspect.get_annotations(base).items():
            if not (attr.startswith("__") and attr.endswith("__")):
                attributes[attr] = Declared(_written(attr, base), hint, vars(base).get(attr, MISSING), base)
    return list(attributes.values())


def _written(attr: str, base: type) -> str:
    """The name as written in the class: undo name mangling of `__x` in T to `_T__x`."""
    return attr.removeprefix("_" + base.__name__) if attr.startswith(f"_{base.__name__}__") else attr


def evaluate(hint: Any, base: type, known: Mapping[str, Any]) -> Any:
    """Evaluate an annotation, also if it, or a part of it, is a string."""
    module = sys.modules.get(base.__module__)
    holder = type(base.__name__, (), {"__annotations__": {"it": hint}, "__module__": base.__module__})
    names = {**known, **(vars(module) if module else {})}
    return typing.get_type_hints(holder, names, include_extras=True)["it"]
