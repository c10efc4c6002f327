"""What all followers share is shared out by caller: streams, memory, and the time to evaluate what changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from diptych.compile.plan import Plan
from diptych.demo.model import model
from diptych.engine.watch import WatchMemory
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.live import evaluations, shares
from diptych.live.shares import Shares
from tests.contract.http import data
from tests.contract.http.data import POST
from tests.support.following import Recorder, caller_of, follow, is_idle, ready_for, settle
from tests.support.in_process import Service, in_process
from tests.support.machine import Machine
from tests.support.running import NewDatabase

T = TypeVar("T")
MEMORY = "sqlite:///:memory:"
TITLES = "subscription { postChanged { kind rowId post { title } } }"
NAMED = "subscription($t: String!) { postChanged(where: {title: {contains: $t}}) { rowId post { title } } }"
EXACT = "subscription($t: String!) { postChanged(where: {title: {eq: $t}}) { rowId post { title } } }"
MANY = 5_000
"""Different filters that one caller follows."""
STALL = 0.03
"""Seconds of processor time that the loop may be kept at a time; 5,000 filters take ten times as long together."""
PATIENCE = 20.0


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def service(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(model, new_database(), runner, data.ROWS) as found:
        found.settle()
        yield found


async def asking(who: str, work: Callable[[], Awaitable[T]]) -> T:
    """Something that a caller asks for."""
    token = CALLER.set(who)
    try:
        return await work()
    finally:
        CALLER.reset(token)


def following(service: Service, who: str, document: str = TITLES, **variables: Any) -> Recorder:
    """A caller begins to follow."""

    async def begin() -> Recorder:
        caller = await caller_of(service.handler, None)
        return await asking(who, lambda: follow(service.handler, caller, document, variables))

    return service.runner.run(begin())


def rename(service: Service, title: str) -> None:
    service.execute(f"UPDATE posts SET title = '{title}' WHERE id = '{POST[1]}'")


def titles(told: Recorder) -> list[str]:
    return [event["post"]["title"] for event in told.events]


async def until(holds: Callable[[], bool], why: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, why
        await asyncio.sleep(0.002)


@contextmanager
def held_up(service: Service, who: str) -> Iterator[list[asyncio.Future[None]]]:
    """What is evaluated for a caller takes for ever, until it is let go."""
    held: list[asyncio.Future[None]] = []
    run = service.app.store.run

    async def slowly(plan: Plan, parameters: Sequence[Any]) -> Any:
        if "AS _becomes" in plan.sql and CALLER.get() == who:
            held.append(asyncio.get_running_loop().create_future())
            await held[-1]
        return await run(plan, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.app.store, "run", slowly)
        yield held


def owe(service: Service, who: str, seconds: float) -> None:
    """A caller has used its time up, and so much more."""
    service.handler.live.shares.account(who).due = time.monotonic() + shares.BURST + seconds


# turns


def test_nobody_waits_for_what_is_evaluated_for_others(service: Service) -> None:
    """Neither a follower, nor one who begins to follow, nor the log; and one caller has one evaluation at a time."""
    bad = [following(service, "bad", NAMED, t=f"{number}") for number in range(20)]
    good = following(service, "good")
    live = service.handler.live

    async def meanwhile() -> None:
        with held_up(service, "bad") as held:
            await live.tail.refresh()
            await until(lambda: bool(held), "the other is evaluated")
            await until(lambda: titles(good) == ["1"], "others are told")
            caller = await caller_of(service.handler, None)
            later = await asking("late", lambda: follow(service.handler, caller, TITLES))
            ready, inputs = await ready_for(service.handler, caller, TITLES)
            page = await asking("log", lambda: live.log(ready, inputs, caller, 50))
            assert b'"title":"1"' in page.changes[-1]
            assert len(held) == 1
            while not is_idle(live):
                for each in held:
                    if not each.done():
                        each.set_result(None)
                await asyncio.sleep(0)
            assert len(held) == 20
            later.close()

    rename(service, "1")
    service.runner.run(meanwhile())
    assert [len(each.bodies) for each in bad] == [each == 1 for each in range(20)]


@pytest.mark.slow
def test_a_caller_without_time_is_told_later_and_all_at_once(service: Service) -> None:
    bad, good = following(service, "bad", NAMED, t="late"), following(service, "good")
    owe(service, "bad", 1.0)
    live = service.handler.live

    async def some() -> None:
        for number in range(1, 4):
            await rename_soon(service, f"late {number}")
            await live.tail.refresh()
            await until(lambda number=number: len(good.bodies) == number, "others are told at once")  # type: ignore[misc]  # mypy infers no type of its default
        assert bad.bodies == []
        seen = await counted(service, lambda: settle(live))
        assert seen == 1

    service.runner.run(some())
    assert titles(bad) == titles(good) == ["late 1", "late 2", "late 3"]


async def rename_soon(service: Service, title: str) -> None:
    await service.execute_soon(f"UPDATE posts SET title = '{title}' WHERE id = '{POST[1]}'")


async def counted(service: Service, work: Callable[[], Awaitable[None]]) -> int:
    """How many evaluations something takes."""
    count = 0
    run = service.app.store.run

    async def noted(plan: Plan, parameters: Sequence[Any]) -> Any:
        nonlocal count
        count += "AS _becomes" in plan.sql
        return await run(plan, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.app.store, "run", noted)
        await work()
    return count


def test_a_group_is_evaluated_in_the_time_of_the_caller_who_has_used_least(service: Service) -> None:
    bad = [following(service, f"bad {number}") for number in range(40)]
    good = following(service, "good")
    for number in range(40):
        owe(service, f"bad {number}", 1000.0)
    for title in ("1", "2", "3"):  # of very many callers, some are asked each time
        rename(service, title)
        service.runner.run(service.handler.live.tail.refresh())
    service.settle()
    assert titles(good) == ["1", "2", "3"] and all(titles(each) == titles(good) for each in bad)


def test_one_who_comes_to_a_group_that_waits_has_it_evaluated_in_its_own_time(service: Service) -> None:
    bad = following(service, "bad")
    owe(service, "bad", 1000.0)
    rename(service, "1")
    service.runner.run(service.handler.live.tail.refresh())
    good = following(service, "good")
    rename(service, "2")
    service.settle()
    assert (titles(bad), titles(good)) == (["1", "2"], ["2"])


@pytest.mark.slow
def test_what_was_missed_is_told_in_the_time_of_its_caller(service: Service) -> None:
    begin = service.end_of_changes()
    rename(service, "1")
    owe(service, "worse", 1000.0)
    owe(service, "bad", 1.0)
    document = "subscription($a: String) { postChanged(after: $a) { post { title } } }"
    worse, bad, good = (following(service, who, document, a=begin) for who in ("worse", "bad", "good"))
    service.runner.run(until(lambda: titles(good) == ["1"], "others are told"))
    assert bad.bodies == []
    service.runner.run(until(lambda: titles(bad) == ["1"], "it is told when it has time"))
    assert worse.bodies == []


def test_one_who_is_too_late_ends_with_a_cursor_that_leads_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluations, "LATEST", 0.01)
    monkeypatch.setattr(shares, "BURST", 0.5)
    bad, good = following(service, "bad", NAMED, t=""), following(service, "good")
    rename(service, "1")
    service.settle()
    service.handler.live.shares.account("bad").due = time.monotonic() + 0.7
    rename(service, "2")
    service.runner.run(service.handler.live.tail.refresh())
    service.runner.run(until(lambda: bad.ended is not None, "it is cut"))
    assert bad.ended is not None and bad.ended[0] is not None
    refusal, cursor = bad.ended[0], bad.ended[1]
    assert refusal.code is Code.RATE_LIMITED and refusal.more["retryAfter"] >= 5
    page = service.changes(f"/posts/changes?after={cursor}&fields=title")
    assert titles(bad) + [each["post"]["title"] for each in page["data"]] == ["1", "2"] == titles(good)
    assert good.ended is None


def test_one_whose_streams_are_late_gets_no_more_of_them(service: Service) -> None:
    following(service, "bad", NAMED, t="x")
    owe(service, "bad", 1000.0)
    rename(service, "1")

    async def late() -> None:
        account = service.handler.live.shares.account("bad")
        await service.handler.live.tail.refresh()
        await until(lambda: bool(account.works), "it waits")
        next(iter(account.works)).since -= 100.0

    service.runner.run(late())
    with pytest.raises(Refusal) as refused:
        following(service, "bad", NAMED, t="y")
    assert refused.value.code is Code.RATE_LIMITED
    following(service, "good")


def test_a_debt_is_not_forgotten_by_who_goes_and_comes_again(service: Service) -> None:
    told = following(service, "bad")
    owe(service, "bad", 1000.0)
    told.close()
    assert service.handler.live.shares.account("bad").due > time.monotonic()


# the loop


@pytest.mark.slow
def test_thousands_of_filters_do_not_keep_the_loop(runner: asyncio.Runner) -> None:
    """Whoever has something to do meanwhile has its turn every few milliseconds."""
    with in_process(model, MEMORY, runner, data.ROWS, stream_share=0.0, evaluation_share=0.0) as service:
        machine = Machine()
        found = runner.run(_longest(service))
    print(f"the longest stall with {MANY} filters: {found * 1e3:.1f} ms")
    assert found < machine.limit(STALL)


async def _longest(service: Service) -> float:
    """The most processor time that passes between two turns of someone else, while a change is evaluated for all."""
    handler, live = service.handler, service.handler.live
    caller = await caller_of(handler, None)
    ready, _ = await ready_for(handler, caller, EXACT, {"t": ""})
    told = [Recorder() for _ in range(MANY)]

    async def begin() -> None:
        for number, each in enumerate(told):
            await live.subscribe(ready, {"t": f"no {number}"}, caller, each)

    await asking("bad", begin)
    good = await asking("good", lambda: follow(handler, caller, TITLES))
    longest = 0.0
    await rename_soon(service, "no 7")
    settling = asyncio.create_task(live.tail.refresh())
    begun = time.thread_time()
    while not settling.done() or not is_idle(live):
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, begun = max(longest, now - begun), now
    assert titles(good) == ["no 7"] and len(told[7].bodies) == 1
    return longest


# streams and memory


def test_a_caller_has_a_part_of_the_streams_that_are_free(service: Service) -> None:
    live = service.handler.live
    live.shares.streams = 40
    taken = {}
    for who in ("a", "b", "c"):
        taken[who] = streams(service, who)
    assert [len(each) for each in taken.values()] == [10, 7, 5]
    with pytest.raises(Refusal) as refused:
        following(service, "a")
    assert refused.value.code is Code.RATE_LIMITED
    assert refused.value.more == {"allowed": 7, "retryAfter": 5}
    taken["a"].pop().close()
    one_more = 0
    for number in range(50):  # there is room for others who want one, up to the last
        try:
            following(service, f"{number}")
            one_more += 1
        except Refusal as refusal:
            assert refusal.code is Code.UNAVAILABLE and one_more == 40 - 21
            break


def test_streams_that_are_opened_at_once_are_counted_with_one_another(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the one that kept the account of its caller ends meanwhile."""
    live = service.handler.live
    live.shares.streams = 40
    first = following(service, "a")
    refresh, goes_on = live.tail.refresh, asyncio.Event()

    async def slowly() -> None:
        await refresh()
        await goes_on.wait()

    monkeypatch.setattr(live.tail, "refresh", slowly)

    async def many() -> list[Any]:
        caller = await caller_of(service.handler, None)
        begun = [asyncio.create_task(asking("a", lambda: follow(service.handler, caller, TITLES))) for _ in range(20)]
        await asyncio.sleep(0.05)
        first.close()
        goes_on.set()
        return await asyncio.gather(*begun, return_exceptions=True)

    found = service.runner.run(many())
    assert sum(isinstance(each, Recorder) for each in found) == 10
    assert live.shares.account("a").streams == live.shares.taken == 10


