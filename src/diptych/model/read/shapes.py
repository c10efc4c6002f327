"""The shape of a declaration: the plural of a class, and whether a list holds rows."""

from __future__ import annotations

from typing import get_args

from diptych.model.declare.declared import Inverse, Through
from diptych.model.declare.resource import Resource
from diptych.model.naming import camel, plural, snake
from diptych.model.read.annotations import Annotation


def stem_of(cls: type[Resource]) -> str:
    """The plural that its table and paths have."""
    return cls.__diptych__["plural"] or plural(snake(cls.__name__))


def many_of(cls: type[Resource]) -> str:
    """The name of its list in GraphQL."""
    return camel(stem_of(cls).replace("-", "_"))


def holds_rows(line: Annotation) -> bool:
    """Is the field a list of resources, and so a relation?"""
    (item,) = get_args(line.type)
    return isinstance(line.default, Inverse | Through) or (isinstance(item, type) and issubclass(item, Resource))
