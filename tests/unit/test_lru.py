"""A cache evicts what was used least recently, in any order of calls; and one that keeps one entry, however large."""

from __future__ import annotations

from random import Random

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


def test_it_evicts_what_was_used_least_recently_in_any_order_of_calls() -> None:
    random = Random(7)
    kept: LRUCache[int] = LRUCache("test", 4, 1_000_000)
    used: list[int] = []
    """The keys that it should have, the least recently used first."""
    for step in range(5_000):
        key = random.randrange(7) if random.random() < 0.7 or not used else used[-1]
        call = random.choice(("get", "get", "get", "put", "drop", "clear" if step % 50 == 0 else "get"))
        if call == "get":
            assert (kept.get(key) is not None) is (key in used)
            used = [*(each for each in used if each != key), key] if key in used else used
        elif call == "put":
            kept.put(key, step, 1)
            used = [*(each for each in used if each != key), key][-4:]
        elif call == "drop":
            kept.drop(key)
            used = [each for each in used if each != key]
        else:
            kept.clear()
            used = []
        assert [key for key, _ in kept.items()] == used
