"""Enums: text that is one of a few values."""

from __future__ import annotations

import enum
import functools
import inspect
from typing import Any

from diptych.model.read.deprecations import deprecated_choices
from diptych.model.scalars import Scalar, frozen

_FEW = 8
"""So many values SQLite compares one by one in less time than by a list, for which it makes a table in every run."""


@functools.cache
def enumeration(kind: type[enum.Enum]) -> Scalar:
    """One of the values of an enum; stored and sent as the member's value."""
    choices = tuple(str(member.value) for member in kind)
    known = frozenset(choices)
    test = f"{{0}} IN ({', '.join(map(_literal, choices))})"
    few = f"CASE {{0}} {' '.join(f'WHEN {_literal(choice)} THEN 1' for choice in choices)} END"

    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return value

    return Scalar(
        kind.__name__,
        kind,
        frozen(type="string", enum=list(choices)),
        parse,
        parse,
        "TEXT",
        'text COLLATE "C"',
        "text",
        sqlite_test=few if len(choices) <= _FEW else test,
        postgres_test=test,
        quoted=True,
        choices=choices,
        deprecated=deprecated_choices(kind),
        description=own_doc(kind),
    )


def _literal(choice: str) -> str:
    """A value of an enum as an SQL literal in a template."""
    return "'" + choice.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'"


def own_doc(kind: type) -> str:
    """The docstring of a class itself, not one that it inherits."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")
