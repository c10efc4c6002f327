"""Numbers the slots of an Ask from 0, so that Asks of requests of several parts can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from diptych.model.rules.expr import Slot
from diptych.model.scalars import Scalar

T = TypeVar("T")


def renumbered(ask: T) -> tuple[T, list[int]]:
    """The same Ask with its slots numbered in their order, and the numbers that they had."""
    used = sorted({slot.index for slot in _slots(ask)})
    return cast(T, _replaced(ask, {index: number for number, index in enumerate(used)})), used


def _slots(node: Any) -> Iterator[Slot]:
    if isinstance(node, Slot):
        yield node
    else:
        for part in _parts(node):
            yield from _slots(part)


def _parts(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        yield from node
    elif isinstance(node, Struct) and not isinstance(node, Scalar):
        yield from (getattr(node, name) for name in node.__struct_fields__)


def _replaced(node: Any, numbers: Mapping[int, int]) -> Any:
    if isinstance(node, Slot):
        return replace(node, index=numbers[node.index])
    if isinstance(node, tuple):
        return tuple(_replaced(part, numbers) for part in node)
    if isinstance(node, Struct) and not isinstance(node, Scalar):
        return replace(node, **{name: _replaced(getattr(node, name), numbers) for name in node.__struct_fields__})
    return node
