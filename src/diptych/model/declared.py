"""The annotated lines of a class, with those that it inherits, as they are written.

    title: str                                      a field that must be given
    published: bool = False                         a field with a default
    id: Id = auto()                                 the server fills it
    opened: datetime = now()                        the moment at which the row is made, if none is given
    posts: list[Post] = inverse("author")           the many rows that lead here
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

MISSING: Any = object()
"""The default of a line that has none."""
_CLASS_VARIABLE = re.compile(r"(\w+\.)*ClassVar\b")


@dataclass(frozen=True, slots=True)
class Auto:
    """A field that the server fills."""


@dataclass(frozen=True, slots=True)
class Now:
    """A default that is another value for each row: the moment at which it is made, or the day of that in UTC."""

    kind: Literal["now", "today"]


@dataclass(frozen=True, slots=True)
class Inverse:
    """The many rows whose relation `field` leads to this one."""

    field: str


@dataclass(frozen=True, slots=True)
class Through:
    """The many rows that the resource `link` ties to this one."""

    link: str
    mine: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Declared:
    """One annotated line: its name, its type as it is written, its default, the class in which it stands."""

    attr: str
    hint: Any
    default: Any
    base: type

    @property
    def is_class_variable(self) -> bool:
        """Does it belong to the class, by what is written?"""
        if isinstance(self.hint, str):
            return _CLASS_VARIABLE.match(self.hint) is not None
        return self.hint is ClassVar or typing.get_origin(self.hint) is ClassVar


def annotated(cls: type) -> list[Declared]:
    """Every annotated line of a class and of the classes that it inherits from."""
    found: dict[str, Declared] = {}
    for base in reversed(cls.__mro__):
        for attr, hint in inspect.get_annotations(base).items():
            if not (attr.startswith("__") and attr.endswith("__")):
                found[attr] = Declared(_written(attr, base), hint, vars(base).get(attr, MISSING), base)
    return list(found.values())


def _written(attr: str, base: type) -> str:
    """The name as it is written in the class: Python takes `__x` in T for `_T__x`."""
    return attr.removeprefix("_" + base.__name__) if attr.startswith(f"_{base.__name__}__") else attr


def evaluate(hint: Any, base: type, known: Mapping[str, Any]) -> Any:
    """The type that an annotation means, also where it, or a part of it, is still a string."""
    module = sys.modules.get(base.__module__)
    holder = type(base.__name__, (), {"__annotations__": {"it": hint}, "__module__": base.__module__})
    names = {**known, **(vars(module) if module else {})}
    return typing.get_type_hints(holder, names, include_extras=True)["it"]
