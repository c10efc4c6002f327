"""A change is told to all members of a group exactly once: also where there are many, where some have no room, where one
leaves while others are told, and where whoever waited for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from diptych.demo.model import model
from diptych.engine import watch
from diptych.fair import pace
from diptych.live import group
from diptych.live import service as live
from tests.contract.http import data
from tests.contract.http.data import POST
from tests.support.following import Recorder, caller_of, follow, settle
from tests.support.following import told as told_all
from tests.support.in_process import Service, in_process

POSTS = "subscription { postChanged { kind rowId post { title } } }"
MANY = 757


@pytest.fixture(autouse=True)
def shortest_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have their turn whenever the clock is looked at."""
    monkeypatch.setattr(pace, "_SLICE", 0.0)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def service(runner: asyncio.Runner) -> Iterator[Service]:
    with in_process(model, "sqlite:///:memory:", runner, data.ROWS) as found:
        found.settle()
        yield found


def rename(service: Service, *titles: str) -> None:
    for title in titles:
        service.execute(f"UPDATE posts SET title = '{title}' WHERE id = '{POST[1]}'")


def titles(told: Recorder) -> list[str]:
    return [event["post"]["title"] for event in told.events]


def resumed(service: Service, cursor: str) -> list[str]:
    """What came after a cursor, by the log."""
    page = service.get(f"/posts/changes?after={cursor}").json()
    return [event["post"]["title"] for event in page["data"]]


def test_all_of_many_are_told_once(service: Service) -> None:
    told = [service.follow(POSTS) for _ in range(MANY)]
    rename(service, "one", "two")
    service.settle()
    assert {tuple(titles(each)) for each in told} == {("one", "two")}


def test_others_have_their_turn_while_many_are_told(service: Service, runner: asyncio.Runner) -> None:
    told = [service.follow(POSTS) for _ in range(MANY)]
    rename(service, "one")

    async def between() -> int:
        """How many were told when someone else had a turn for the first time."""
        task = asyncio.create_task(told_all(service.handler.live))
        while not any(each.bodies for each in told):
            await asyncio.sleep(0)
        found = sum(bool(each.bodies) for each in told)
        await task
        return found

    assert runner.run(between()) == group._IN_A_ROW


def test_all_are_told_although_whoever_looked_is_cancelled(service: Service, runner: asyncio.Runner) -> None:
    told = [service.follow(POSTS) for _ in range(MANY)]
    rename(service, "one", "two", "three")

    async def cancelled() -> None:
        task = asyncio.create_task(told_all(service.handler.live))
        while not any(each.bodies for each in told):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await settle(service.handler.live)

    runner.run(cancelled())
    assert {tuple(titles(each)) for each in told} == {("one", "two", "three")}


def test_one_who_goes_while_others_are_told_has_the_right_cursor(service: Service, runner: asyncio.Runner) -> None:
    told = [service.follow(POSTS) for _ in range(MANY)]
    rename(service, "one", "two")

    async def ended() -> None:
        task = asyncio.create_task(told_all(service.handler.live))
        while not any(each.bodies for each in told):
            await asyncio.sleep(0)
        await service.handler.live.close()
        await task

    runner.run(ended())
    heard = {len(each.bodies) for each in told}
    assert heard == {0, 1}
    for each in (next(each for each in told if len(each.bodies) == number) for number in heard):
        assert each.ended is not None
        assert titles(each) + resumed(service, each.ended[1]) == ["one", "two"]


def test_one_without_room_goes_on_by_itself_and_comes_back(service: Service, runner: asyncio.Runner) -> None:
    slow, quick = service.follow(POSTS), service.follow(POSTS)
    rename(service, "one")
    service.settle()
    slow.open.clear()
    rename(service, "two", "three")
    runner.run(told_all(service.handler.live))
    assert (titles(slow), titles(quick)) == (["one"], ["one", "two", "three"])
    assert slow.subscription is not None and slow.subscription.group is None
    slow.open.set()
    service.settle()
    assert titles(slow) == ["one", "two", "three"]
    assert slow.subscription.group is quick.subscription.group  # type: ignore[union-attr]  # never None here
    rename(service, "four")
    service.settle()
    assert titles(slow) == titles(quick) == ["one", "two", "three", "four"]


