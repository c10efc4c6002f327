"""Rows as plain Python objects, for the code of a model file.

    post = Post(title="x", body="y", author=ann)     a new row: fields without a default are required
    post.published = True                            a field is assigned
    post.author.id                                   a to-one relation is a row of which the id is known

A row keeps its original values, so that `changes` can compute what was assigned. Reading a field that was not loaded
raises an AttributeError that says what to do; it never returns a default of the class. A *reference* is a row of which
only the id was loaded; to-one relations of loaded rows are references.

`start_row`, `read`, `assign` and `describe_row` are the methods of Resource (`model/declare/resource.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct

from diptych.model.declare.declared import MISSING, Auto, FromViewer, Inverse, Now, Through, annotated

R = TypeVar("R")
_STATE = "__state__"


class _State(Struct, frozen=True):
    """The values of the row in the database, or, if it is new, the defaults of the class."""

    new: bool
    known: Mapping[str, Any]


_DEFAULTS: dict[type, Mapping[str, Any]] = {}


def _defaults(cls: type) -> Mapping[str, Any]:
    """The fields and relations of a class with their defaults, cached."""
    defaults = _DEFAULTS.get(cls)
    if defaults is None:
        declared = [line for line in annotated(cls) if not line.is_class_variable]
        defaults = _DEFAULTS[cls] = {line.attr: line.default for line in declared}
    return defaults


# the methods of Resource


def start_row(row: object, /, *values: Any, **assigned: Any) -> None:
    """Initialize a new row from its fields: `Post(title="x", author=ann)`."""
    cls = type(row)
    if values:
        raise TypeError(f"{cls.__name__}() takes its fields by their names")
    known = {attr: default for attr, default in _defaults(cls).items() if _not_assignable(default) is None}
    for attr in assigned:
        if attr not in known:
            raise TypeError(f"{cls.__name__}(): {_why_not(cls, attr)}")
    missing = [attr for attr, default in known.items() if default is MISSING and attr not in assigned]
    if missing:
        raise TypeError(f"{cls.__name__}() needs {', '.join(missing)}")
    own = object.__getattribute__(row, "__dict__")
    defaults = {attr: default for attr, default in known.items() if attr not in assigned}
    own[_STATE] = _State(True, defaults)
    own.update(
        {
            attr: assigned[attr] if attr in assigned else _fresh(default)
            for attr, default in known.items()
            if attr in assigned or not isinstance(default, Now | FromViewer)
        }
    )


def read(row: object, name: str) -> Any:
    """The value of an attribute. Raises AttributeError for a field that was not loaded."""
    own = object.__getattribute__(row, "__dict__")
    if name in own:
        return own[name]
    if name[:1] != "_" and name in _defaults(type(row)):
        raise AttributeError(_absent(row, name), name=name, obj=row)
    return object.__getattribute__(row, name)


def assign(row: object, name: str, value: Any) -> None:
    """Assign a field. Values that the database computed from the old row are dropped."""
    cls = type(row)
    if name[:1] == "_":
        return object.__setattr__(row, name, value)
    if name not in _defaults(cls) or _not_assignable(_defaults(cls)[name]):
        raise AttributeError(_why_not(cls, name), name=name, obj=row)
    own = vars(row)
    for computed in [attr for attr in own if attr[:1] != "_" and attr not in _defaults(cls)]:
        del own[computed]
    own[name] = value
    return None


def describe_row(row: object) -> str:
    """The class and id of a row, without its values, which may be secret."""
    known = vars(row).get("id", "new")
    return f"<{type(row).__name__} {known}>"


def _not_assignable(default: Any) -> str | None:
    """Why an attribute with this default cannot be assigned; None if it can."""
    if isinstance(default, Auto):
        return "is filled by the server"
    return "leads to many rows" if isinstance(default, Inverse | Through) else None


def _why_not(cls: type, attr: str) -> str:
    why = _not_assignable(_defaults(cls).get(attr, MISSING))
    if why:
        return f"{cls.__name__}.{attr} {why}, and cannot be given"
    if hasattr(cls, attr):
        return f"{cls.__name__}.{attr} is no field that can be given"
    return f"{cls.__name__} has no field '{attr}'"


def _absent(row: object, attr: str) -> str:
    name = type(row).__name__
    if isinstance(_defaults(type(row))[attr], Inverse | Through):
        return f"{name}.{attr} leads to many rows: ask for them by tx.select()"
    if is_new(row):
        return f"{name}.{attr} is not known before the row is saved"
    if is_reference(row):
        return f"only the id of this {name} is known: load it by await tx.get({name}, …id)"
    return (
        f"{name}.{attr} was not loaded: a computed field names it in needs=, and tx.trusted loads what the viewer "
        "may not read"
    )


def _fresh(value: Any) -> Any:
    """A copy of mutable JSON, so that rows do not share it."""
    return copy.deepcopy(value) if isinstance(value, list | dict) else value


# what the server uses


def load_row(cls: type[R], values: Mapping[str, Any]) -> R:
    """A loaded row from Python values by attribute; a to-one relation is a row, or None.

    The values may include fields that the database computed.
    """
    row = cls.__new__(cls)
    refresh(row, values)
    return row


def refresh(row: object, values: Mapping[str, Any]) -> None:
    """Reset a row to the values of the database."""
    own = vars(row)
    kept = {attr: value for attr, value in own.items() if attr[:1] == "_"}
    own.clear()
    own.update(kept)
    own.update(values)
    own[_STATE] = _State(False, {attr: _fresh(value) for attr, value in values.items()})


def reference(cls: type[R], id: str) -> R:
    """A row of which only the id is known."""
    return load_row(cls, {"id": id})


def is_row(value: object) -> bool:
    """Is it a row, new or loaded?"""
    return _STATE in getattr(value, "__dict__", ())


def is_new(row: object) -> bool:
    """Was it created in Python and not saved yet?"""
    return _state(row).new


def is_reference(row: object) -> bool:
    """Is only its id known?"""
    return not is_new(row) and _state(row).known.keys() == {"id"}


def changes(row: object) -> dict[str, Any]:
    """The values to write, by attribute: those that differ from the defaults, or from what was loaded."""
    known, fields = _state(row).known, _defaults(type(row))
    now = {attr: value for attr, value in vars(row).items() if attr in fields}
    return {attr: value for attr, value in now.items() if not _same(value, known.get(attr, MISSING))}


def _same(now: Any, before: Any) -> bool:
    if is_row(now) and is_row(before) and not is_new(now):
        return type(now) is type(before) and bool(vars(now)["id"] == vars(before)["id"])
    return bool(now == before)


def _state(row: object) -> _State:
    state: _State = vars(row)[_STATE]
    return state