def streams(service: Service, who: str) -> list[Recorder]:
    found: list[Recorder] = []
    while True:
        try:
            found.append(following(service, who))
        except Refusal:
            return found


def test_what_streams_hold_is_bounded_in_bytes_by_caller_and_in_all(service: Service) -> None:
    live = service.handler.live
    live.shares.memory = 4_000_000
    taken: dict[str, list[Recorder]] = {}
    for who in ("a", "b"):
        taken[who] = []
        with pytest.raises(Refusal) as refused:
            while True:
                taken[who].append(following(service, who, EXACT, t=f"{len(taken[who])}" + "x" * 99_000))
        assert refused.value.code is Code.RATE_LIMITED
    assert [len(each) for each in taken.values()] == [9, 7]
    assert following(service, "c").ended is None
    for each in (*taken["a"], *taken["b"]):
        each.close()
    assert live.shares.bytes < 100_000
    with pytest.raises(Refusal) as refused:
        following(service, "", EXACT, t="x" * 4_000_000)
    assert refused.value.code is Code.UNAVAILABLE


def test_equal_statements_are_counted_once() -> None:
    found = Shares(100, 1_000_000, 0.25, 0.2)
    one, other = found.account("one"), found.account("other")
    held = WatchMemory("SELECT 1", 1_000, 10)
    for account in (one, one, other):
        found.check(account, held)
        found.take(account, held)
    assert (one.bytes, other.bytes, found.bytes) == (1_020, 1_010, 1_030)
    for account in (one, one, other):
        found.give(account, held)
    assert (one.bytes, other.bytes, found.bytes, found.taken) == (0, 0, 0, 0)
    assert not found.statements and not found._accounts


def test_accounts_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "_DEBTORS", 100)
    found = Shares(10, 1_000, 0.25, 0.2)
    for number in range(1_000):
        found.spend(found.account(f"{number}"), 60.0 + number / 1_000)
        assert len(found._accounts) <= 112
    assert "999" in found._accounts
