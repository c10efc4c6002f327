"""The line and the places themselves: who is next, who must wait, and that no place is ever lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from diptych.db.postgres.pool import Pool
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER, peer_name
from diptych.fair.loop_budget import loop_budget
from diptych.fair.queue import FairQueue
from diptych.fair.semaphore import FairSemaphore
from tests.support.cases import cases
from tests.support.effort import scaled


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        await work()

    asyncio.run(all_of_it())


# the line


def emptied(line: FairQueue[str]) -> str:
    found = []
    while (item := line.pop()) is not None:
        found.append(item[1])
    return " ".join(found)


def test_one_of_each_caller_in_turn() -> None:
    line: FairQueue[str] = FairQueue(100)
    for item in ("a1", "a2", "a3", "b1", "c1", "c2"):
        line.put(item[0], item)
    assert emptied(line) == "a1 b1 c1 a2 c2 a3"
    assert len(line) == 0


def test_who_rejoins_comes_after_all_that_wait() -> None:
    line: FairQueue[str] = FairQueue(100)
    for item in ("s1", "s2", "a1", "a2", "b1"):
        line.put("" if item[0] == "s" else item[0], item)
    line.rejoin("a")
    line.rejoin("")  # the service itself stays before all
    line.rejoin("nobody")
    assert emptied(line) == "s1 s2 b1 a1 a2"
    line.put("a", "a1")
    line.put("b", "b1")
    taken = line.take()
    assert taken is not None and taken.item == "a1"
    line.put("a", "a2")
    line.rejoin("b")
    line.put_back([taken])
    assert emptied(line) == "a1 b1 a2", "what is put back has its place"


def test_the_service_itself_comes_first() -> None:
    line: FairQueue[str] = FairQueue(4)
    for who, item in (("a", "a1"), ("b", "b1"), ("", "s1"), ("", "s2"), ("", "s3"), ("a", "a2")):
        line.put(who, item) if not who or len(line) < 4 else None
    for number in range(4, 50):  # and there is always room for it
        line.put("", f"s{number}")
    assert emptied(line).startswith("s1 s2 s3 s4 ")


def test_the_line_has_an_end_for_all_and_for_each() -> None:
    line: FairQueue[int] = FairQueue(10)
    for number in range(5):
        line.put("a", number)
    with pytest.raises(Refusal) as refused:
        line.put("a", 5)
    assert refused.value.code is Code.UNAVAILABLE
    for number in range(5):
        assert line.put("b", 10 + number) is None
    line.put("", 30)
    assert len(line) == 11


def test_when_it_is_full_those_with_most_make_room_for_those_with_fewer() -> None:
    line: FairQueue[str] = FairQueue(6)
    for item in ("a1", "a2", "a3", "b1", "b2", "b3"):
        assert line.put(item[0], item) is None
    assert line.put("c", "c1") == ("a", "a3")
    assert line.put("d", "d1") == ("b", "b3")
    with pytest.raises(Refusal):  # it would have as many as those who would have to make room
        line.put("c", "c2")
    with pytest.raises(Refusal):
        line.put("a", "a4")
    assert line.put("e", "e1") == ("a", "a2")
    assert line.put("f", "f1") == ("b", "b2")
    with pytest.raises(Refusal):
        line.put("g", "g1")
    for number in range(9):  # the service itself makes room for nobody
        line.put("", f"s{number}")
    assert line.pop() == ("", "s0")
    assert len(line) == 14
    with pytest.raises(Refusal):
        line.put("g", "g1")
    assert emptied(line).endswith("a1 b1 c1 d1 e1 f1")


def test_a_queue_without_room_refuses_all_but_the_service_itself() -> None:
    line: FairQueue[str] = FairQueue(0)
    with pytest.raises(Refusal):
        line.put("a", "a1")
    assert line.put("", "s1") is None
    with pytest.raises(Refusal):
        line.put("a", "a1")


def test_who_has_to_make_room_is_refused() -> None:
    async def work() -> None:
        places: FairSemaphore[None] = FairSemaphore(1, 4, 60.0)
        assert places.acquire_nowait("a")
        ours = [asyncio.create_task(places.acquire(who)) for who in ("a", "a", "b", "b")]
        await asyncio.sleep(0)
        late = asyncio.create_task(places.acquire("c"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [task.done() for task in ours] == [False, True, False, False]
        with pytest.raises(Refusal) as refused:
            await ours[1]
        assert refused.value.code is Code.UNAVAILABLE
        for who, task in (("a", ours[0]), ("b", ours[2]), ("c", late), ("b", ours[3])):
            places.release({"a": "a", "b": "a", "c": "b"}[who] if task is not ours[3] else "c")
            await task
        places.release("b")
        assert places.free == 1 and places.waiting == 0

    run(work)


def test_what_is_gone_makes_room_for_its_own_caller() -> None:
    line: FairQueue[int] = FairQueue(10)
    for number in range(5):
        line.put("a", number)
    line.put("a", 5, lambda each: each < 2)
    assert [line.pop() for _ in range(len(line))] == [("a", 2), ("a", 3), ("a", 4), ("a", 5)]


def test_what_is_put_back_is_the_first_of_its_caller() -> None:
    line: FairQueue[str] = FairQueue(10)
    for item in ("a1", "a2", "a3", "b1"):
        line.put(item[0], item)
    taken = [line.take() for _ in range(3)]
    line.put_back([each for each in taken if each is not None][1:])
    assert emptied(line) == "b1 a2 a3"


def test_one_who_has_much_in_line_is_not_first_again_when_things_come_back() -> None:
    """A transaction takes what it finds and has time for one only; whoever asked for one thing has it after a round."""
    line: FairQueue[str] = FairQueue(1_000)
    for item in (*(f"a{number}" for number in range(60)), "b1", "c1", "d1"):
        line.put(item[0], item)
    done = [_do_one_of(line, 20) for _ in range(5)]
    assert done == ["a0", "b1", "c1", "d1", "a1"]


def test_one_whose_thing_does_not_fit_keeps_its_turn() -> None:
    """It needs a transaction of its own, and waits for the one under way, not for all that comes back from it."""
    line: FairQueue[str] = FairQueue(1_000)
    for item in ("a1", "a2", "a3", "z1"):
        line.put(item[0], item)
    assert [_do_one_of(line, 20, lambda who, _: who != "z") for _ in range(2)] == ["a1", "z1"]


def _do_one_of(line: FairQueue[str], most: int, fits: Callable[[str, str], bool] | None = None) -> str:
    """Take as a writer does: the first, whatever it is, then what fits beside it; all but the first comes back."""
    batch = [line.take()]
    while len(batch) < most and (found := line.take(fits)) is not None:
        batch.append(found)
    first, *rest = [each for each in batch if each is not None]
    line.put_back(rest)
    return first.item


@cases("seed", range(scaled(2_000, 200)))
def test_putting_back_is_as_if_it_had_never_been_taken(seed: int) -> None:
    """Also where others come meanwhile, and where some do not fit: the order is that of a line that took no more."""
    dice = random.Random(seed)
    trial: FairQueue[str] = FairQueue(10_000)
    plain: FairQueue[str] = FairQueue(10_000)
    numbers = iter(range(10_000))

    def put(lines: tuple[FairQueue[str], ...], most: int) -> list[tuple[str, str]]:
        items = [(who, f"{who}{next(numbers)}") for who in dice.choices(("", *"abcdefg"), k=dice.randint(0, most))]
        for line in lines:
            for who, item in items:
                line.put(who, item)
        return items

    for _ in range(dice.randint(1, 8)):
        put((trial, plain), 12)
        fits = partial(_is_none_of, frozenset(dice.choices("abcdefg", k=2)))
        taken = [found for _ in range(dice.randint(0, 12)) if (found := trial.take(fits))]
        kept = dice.randint(0, len(taken))
        meanwhile = put((trial,), 4)
        trial.put_back(taken[kept:])
        assert [plain.pop(fits) for _ in range(kept)] == [(each.caller, each.item) for each in taken[:kept]]
        for who, item in meanwhile:
            plain.put(who, item)
        assert len(trial) == len(plain)
    assert emptied(trial) == emptied(plain)


def _is_none_of(odd: frozenset[str], who: str, _: str) -> bool:
    return who not in odd


# the places


def test_the_last_places_are_kept_for_those_who_have_none() -> None:
    semaphore: FairSemaphore[None] = FairSemaphore(8, 100, 5)
    assert [semaphore.acquire_nowait("a") for _ in range(8)] == [True] * 6 + [False] * 2
    assert [semaphore.acquire_nowait("b") for _ in range(3)] == [True, False, False]
    assert semaphore.acquire_nowait("c") and not semaphore.acquire_nowait("d")
    assert semaphore.free == 0
    for who in "aaaaaabc":
        semaphore.release(who)
    assert (semaphore.free, semaphore._held) == (8, {})


@cases("size", range(1, 12))
def test_whoever_comes_alone_gets_something_and_leaves_something(size: int) -> None:
    semaphore: FairSemaphore[None] = FairSemaphore(size, 100, 5)
    own = sum(semaphore.acquire_nowait("a") for _ in range(size))
    assert own == (size if size == 1 else size - max(1, size // 4))
    assert semaphore.acquire_nowait("b") is (size > 1)
    service = sum(semaphore.acquire_nowait("") for _ in range(size))
    assert own + (size > 1) + service == size


def test_those_who_wait_are_served_in_turn() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(4, 100, 5)
        order: list[str] = []

        async def hold(who: str) -> None:
            if not semaphore.acquire_nowait(who):
                await semaphore.acquire(who)
            order.append(who)
            await asyncio.sleep(0.001)
            semaphore.release(who)

        await asyncio.gather(*(hold("a") for _ in range(30)), *(hold(who) for who in "bcd"))
        assert order.index("b") < 6 and order.index("c") < 8 and order.index("d") < 10
        assert (semaphore.free, semaphore.waiting, semaphore._held, len(semaphore._waiters)) == (4, 0, {}, 0)

    run(work)


def test_a_wait_has_an_end() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(1, 100, 0.1)
        assert semaphore.acquire_nowait("a")
        with pytest.raises(Refusal, match="busy"):
            await semaphore.acquire("b")
        semaphore.release("a")
        assert (semaphore.free, semaphore.waiting) == (1, 0)

    run(work)


def test_no_place_is_lost_whoever_goes_and_when() -> None:
    """Callers who give up at any moment: while they wait, when they are called, when they have the place."""

    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(5, 1_000, 0.02)
        dice = random.Random(7)
        under_way: Counter[str] = Counter()

        async def hold(who: str) -> None:
            if not semaphore.acquire_nowait(who):
                await semaphore.acquire(who)
            try:
                under_way[who] += 1
                assert under_way.total() <= 5
                await asyncio.sleep(dice.choice((0, 0, 0.001, 0.004)))
            finally:
                under_way[who] -= 1
                semaphore.release(who)

        tasks: list[asyncio.Task[None]] = []
        for _ in range(scaled(20_000, 1_500)):
            tasks.append(asyncio.create_task(hold(dice.choice(("", "a", "a", "a", "b", "c")))))
            if dice.random() < 0.1:
                await asyncio.sleep(0)
                called = [task for task in tasks[-200:] if not task.done()]
                for task in called[:: dice.randint(2, 9)]:
                    task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, Refusal | asyncio.CancelledError | None) for each in found)
        assert (semaphore.free, semaphore.waiting, semaphore._held, len(semaphore._waiters)) == (5, 0, {}, 0)

    run(work)


def test_whoever_is_called_and_has_gone_passes_it_on() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(1, 10, 5)
        assert semaphore.acquire_nowait("a")
        one, two = asyncio.create_task(semaphore.acquire("b")), asyncio.create_task(semaphore.acquire("c"))
        await asyncio.sleep(0)
        semaphore.release("a")  # it is for the first, who has not heard of it yet
        one.cancel()
        await asyncio.wait_for(two, 1)
        semaphore.release("c")
        assert (semaphore.free, semaphore._held) == (1, {})

    run(work)


def test_nobody_waits_for_two_statements_of_a_slow_caller() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(4, 100, 5)
        for caller in ("flood", "honest"):
            assert semaphore.acquire_nowait(caller)
            semaphore.release(caller, 60.0)  # their buckets are empty
        assert semaphore.acquire_nowait("flood"), "one at a time"
        flood = [asyncio.create_task(semaphore.acquire("flood")) for _ in range(5)]
        await asyncio.sleep(0)
        honest = asyncio.create_task(semaphore.acquire("honest"))
        await asyncio.sleep(0)
        assert semaphore.waiting == 6
        semaphore.release("flood", 5.0)
        await asyncio.sleep(0)
        assert honest.done() and not any(each.done() for each in flood)
        semaphore.release("honest", 0.01)
        await asyncio.sleep(0)
        assert [each.done() for each in flood] == [True, False, False, False, False]
        semaphore.close()
        await asyncio.gather(*flood, return_exceptions=True)

    run(work)


def test_whoever_goes_is_in_line_no_longer() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(1, 10, 5)
        assert semaphore.acquire_nowait("a")
        for _ in range(20):
            wait = asyncio.create_task(semaphore.acquire("b"))
            await asyncio.sleep(0)
            wait.cancel()
            await asyncio.gather(wait, return_exceptions=True)
        assert (semaphore.free, semaphore.waiting, len(semaphore._waiters)) == (0, 0, 0)

    run(work)


def test_closing_sends_all_home() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(1, 10, 5)
        assert semaphore.acquire_nowait("a")
        waits = [asyncio.create_task(semaphore.acquire(who)) for who in ("b", "", "c")]
        await asyncio.sleep(0)
        semaphore.close()
        found = await asyncio.gather(*waits, return_exceptions=True)
        assert [isinstance(each, Refusal) for each in found] == [True] * 3

    run(work)


def test_a_pool_that_cannot_connect_loses_no_place() -> None:
    async def work() -> None:
        async def refuse() -> None:
            await asyncio.sleep(0)
            raise OSError

        pool = Pool(refuse, 4, 0.5)  # type: ignore[arg-type]  # wrong on purpose
        CALLER.set("a")
        found = await asyncio.gather(*(pool.take() for _ in range(20)), return_exceptions=True)
        assert all(isinstance(each, OSError | Refusal) for each in found)
        assert (pool.idle, pool.semaphore.waiting) == (4, 0)

    run(work)


@pytest.mark.slow
def test_nobody_queues_for_a_server_that_is_away() -> None:
    async def work() -> None:
        async def refuse() -> None:
            await asyncio.sleep(0.3)
            raise OSError

        pool = Pool(refuse, 2, 5.0)  # type: ignore[arg-type]  # wrong on purpose
        CALLER.set("a")
        for _ in range(2):  # the first ones find it out
            begun = time.monotonic()
            found = await asyncio.gather(*(pool.take() for _ in range(40)), return_exceptions=True)
            assert all(isinstance(error, OSError | Refusal) for error in found)
            assert time.monotonic() - begun < 1.0
        assert (pool.idle, pool.semaphore.waiting) == (2, 0)

    run(work)


# the loop's own time, and names


def test_time_of_the_loop_is_earned_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("diptych.fair.token_bucket.time.monotonic", lambda: now)
    budget = loop_budget()
    assert not budget.in_use and budget.has_tokens("a")
    budget.spend("a", 0.04)
    assert budget.has_tokens("a")
    budget.spend("a", 0.04)
    assert not budget.has_tokens("a") and budget.has_tokens("b") and budget.has_tokens("")
    assert budget.wait("a") == pytest.approx(0.12)
    now += 0.13
    assert budget.has_tokens("a") and budget.wait("a") == 0
    for number in range(3_000):
        budget.spend(f"caller {number}", 1)
    assert len(budget) <= 1_000
    budget.spend("", 100)
    assert budget.has_tokens("")


# statements that run long


def slow(semaphore: FairSemaphore[None], who: str, seconds: float) -> None:
    """Hold a permit for so long."""
    assert semaphore.acquire_nowait(who)
    semaphore.release(who, seconds)


def test_a_caller_of_long_statements_has_one_permit_at_a_time() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(8, 100, 5)
        for _ in range(100):
            slow(semaphore, "a", 0.04)  # short ones are free
        assert semaphore.acquire_nowait("a") and semaphore.acquire_nowait("a")
        semaphore.release("a")
        semaphore.release("a")
        slow(semaphore, "a", 3)
        assert [semaphore.acquire_nowait("a") for _ in range(2)] == [True, False]
        assert [semaphore.acquire_nowait("b") for _ in range(5)] == [True] * 5
        waiting = asyncio.ensure_future(semaphore.acquire("a"))
        await asyncio.sleep(0)
        for _ in range(5):
            semaphore.release("b")
        await asyncio.sleep(0)
        assert not waiting.done()
        semaphore.release("a")
        await waiting
        semaphore.release("a")
        assert semaphore.free == 8

    run(work)


def test_all_callers_of_long_statements_have_a_quarter() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(8, 100, 5)
        for who in "abcd":
            slow(semaphore, who, 5)
        assert [semaphore.acquire_nowait(who) for who in "abcd"] == [True, True, False, False]
        assert all(semaphore.acquire_nowait(who) for who in "efgh")
        semaphore.release("a")
        assert semaphore.acquire_nowait("c") and not semaphore.acquire_nowait("d")

    run(work)


def test_long_statements_are_forgiven_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(8, 100, 5)
        slow(semaphore, "a", 3)
        assert semaphore.acquire_nowait("a") and not semaphore.acquire_nowait("a")
        later = time.monotonic() + 5
        monkeypatch.setattr("diptych.fair.token_bucket.time.monotonic", lambda: later)
        assert semaphore.acquire_nowait("a")

    run(work)


def test_whoever_has_a_network_has_one_name() -> None:
    names = {peer_name((host, 1)) for host in ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:2::1%eth0")}
    assert names == {"peer:2001:db8:1:2::/64"}
    assert peer_name(("::ffff:192.0.2.1", 1)) == peer_name(("192.0.2.1", 2)) == "peer:192.0.2.1"
    assert peer_name(None) == "peer:" and peer_name(("testclient", 1)) == "peer:testclient"


def test_all_that_wait_can_be_refused_and_others_may_come() -> None:
    async def work() -> None:
        semaphore: FairSemaphore[None] = FairSemaphore(1, 10, 60.0)
        assert semaphore.acquire_nowait("a")
        waiting = [asyncio.create_task(semaphore.acquire(caller)) for caller in "abc"]
        await asyncio.sleep(0)
        semaphore.refuse_waiters("It hangs.")
        refused = await asyncio.gather(*waiting, return_exceptions=True)
        assert [(each.code, str(each)) for each in refused if isinstance(each, Refusal)] == [
            (Code.UNAVAILABLE, "It hangs.")
        ] * 3
        later = asyncio.create_task(semaphore.acquire("b"))
        await asyncio.sleep(0)
        semaphore.release("a")
        await later
        semaphore.release("b")
        assert (semaphore.free, semaphore.waiting) == (1, 0)

    run(work)
