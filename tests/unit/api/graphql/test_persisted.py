"""The memory of texts: bounded by count and by bytes, whatever is put into it."""

from __future__ import annotations

import sys
import timeit

from diptych.api.graphql.persisted import Texts, hash_of, is_hash


def test_a_hash_is_of_the_bytes_of_the_text() -> None:
    # the examples of GraphQL over HTTP, appendix A
    assert hash_of("query ($id: ID!) {\n  user(id: $id) {\n    name\n  }\n}") == (
        "7dba4bd717b41f10434822356a93c32b1fb4907b983e854300ad839f84cdcd6e"
    )
    assert (
        hash_of("query($id:ID!){user(id:$id){name}}")
        == "71f7dc5758652baac68e4a10c50be732b741c892ade2883a99358f52b555286b"
    )
    assert is_hash(hash_of("é")) and not is_hash(hash_of("é").upper())


def test_the_least_recently_used_goes_first() -> None:
    texts = Texts("texts", 3, 1_000_000)
    for name in "abc":
        texts.keep(name, name)
    assert texts.get("a") == ("a", float("inf"))
    texts.keep("d", "d", 5.0)
    assert [texts.get(name) for name in "abcd"] == [("a", float("inf")), None, ("c", float("inf")), ("d", 5.0)]


def test_bytes_are_counted_as_memory_has_them() -> None:
    texts = Texts("texts", 100, 10_000)
    for number in range(9):
        texts.keep(str(number), "x" * 1_000)
    assert len(texts) == 7 and texts.used <= 10_000
    texts.keep("wide", "\U0001f600" * 1_000)
    assert texts.used <= 10_000 and len(texts) == 2 and texts.get("wide") is not None
    texts.keep("too large", "é" * 2_000)
    assert texts.get("too large") is None and texts.get("wide") is not None
    texts.keep("wide", "now short")
    for name in [*map(str, range(9)), "wide"]:
        texts.drop(name)
    assert (len(texts), texts.used) == (0, 0)


def test_a_hundred_thousand_texts_leave_memory_flat() -> None:
    texts = Texts("texts", 1_000, 1_000_000)
    for number in range(100_000):
        text = f"{{ __typename }} # {number}" + ("é" if number % 7 == 0 else "x") * (number * 7919 % 3_000)
        texts.keep(f"{number:064x}", text)
    assert 300 < len(texts) <= 1_000 and texts.used <= 1_000_000
    held = [
        sys.getsizeof(part)
        for name, (text, _) in texts.items()
        for part in (name, text, b"" if text.isascii() else text.encode())
    ]
    assert sum(held) + sum(map(sys.getsizeof, (texts._kept,))) <= 1_000_000


def test_a_look_up_is_a_look_into_a_dictionary() -> None:
    texts = Texts("texts", 1_000, 10_000_000)
    names = [f"{number:064x}" for number in range(1_000)]
    for name in names:
        texts.keep(name, name)
    known = dict.fromkeys(names, "")
    looked = min(timeit.repeat(lambda: [texts.get(name) for name in names], number=5, repeat=40))
    floor = min(timeit.repeat(lambda: [known.get(name) for name in names], number=5, repeat=40))
    assert looked < 15 * floor