def test_one_without_room_has_a_cursor_that_leads_on(service: Service, runner: asyncio.Runner) -> None:
    slow = service.follow(POSTS)
    rename(service, "one")
    service.settle()
    slow.open.clear()
    rename(service, "two")

    async def ended() -> None:
        await told_all(service.handler.live)
        await service.handler.live.close()

    runner.run(ended())
    assert slow.ended is not None
    assert titles(slow) + resumed(service, slow.ended[1]) == ["one", "two"]


@pytest.mark.slow
def test_many_changes_at_once_give_everyone_a_moment_to_read(service: Service, runner: asyncio.Runner) -> None:
    """Who reads in time stays in the group, although there is no room for all of it at once."""
    many = [f"title {number}" for number in range(group._MANY * 2)]
    told = service.follow(POSTS)

    async def read() -> None:
        paused = 0
        while len(told.bodies) < len(many):
            told.open.set()
            await asyncio.sleep(0)
            if len(told.bodies) >= paused + 5:
                paused = len(told.bodies)
                told.open.clear()
                await asyncio.sleep(0.001)

    async def both() -> None:
        await asyncio.gather(read(), told_all(service.handler.live))

    rename(service, *many)
    runner.run(both())
    assert titles(told) == many
    assert told.subscription is not None and told.subscription.group is not None


@pytest.mark.parametrize("segment", [1, 3])
def test_a_long_way_is_gone_in_pieces(service: Service, monkeypatch: pytest.MonkeyPatch, segment: int) -> None:
    """Much that does not concern a follower lies between what does."""
    monkeypatch.setattr(watch, "_SEGMENT", segment)
    monkeypatch.setattr(live, "_REPLAYED", 2)
    first = service.follow(POSTS)
    begin = first.beats[0]
    for title in ("one", "two", "three"):
        rename(service, title)
        service.execute("UPDATE users SET name = name || '!'")
    service.settle()
    assert titles(first) == ["one", "two", "three"]
    assert resumed(service, begin) == ["one", "two", "three"]
    again = service.follow("subscription($c: String) { postChanged(after: $c) { post { title } } }", {"c": begin})
    service.settle()
    assert titles(again) == ["one", "two", "three"]
    assert again.subscription is not None and again.subscription.group is not None


def test_a_stream_has_a_cursor_before_anything_is_told(service: Service, runner: asyncio.Runner) -> None:
    async def begun() -> Recorder:
        return await follow(service.handler, await caller_of(service.handler, None), POSTS)

    told = runner.run(begun())
    assert len(told.beats) == 1
    rename(service, "one")
    assert resumed(service, told.beats[0]) == ["one"]


def test_whoever_is_on_a_long_way_without_a_change_is_told_how_far_it_was_gone(
    service: Service, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a connection that breaks on the way, as one where nothing comes for long does, need not begin it again."""
    monkeypatch.setattr(watch, "_SEGMENT", 2)
    begin = service.follow(POSTS).beats[0]
    for _ in range(5):
        service.execute("UPDATE users SET name = name || '!'")
    service.settle()
    live, original, pieces = service.handler.live, watch.BoundWatch.changes, 0

    async def slow(self: watch.BoundWatch, after: int, upto: int, most: int) -> watch.ChangeBatch:
        nonlocal pieces
        pieces += 1
        if pieces > 3:
            await asyncio.sleep(60)
        return await original(self, after, upto, most)

    monkeypatch.setattr(watch.BoundWatch, "changes", slow)

    async def go() -> Recorder:
        document = 'subscription($c: String) { postChanged(after: $c, where: {title: {eq: "none"}}) { kind } }'
        told = await follow(service.handler, await caller_of(service.handler, None), document, {"c": begin})
        while pieces <= 3:
            await asyncio.sleep(0.001)
        assert told.subscription is not None and told.subscription.group is None
        live._beat([told.subscription])
        live.end_stream(told.subscription, None)
        return told

    told = runner.run(go())
    monkeypatch.setattr(watch.BoundWatch, "changes", original)
    assert told.ended is not None
    opened = live.tail.change_cursors.open
    for cursor in (told.beats[-1], told.ended[1]):
        assert opened(cursor).position == opened(begin).position + 6
        assert resumed(service, cursor) == []
