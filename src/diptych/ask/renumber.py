"""Numbers the slots of an Ask from 0, so that Asks of requests of several parts can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

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
    elif is_dataclass(node) and not isinstance(node, Scalar | type):
        yield from (getattr(node, part.name) for part in fields(node))


def _replaced(node: Any, numbers: Mapping[int, int]) -> Any:
    if isinstance(node, Slot):
        return replace(node, index=numbers[node.index])
    if isinstance(node, tuple):
        return tuple(_replaced(part, numbers) for part in node)
    if is_dataclass(node) and not isinstance(node, Scalar | type):
        return replace(node, **{part.name: _replaced(getattr(node, part.name), numbers) for part in fields(node)})
    return node
