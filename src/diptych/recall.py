"""A bounded memory that keeps what is seen twice, so that one-off requests cannot flush it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Hashed:
    """A key that is dear to hash, hashed once."""

    __slots__ = ("_hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and self.key == other.key


class Recall(Generic[T]):
    """Least recently used goes first. A key is kept from its second `put` on; the first is only noted."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._noted: OrderedDict[int, None] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Hashable, value: T) -> None:
        mark = hash(key)
        if mark not in self._noted:
            self._noted[mark] = None
            if len(self._noted) > 4 * self.size:
                self._noted.popitem(last=False)
            return
        del self._noted[mark]
        self._kept[key] = value
        if len(self._kept) > self.size:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)
