"""A request that is too dear is told which page would have to be smaller: exactly as small as it has to be."""

from __future__ import annotations

from random import Random

from diptych.ask.page_hint import PagedList, PageHint, page_hint
from tests.support.effort import scaled


def price(constant: int, lists: list[PagedList]) -> int:
    """The price, written out."""

    def inside(at: int) -> int:
        rows = ((number, each) for number, each in enumerate(lists, 1) if each.outer == at)
        return sum(each.size * (each.row_price + inside(number)) for number, each in rows)

    return constant + inside(0)


def path(lists: list[PagedList], number: int) -> str:
    each = lists[number - 1]
    return f"{path(lists, each.outer)}.{each.name}" if each.outer else each.name


def test_the_list_that_keeps_most_of_its_page_is_named() -> None:
    lists = [PagedList(0, 20, 1, "users"), PagedList(1, 20, 1, "posts"), PagedList(2, 20, 1, "comments")]
    hint = page_hint(0, lists, 5_000)
    assert hint == PageHint("users.posts.comments", 20, 11)
    assert str(hint) == "A `first` of at most 11 on users.posts.comments, instead of 20, would help."


def test_where_no_single_list_is_enough_all_of_them_are() -> None:
    lists = [PagedList(0, 100, 1, "users"), PagedList(1, 100, 1, "posts"), PagedList(2, 100, 1, "comments")]
    assert page_hint(0, lists, 5_000) == PageHint("", 0, 16)
    assert str(page_hint(0, lists, 5_000)) == "A `first` of at most 16 on each of its lists would help."
    assert page_hint(5_001, lists, 5_000) is None
    assert page_hint(7, [], 5) is None


def test_a_long_name_is_cut() -> None:
    hint = page_hint(0, [PagedList(0, 100, 1, "a" * 4_000)], 50)
    assert hint is not None and len(hint.list) == 201


def test_what_is_named_is_enough_and_one_more_is_too_many() -> None:
    random = Random(7)
    for _ in range(scaled(5_000, 300)):
        lists: list[PagedList] = []
        for number in range(random.randint(1, 6)):
            lists.append(
                PagedList(random.randint(0, number), random.randint(1, 100), random.randint(0, 3), f"n{number}")
            )
        constant, allowed = random.randint(0, 20), random.randint(1, 5_000)
        if price(constant, lists) <= allowed:
            continue
        hint = page_hint(constant, lists, allowed)
        if hint is None:
            assert price(constant, [each._replace(size=1) for each in lists]) > allowed
            continue
        for first, fits in ((hint.first, True), (hint.first + 1, False)):
            smaller = [each._replace(size=min(each.size, first)) for each in lists]
            named = [
                less if hint.list in ("", path(lists, number)) else each
                for number, (each, less) in enumerate(zip(lists, smaller, strict=True), 1)
            ]
            assert (price(constant, named) <= allowed) is fits, (lists, constant, allowed, hint)
