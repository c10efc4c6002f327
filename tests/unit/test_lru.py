"""A cache that keeps one entry, however large it is."""

from __future__ import annotations

from diptych.lru import LRUCache


def test_what_is_too_large_is_kept_alone_where_it_must_not_be_made_anew() -> None:
    kept: LRUCache[str] = LRUCache("test", 4, 1_000, keeps_one=True)
    kept.put("small", "a", 10)
    kept.put("large", "b", 100_000)
    assert (kept.get("small"), kept.get("large"), len(kept)) == (None, "b", 1)
    kept.put("next", "c", 10)
    assert (kept.get("large"), kept.get("next")) == (None, "c")
    others: LRUCache[str] = LRUCache("test", 4, 1_000)
    others.put("large", "b", 100_000)
    assert others.get("large") is None
