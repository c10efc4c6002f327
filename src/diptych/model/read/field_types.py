"""The types of fields, arguments and viewer values: annotation → Scalar; the enums and value objects of a model."""

from __future__ import annotations

import enum
import re
from functools import partial
from typing import get_origin

from diptych.model.declare.value import Value
from diptych.model.enum_scalar import enumeration
from diptych.model.read import fields
from diptych.model.read.annotations import Annotation, Wrong
from diptych.model.read.deprecations import read_values
from diptych.model.read.values import read_value
from diptych.model.scalars import Scalar

_ENUM_VALUE = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NO_ENUM_VALUES = ("true", "false", "null")


class FieldTypes:
    """The enums and value objects that a model uses; `users` are the class and the attribute that use an enum first."""

    def __init__(self) -> None:
        self.enums: dict[type[enum.Enum], Scalar] = {}
        self.values: dict[type[Value], Scalar | None] = {}
        self.users: dict[type[enum.Enum], tuple[type, str]] = {}

    def scalar(self, cls: type, line: Annotation, wrong: Wrong, types: str = fields.TYPES) -> Scalar | None:
        """The scalar of an annotation; None if there is none, which is reported."""
        if isinstance(line.type, type) and issubclass(line.type, Value):
            return self._value_type(line.type, wrong)
        if get_origin(line.type) is list:
            item = fields.element_line(line)
            element = self.scalar(cls, item, wrong, types)
            return None if element is None else fields.list_scalar(item, element, wrong)
        self._note_enum(cls, line, wrong)
        return fields.scalar_of(line, self.enums, wrong, types)

    def _value_type(self, kind: type[Value], wrong: Wrong) -> Scalar | None:
        """The type of a class of value objects; its mistakes are reported once."""
        if kind not in self.values:
            self.values[kind] = None
            self.values[kind] = read_value(kind, partial(self.scalar, kind, types=fields.VALUES), wrong)
        return self.values[kind]

    def _note_enum(self, cls: type, line: Annotation, wrong: Wrong) -> None:
        kind = line.type
        if not line.is_enum or kind in self.enums:
            return
        if not len(kind):
            wrong(f"{kind.__name__} has no members", "Give it some")
        for member in kind:
            value = member.value
            if not isinstance(value, str) or not _ENUM_VALUE.fullmatch(value) or value in _NO_ENUM_VALUES:
                cause = f"the value {value!r} of {kind.__name__} cannot be a name of GraphQL"
                wrong(cause, "Use letters, digits and _, and not true, false or null")
        read_values(kind, wrong)
        self.enums[kind] = enumeration(kind)
        self.users[kind] = (cls, line.attr)
