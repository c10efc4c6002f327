"""What is in memory: the bytes that belong to an object, and the containers that grow."""

from __future__ import annotations

import enum
import functools
import gc
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

_NOT_OWNED = (type, types.ModuleType, types.CodeType, types.BuiltinFunctionType, enum.Enum)


def owned(root: object, shared: set[int]) -> int:
    """The bytes of an object and of all that it leads to, but for what is shared; they are shared from then on."""
    size, left = 0, [root]
    while left:
        each = left.pop()
        if id(each) in shared or isinstance(each, _NOT_OWNED):
            continue
        shared.add(id(each))
        size += sys.getsizeof(each)
        if isinstance(each, types.FunctionType):
            left.extend([*(each.__closure__ or ()), *(each.__defaults__ or ())])
        else:
            left.extend(gc.get_referents(each))
    return size


def of_program(packages: Iterable[str]) -> set[int]:
    """The ids of all that the globals of some packages lead to: it is there once, whatever is asked."""
    shared: set[int] = set()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in packages:
            owned([each for each in vars(module).values() if not isinstance(each, types.FunctionType)], shared)
    return shared


def containers() -> Iterator[Any]:
    """Every dict, set, list and deque that is alive. (The garbage collector does not track dicts of plain values, so
    these are found by what refers to them.)"""
    seen: set[int] = set()
    kinds = (dict, set, list, deque)
    for tracked in gc.get_objects():
        for each in (tracked, *gc.get_referents(tracked)):
            if isinstance(each, kinds) and id(each) not in seen:
                seen.add(id(each))
                yield each


def lengths() -> list[tuple[Any, int]]:
    """Every container with its length."""
    found = list(containers())
    return [(each, len(each)) for each in found]


def holders(grown: object) -> str:
    """What refers to a container, to tell whose it is."""
    found = [each for each in gc.get_referrers(grown) if not isinstance(each, types.FrameType)]
    return ", ".join(f"{type(each).__module__}.{type(each).__qualname__}" for each in found[:4])


def lru_wrappers() -> list[Any]:
    """Every function of Diptych that `functools.lru_cache` was put around."""
    found = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
    return [each for each in found if each.__module__.startswith("diptych")]
