"""`dataclass` as in the standard library, but each of its methods is compiled when it is first called.

    from diptych.dataclass import dataclass

Compiling `__init__`, `__repr__`, `__eq__`, `__hash__` and the rest of some two hundred classes takes a quarter of a
start, and a process needs few of them. Here a method is a stub until its first call: then the standard library makes it
for a class with the same fields, and it takes the place of the stub. From then on it is the very same function.

Type checkers see the standard decorator. Only the options below are taken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields, make_dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        init: bool = True,
        repr: bool = True,
        eq: bool = True,
        frozen: bool = False,
        slots: bool = False,
        kw_only: bool = False,
    ) -> Any:
        """The decorator of the standard library, with methods that are compiled on their first call."""

        def decorate(cls: type) -> type:
            own = vars(cls)
            # a class that defines __eq__ and no __hash__ has a __hash__ of None, which it did not define
            hashes = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
            wanted = [("__init__", init), ("__repr__", repr), ("__eq__", eq)]
            names = [name for name, is_wanted in wanted if is_wanted and name not in own]
            cls.__doc__ = cls.__doc__ or cls.__name__  # else it would be made, from the signature of __init__
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            if eq and not hashes:
                made.__hash__ = None
                names += ["__hash__"] if frozen else []
            for name in names:
                setattr(made, name, _stub(made, name, frozen))
            if frozen:
                made.__setattr__, made.__delattr__ = _refuse_value, _refuse_deletion
                made.__getstate__, made.__setstate__ = _state, _set_state
            return made

        return decorate if cls is None else decorate(cls)


def _stub(cls: type[Any], name: str, frozen: bool) -> Callable[..., Any]:
    """A method that compiles the real one, puts it in its own place, and calls it."""

    def method(*args: Any, **kwargs: Any) -> Any:
        compiled = _compiled(cls, name, frozen)
        setattr(cls, name, compiled)
        return compiled(*args, **kwargs)

    return method


def _compiled(cls: type[Any], name: str, frozen: bool) -> Any:
    """The method that the standard library makes for a class with the same fields."""
    same = [(field.name, object, _copy(field)) for field in fields(cls)]
    hook = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
    model = make_dataclass(
        cls.__name__,
        same,
        namespace=hook,
        init=name == "__init__",
        repr=name == "__repr__",
        eq=name in ("__eq__", "__hash__"),
        frozen=frozen,
    )
    method = vars(model)[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


def _copy(field: dataclasses.Field[Any]) -> Any:
    default: dict[str, Any] = {}
    if field.default is not MISSING:
        default["default"] = field.default
    if field.default_factory is not MISSING:
        default["default_factory"] = field.default_factory
    return dataclasses.field(
        init=field.init, repr=field.repr, hash=field.hash, compare=field.compare, kw_only=field.kw_only, **default
    )


def _is_frozen(row: Any, name: str) -> bool:
    """May an attribute not be set? A subclass that is no dataclass may have others."""
    return "__dataclass_fields__" in vars(type(row)) or name in type(row).__dataclass_fields__


def _refuse_value(self: Any, name: str, value: Any) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deletion(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
