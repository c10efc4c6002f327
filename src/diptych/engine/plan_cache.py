"""A cache of compiled plans, keyed by the Ask, the signature of the role, and the page sizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, Protocol, TypeVar

from diptych.lru import LRUCache, PrehashedKey
from diptych.model.view import View


class Sized(Protocol):
    """A value with a size in bytes, for caches that are bounded by bytes."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=Sized)


class PlanCache(Generic[T]):
    """An LRU cache of plans. Page sizes are part of a key only where they change the statement."""

    __slots__ = ("_plans", "_sees_limits")

    def __init__(self, plans: LRUCache[T], *, sees_limits: bool) -> None:
        self._plans = plans
        self._sees_limits = sees_limits

    def get(self, ask: Hashable, view: View, sizes: Mapping[int, int], compile: Callable[[], T]) -> T:
        """The plan of an Ask for a role; compiled on a miss."""
        key = PrehashedKey((ask, view.signature, tuple(sizes.items()) if self._sees_limits else ()))
        plan = self._plans.get(key)
        if plan is None:
            plan = compile()
            self._plans.put(key, plan, plan.size)
        return plan
