"""LRU caches, bounded by entries and by bytes.

    plans: LRUCache[Plan] = LRUCache("plans of reads", 1_000, 16 << 20, second_sight=True)
    plans.put(key, plan, size)              the least recently used go until it fits
    plans.get(key)

    @memo("Accept headers", 256)            a function of a short text; long arguments are computed every time
    def negotiate(accept, offers): …

What clients send decides what is in a cache, so a number of entries is no bound: each may be as long as a request.
Every cache declares how many bytes it may hold, an entry that would take more than an eighth of them is not admitted,
and long keys are replaced by their digests (`digest`). All caches of the process are in `bounds()`; docs/limits.md
lists them, and a test holds the list against what grows under a storm of requests.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
_PLAIN = 256
"""Characters up to which a text is a key by itself."""
_ENTRY = 200
"""Bytes that an entry takes in the cache besides its key and its value."""
_SEEN = 160
"""Bytes that the hash of a key seen once takes."""
_SEEN_FACTOR = 4
"""Hashes that are kept for each entry."""
_LARGEST = 8
"""No entry takes more than this part of a cache."""
_caches: weakref.WeakSet[LRUCache[Any]] = weakref.WeakSet()
_declared: list[tuple[Bound, Any]] = []


class Bound(NamedTuple):
    """What a cache may hold at most."""

    name: str
    entries: int
    bytes: int


def bounds() -> list[Bound]:
    """The bound of every cache in this process, sorted by name."""
    return sorted([*(bound for bound, _ in _declared), *(cache.bound for cache in tuple(_caches))])


def caches() -> list[LRUCache[Any]]:
    """Every LRU cache in this process."""
    return list(_caches)


def memos() -> list[Any]:
    """Every `functools.lru_cache` that has a declared bound."""
    return [function for _, function in _declared]


def digest(text: str | bytes) -> str | bytes | int:
    """A text as a key: a short one is its own, a long one has its BLAKE2b digest, which is equal to no text."""
    if len(text) <= _PLAIN:
        return text
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return int.from_bytes(hashlib.blake2b(data, digest_size=32).digest())


def footprint(value: Any) -> int:
    """About how many bytes plain data takes: texts and numbers in tuples, lists, sets and mappings."""
    size, left = 0, [value]
    while left:
        each = left.pop()
        size += sys.getsizeof(each, 64)
        if isinstance(each, Mapping):
            left.extend(each.keys())
            left.extend(each.values())
        elif isinstance(each, list | tuple | set | frozenset):
            left.extend(each)
    return size


class Hashed:
    """A key with its hash computed once."""

    __slots__ = ("_hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and self.key == other.key


class LRUCache(Generic[T]):
    """An LRU cache of at most `entries` entries and `max_bytes` bytes.

    With `second_sight`, a key is admitted on its second `put`, so that one-off requests cannot evict what is used.
    """

    __slots__ = ("__weakref__", "_kept", "_largest", "_seen", "entries", "max_bytes", "name", "used")

    def __init__(
        self, name: str, entries: int, max_bytes: int, *, second_sight: bool = False, largest: int = _LARGEST
    ) -> None:
        self.name = name
        self.entries = entries
        self.max_bytes = max_bytes
        self._largest = max_bytes // largest
        self.used = 0
        """Bytes of all entries."""
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._seen: OrderedDict[int, None] | None = OrderedDict() if second_sight else None
        _caches.add(self)

    @property
    def bound(self) -> Bound:
        """What it may hold at most, with the hashes of keys that were seen once."""
        seen = 0 if self._seen is None else _SEEN_FACTOR * self.entries * _SEEN
        return Bound(self.name, self.entries, self.max_bytes + seen)

    def get(self, key: Hashable) -> T | None:
        """The value of a key, which is the most recently used from now on."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: T, size: int) -> None:
        """Keep a value of this many bytes, key included; least recently used entries make room for it."""
        if self._seen is not None and key not in self._kept and self._is_first(hash(key)):
            return
        self._put(key, value, size + _ENTRY)

    def grow(self, key: Hashable, more: int) -> None:
        """Count more bytes for an entry, if it is there."""
        found = self._kept.get(key)
        if found is not None:
            self._put(key, found[0], found[1] + more)

    def _put(self, key: Hashable, value: T, size: int) -> None:
        self.drop(key)
        if size > self._largest:
            return
        self._kept[key] = value, size
        self.used += size
        while len(self._kept) > self.entries or self.used > self.max_bytes:
            self.used -= self._kept.popitem(last=False)[1][1]

    def _is_first(self, mark: int) -> bool:
        """Was a key never put before? Then its hash is kept."""
        assert self._seen is not None
        if mark in self._seen:
            del self._seen[mark]
            return False
        self._seen[mark] = None
        if len(self._seen) > _SEEN_FACTOR * self.entries:
            self._seen.popitem(last=False)
        return True

    def drop(self, key: Hashable) -> None:
        """Forget a key, if it is there."""
        found = self._kept.pop(key, None)
        if found is not None:
            self.used -= found[1]

    def clear(self) -> None:
        """Forget all keys."""
        self._kept.clear()
        self.used = 0
        if self._seen is not None:
            self._seen.clear()

    def items(self) -> Iterator[tuple[Any, T]]:
        """All keys with their values, the least recently used first."""
        return ((key, value) for key, (value, _) in self._kept.items())

    def containers(self) -> list[object]:
        """The containers that it bounds."""
        return [self._kept, *([] if self._seen is None else [self._seen])]

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)


def declare(function: Any, name: str, each: int) -> None:
    """Declare the bound of a `functools.lru_cache` whose entries take at most `each` bytes."""
    entries = function.cache_parameters()["maxsize"]
    _declared.append((Bound(name, entries, entries * each), function))


class Memo(Protocol[P, T]):
    """A function with a cache."""

    __wrapped__: Callable[P, T]
    cache_clear: Callable[[], None]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...


def memo(
    name: str, entries: int, longest: int = _PLAIN, each: int = 8 * _PLAIN
) -> Callable[[Callable[P, T]], Memo[P, T]]:
    """Cache a function of a text, or of a text and something else, if the text has at most `longest` characters.

    An entry takes at most `each` bytes; what is cached must be in proportion to the text.
    """

    def decorate(function: Callable[P, T]) -> Memo[P, T]:
        cached: Any = functools.lru_cache(maxsize=entries)(function)
        whole: Any = function
        declare(cached, name, each)

        def of_one(text: Any) -> Any:
            return cached(text) if not text or len(text) <= longest else whole(text)

        def of_two(text: Any, more: Any) -> Any:
            return cached(text, more) if not text or len(text) <= longest else whole(text, more)

        given = len(inspect.signature(function).parameters)
        made: Any = functools.update_wrapper(of_one if given == 1 else of_two, function)
        made.cache_clear = cached.cache_clear
        return made  # type: ignore[no-any-return]

    return decorate
