"""Rows as plain Python objects, for the code of a model file.

    post = Post(title="x", body="y", author=ann)     a new row: all that has no default must be given
    post.published = True                            a field is assigned
    post.author.id                                   a relation to one leads to a row of which the id is known

A row keeps what it began with, so that `changes` tells what was given or assigned. What was not loaded is not
there: reading it raises an AttributeError that says what to do, and never gives a default of the class. A
*reference* is a row of which only the id was loaded; to-one relations of loaded rows are references.

`model/resource.py` hangs `start`, `read`, `assign` and `show` into Resource.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from diptych.model.declared import MISSING, Auto, Inverse, Now, Through, annotated

R = TypeVar("R")
_STATE = "__state__"


@dataclass(frozen=True, slots=True)
class _State:
    """What the database has of the row, or, if it is new, what it would fill in: the defaults of the class."""

    new: bool
    known: Mapping[str, Any]


_KNOWN: dict[type, Mapping[str, Any]] = {}


def _lines(cls: type) -> Mapping[str, Any]:
    """The fields and relations of a class, each with its default."""
    found = _KNOWN.get(cls)
    if found is None:
        found = _KNOWN[cls] = {each.attr: each.default for each in annotated(cls) if not each.is_class_variable}
    return found


# what Resource is made of


def start(row: object, /, *values: Any, **given: Any) -> None:
    """Make a new row of its fields: `Post(title="x", author=ann)`."""
    cls = type(row)
    if values:
        raise TypeError(f"{cls.__name__}() takes its fields by their names")
    known = {attr: default for attr, default in _lines(cls).items() if _not_assignable(default) is None}
    for attr in given:
        if attr not in known:
            raise TypeError(f"{cls.__name__}(): {_why_not(cls, attr)}")
    missing = [attr for attr, default in known.items() if default is MISSING and attr not in given]
    if missing:
        raise TypeError(f"{cls.__name__}() needs {', '.join(missing)}")
    own = object.__getattribute__(row, "__dict__")
    defaults = {attr: default for attr, default in known.items() if attr not in given}
    own[_STATE] = _State(True, defaults)
    own.update({attr: given[attr] if attr in given else _fresh(default) for attr, default in known.items()
                if attr in given or not isinstance(default, Now)})  # fmt: skip


def read(row: object, name: str) -> Any:
    """The value of an attribute; of a field only if it is known."""
    own = object.__getattribute__(row, "__dict__")
    if name in own:
        return own[name]
    if name[:1] != "_" and name in _lines(type(row)):
        raise AttributeError(_absent(row, name), name=name, obj=row)
    return object.__getattribute__(row, name)


def assign(row: object, name: str, value: Any) -> None:
    """Assign a field. What the database computed of the old values is then not known any more."""
    cls = type(row)
    if name[:1] == "_":
        return object.__setattr__(row, name, value)
    if name not in _lines(cls) or _not_assignable(_lines(cls)[name]):
        raise AttributeError(_why_not(cls, name), name=name, obj=row)
    own = vars(row)
    for computed in [attr for attr in own if attr[:1] != "_" and attr not in _lines(cls)]:
        del own[computed]
    own[name] = value
    return None


def show(row: object) -> str:
    """Which row it is; its values may be secret."""
    known = vars(row).get("id", "new")
    return f"<{type(row).__name__} {known}>"


def _not_assignable(default: Any) -> str | None:
    """Why a line with this default is not for Python to give; None if it is."""
    if isinstance(default, Auto):
        return "is filled by the server"
    return "leads to many rows" if isinstance(default, Inverse | Through) else None


def _why_not(cls: type, attr: str) -> str:
    why = _not_assignable(_lines(cls).get(attr, MISSING))
    if why:
        return f"{cls.__name__}.{attr} {why}, and cannot be given"
    if hasattr(cls, attr):
        return f"{cls.__name__}.{attr} is no field that can be given"
    return f"{cls.__name__} has no field '{attr}'"


def _absent(row: object, attr: str) -> str:
    name = type(row).__name__
    if isinstance(_lines(type(row))[attr], Inverse | Through):
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
    """A value of its own: JSON can be changed in place."""
    return copy.deepcopy(value) if isinstance(value, list | dict) else value


# what the server does with rows


def load(cls: type[R], values: Mapping[str, Any]) -> R:
    """A row as the database has it, of Python values by attribute: a to-one relation is a row, or None.

    What the database computed may stand among them.
    """
    row = cls.__new__(cls)
    refresh(row, values)
    return row


def refresh(row: object, values: Mapping[str, Any]) -> None:
    """The same row, as the database has it now."""
    own = vars(row)
    kept = {attr: value for attr, value in own.items() if attr[:1] == "_"}
    own.clear()
    own.update(kept)
    own.update(values)
    own[_STATE] = _State(False, {attr: _fresh(value) for attr, value in values.items()})


def reference(cls: type[R], id: str) -> R:
    """A row of which only the id is known."""
    return load(cls, {"id": id})


def is_row(value: object) -> bool:
    """Is it a row, new or loaded?"""
    return _STATE in getattr(value, "__dict__", ())


def is_new(row: object) -> bool:
    """Was it made in Python, and not saved yet?"""
    return _state(row).new


def is_reference(row: object) -> bool:
    """Is only its id known?"""
    return not is_new(row) and _state(row).known.keys() == {"id"}


def changes(row: object) -> dict[str, Any]:
    """What is to be written, by attribute: what a new row was given, what was assigned to a loaded one."""
    known, lines = _state(row).known, _lines(type(row))
    now = {attr: value for attr, value in vars(row).items() if attr in lines}
    return {attr: value for attr, value in now.items() if not _same(value, known.get(attr, MISSING))}


def _same(now: Any, before: Any) -> bool:
    if is_row(now) and is_row(before) and not is_new(now):
        return type(now) is type(before) and bool(vars(now)["id"] == vars(before)["id"])
    return bool(now == before)


def _state(row: object) -> _State:
    found: _State = vars(row)[_STATE]
    return found
