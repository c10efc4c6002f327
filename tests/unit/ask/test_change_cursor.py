"""The ids of events: stable, distinct, and silent about their place in the feed."""

from __future__ import annotations

from diptych.ask.change_cursor import EventIds, FeedPosition


def test_an_id_depends_on_the_secret_the_position_and_the_mark_alone() -> None:
    ids = EventIds(b"a" * 32)
    assert ids.of(FeedPosition(7, 9)) == EventIds(b"a" * 32).of(FeedPosition(7, 9))
    others = {ids.of(FeedPosition(8, 9)), ids.of(FeedPosition(7, 8)), EventIds(b"b" * 32).of(FeedPosition(7, 9))}
    assert len({*others, ids.of(FeedPosition(7, 9))}) == 4


def test_ids_are_short_fit_into_a_header_and_are_in_no_order() -> None:
    ids = [EventIds(b"a" * 32).of(FeedPosition(position, 0)) for position in range(1_000)]
    assert len(set(ids)) == 1_000 and {len(each) for each in ids} == {20}
    assert all(each.replace("-", "").replace("_", "").isalnum() for each in ids)
    assert ids != sorted(ids) and not ids[0].startswith(ids[1][:8])
