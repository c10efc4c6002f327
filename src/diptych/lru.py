"""LRU caches, bounded by entries and by bytes.

    plans: LRUCache[Plan] = LRUCache("plans of reads", 1_000, 16 << 20, second_sight=True)
    plans.put(key, plan, size)              the least recently used entries are evicted until it fits
    plans.get(key)

    @memo("Accept headers", 256)            a function of a short text; long arguments are computed every time
    def negotiate(accept, offers): …

Clients decide what is in a cache, so a number of entries alone is no bound: an entry may be as long as a request.
Every cache declares how many bytes it may hold, an entry that would take more than an eighth of them is not admitted,
and long keys are replaced by their digests (`cache_key`). All caches of the process are in `bounds()`;
docs/reference/limits.md lists them, and a test holds the list against what grows under a storm of requests.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, cast

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
"""An entry takes at most one part in this many of its cache."""
_caches: weakref.WeakSet[LRUCache[Any]] = weakref.WeakSet()
_declared: list[tuple[CacheBound, Any]] = []
_misses: dict[str, list[int]] = {}
"""Misses of all caches of this process, by name. Hits are not counted: there are several in every request."""


class CacheBound(NamedTuple):
    """What a cache may hold at most."""

    name: str
    entries: int
    bytes: int


def bounds() -> list[CacheBound]:
    """The bound of every cache in this process, sorted by name."""
    return sorted([*(bound for bound, _ in _declared), *(cache.bound for cache in tuple(_caches))])


def misses() -> dict[str, int]:
    """Look-ups of all caches so far that found no entry, by name."""
    return {name: count for name, (count,) in _misses.items()}


def sizes() -> dict[str, int]:
    """The bytes in use of all caches, by name."""
    used: dict[str, int] = {}
    for cache in tuple(_caches):
        used[cache.name] = used.get(cache.name, 0) + cache.used
    return used


def cache_key(text: str | bytes) -> str | bytes | int:
    """A text as a key: a short one is its own, a long one has its BLAKE2b digest, which is equal to no text."""
    if len(text) <= _PLAIN:
        return text
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return int.from_bytes(hashlib.blake2b(data, digest_size=32).digest())


def footprint(value: Any) -> int:
    """About how many bytes plain data takes: texts and numbers in tuples, lists, sets and mappings."""
    size, left = 0, [value]
    while left:
        item = left.pop()
        size += sys.getsizeof(item, 64)
        if isinstance(item, Mapping):
            left.extend(item.keys())
            left.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            left.extend(item)
    return size


class PrehashedKey:
    """A key with its hash computed once."""

    __slots__ = ("_hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrehashedKey) and self.key == other.key


class LRUCache(Generic[T]):
    """An LRU cache of at most `entries` entries and `max_bytes` bytes.

    With `second_sight`, a key is admitted on its second `put`, so that one-off requests cannot evict what is used.
    With `keeps_one`, an entry that is too large for the cache is kept alone: what depends on the model alone, and is
    larger with a larger model, must not be made anew for every request.
    """

    __slots__ = (
        "__weakref__",
        "_keeps_one",
        "_kept",
        "_largest",
        "_newest",
        "_seen",
        "entries",
        "get",
        "max_bytes",
        "name",
        "used",
    )

    def __init__(
        self,
        name: str,
        entries: int,
        max_bytes: int,
        *,
        second_sight: bool = False,
        largest: int = _LARGEST,
        keeps_one: bool = False,
    ) -> None:
        self.name = name
        self.entries = entries
        self.max_bytes = max_bytes
        self._keeps_one = keeps_one
        self._largest = max_bytes if keeps_one else max_bytes // largest
        self.used = 0
        """Bytes of all entries."""
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._newest: list[tuple[T, int] | None] = [None]
        """The most recently used entry, if it is known: it needs no move, for which its key is hashed once more."""
        self._seen: OrderedDict[int, None] | None = OrderedDict() if second_sight else None
        self.get = self._getting(_misses.setdefault(name, [0]))
        """The value of a key, which becomes the most recently used."""
        _caches.add(self)

    def _getting(self, misses: list[int]) -> Callable[[Hashable], T | None]:
        """The function `get`. It is called several times for every request: all that it needs is a local name."""
        find, touch, newest = self._kept.get, self._kept.move_to_end, self._newest

        def get(key: Hashable) -> T | None:
            entry = find(key)
            if entry is None:
                misses[0] += 1
                return None
            if entry is not newest[0]:
                touch(key)
                newest[0] = entry
            return entry[0]

        return get

    @property
    def bound(self) -> CacheBound:
        """The bound of the cache, including the hashes of keys that were seen once."""
        seen = 0 if self._seen is None else _SEEN_FACTOR * self.entries * _SEEN
        return CacheBound(self.name, self.entries, self.max_bytes + seen)

    def put(self, key: Hashable, value: T, size: int) -> None:
        """Store a value of this many bytes, key included; the least recently used entries are evicted to make room."""
        if self._seen is not None and key not in self._kept and self._is_first(hash(key)):
            return
        self._put(key, value, size + _ENTRY)

    def grow(self, key: Hashable, more: int) -> None:
        """Count more bytes for an entry, if it is there."""
        entry = self._kept.get(key)
        if entry is not None:
            self._put(key, entry[0], entry[1] + more)

    def _put(self, key: Hashable, value: T, size: int) -> None:
        self.drop(key)
        if size > self._largest:
            if not self._keeps_one:
                return
            self.clear()
        self._kept[key] = self._newest[0] = value, size
        self.used += size
        kept_alone = self._keeps_one and len(self._kept) == 1
        while len(self._kept) > self.entries or (self.used > self.max_bytes and not kept_alone):
            self.used -= self._kept.popitem(last=False)[1][1]

    def _is_first(self, mark: int) -> bool:
        """Is this the first put of a key? Then its hash is remembered."""
        assert self._seen is not None
        if mark in self._seen:
            del self._seen[mark]
            return False
        self._seen[mark] = None
        if len(self._seen) > _SEEN_FACTOR * self.entries:
            self._seen.popitem(last=False)
        return True

    def drop(self, key: Hashable) -> None:
        """Remove a key, if it is there."""
        entry = self._kept.pop(key, None)
        if entry is not None:
            self.used -= entry[1]
            self._newest[0] = None

    def clear(self) -> None:
        """Remove all keys."""
        self._kept.clear()
        self._newest[0] = None
        self.used = 0
        if self._seen is not None:
            self._seen.clear()

    def items(self) -> Iterator[tuple[Any, T]]:
        """All keys with their values, the least recently used first."""
        return ((key, value) for key, (value, _) in self._kept.items())

    def __len__(self) -> int:
        return len(self._kept)


def declare(function: Any, name: str, entry_bytes: int) -> None:
    """Declare the bound of a `functools.lru_cache` whose entries take at most `entry_bytes` bytes."""
    entries = function.cache_parameters()["maxsize"]
    _declared.append((CacheBound(name, entries, entries * entry_bytes), function))


class Memo(Protocol[P, T]):
    """A function with a cache."""

    __wrapped__: Callable[P, T]
    cache_clear: Callable[[], None]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...


def memo(
    name: str, entries: int, longest: int = _PLAIN, entry_bytes: int = 8 * _PLAIN
) -> Callable[[Callable[P, T]], Memo[P, T]]:
    """Cache a function of a text, or of a text and something else, if the text has at most `longest` characters.

    An entry takes at most `entry_bytes` bytes; what is cached must be in proportion to the text.
    """

    def decorate(function: Callable[P, T]) -> Memo[P, T]:
        cached: Any = functools.lru_cache(maxsize=entries)(function)
        whole: Any = function
        declare(cached, name, entry_bytes)

        def of_one(text: Any) -> Any:
            return cached(text) if not text or len(text) <= longest else whole(text)

        def of_two(text: Any, more: Any) -> Any:
            return cached(text, more) if not text or len(text) <= longest else whole(text, more)

        arity = len(inspect.signature(function).parameters)
        wrapper: Any = functools.update_wrapper(of_one if arity == 1 else of_two, function)
        wrapper.cache_clear = cached.cache_clear
        return cast(Memo[P, T], wrapper)

    return decorate
