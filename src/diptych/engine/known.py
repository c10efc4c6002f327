"""The cache of prepared requests, which both API styles look up before they plan: recognise → meter → prepare → keep.

    known = requests.get(key)
    if known is None:
        with requests.planning():                         charged to the caller
            known = …
        requests.keep(key, known)                         cached when seen twice

A key holds everything of a request but its values: the names, the shape of the arguments, the signature of the role.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from diptych.engine.plan_cache import Sized
from diptych.engine.read import Engine
from diptych.lru import footprint

T = TypeVar("T", bound=Sized)


class KnownRequests(Generic[T]):
    """An LRU cache of prepared requests of one kind; a request is admitted when it is seen twice."""

    __slots__ = ("_budget", "_cache", "get")

    def __init__(self, engine: Engine, name: str) -> None:
        self._cache = engine.cache(name)
        self._budget = engine.planning_budget
        self.get: Callable[[Hashable], T | None] = self._cache.get
        """Look up a key."""

    def planning(self) -> AbstractContextManager[None]:
        """Charge the work inside to the planning budget of the caller."""
        return self._budget.planning()

    def keep(self, key: Hashable, known: T, *, shape: object = None) -> None:
        """Cache a prepared request; `shape` is the part of the key whose length the client decides."""
        self._cache.put(key, known, known.size + footprint(shape))
