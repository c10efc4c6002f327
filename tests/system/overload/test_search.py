"""Searching texts: exact, in linear time, never in the loop; and every statement ends when its time is over."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from diptych.compile.dialect import Dialect
from diptych.compile.plan import Plan
from diptych.db.script import Script, Step
from diptych.db.sqlite.connection import BytesRow
from diptych.db.sqlite.store import SqliteStore
from diptych.demo.model import model
from diptych.errors import Code, Refusal
from diptych.model.operators import MAX_SEARCHED
from tests.contract.test_writers import Shop, on
from tests.support.in_process import in_process
from tests.support.machine import Machine
from tests.support.running import Client, NewDatabase, Service, served
from tests.system.overload.test_flood import Caller
from tests.system.overload.town import fill_long

TIMEOUT = 0.5
"""Seconds that a statement may take."""
SLACK = 1.5
"""Seconds that a busy machine may take besides."""
LONG_STEPS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
    "SELECT sum(instr(zeroblob(2000000 + i), x'01')) FROM n"
)
"""Few steps of SQLite's machine, each of which takes milliseconds."""
SEARCH = "query ($where: PostWhere!) { posts(where: $where, first: 1) { id } }"


# what it finds


def verdicts(dialect: Dialect) -> Plan:
    """For each pair of a text and a part, in a list, whether it is in it."""
    if dialect.name == "sqlite":
        pairs = "(SELECT value ->> 0 AS x, value ->> 1 AS y, key AS k FROM json_each(?1))"
        found = dialect.contains.format("x", "y")
        return Plan(f"SELECT CAST(group_concat({found}, '' ORDER BY k) AS BLOB) FROM {pairs}", (), ())
    pairs = "(SELECT value ->> 0 AS x, value ->> 1 AS y, k FROM json_array_elements($1::json) WITH ORDINALITY p(value, k)) p"
    found = dialect.contains.format("x", "y")
    return Plan(f"SELECT convert_to(string_agg(({found})::int::text, '' ORDER BY k), 'UTF8') FROM {pairs}", (), ())


def pair(dice: random.Random) -> tuple[str, str]:
    """A text, and what is nearly in it, or is: of few characters, so that there is much that looks like it."""
    letters = dice.choice(("ab", "aé", "😀b", "a.*\\+[(^$|?{\n", "***=", "ab%_"))
    period = "".join(dice.choices(letters, k=dice.randint(1, 70)))
    text = period * dice.randint(1, 12) + "".join(dice.choices(letters, k=dice.randint(0, 80)))
    at = dice.randrange(len(text))
    part = text[at : at + dice.choice((0, 1, 5, 31, 63, 64, 65, 66, 130, 400))]
    if dice.random() < 0.6 and part:
        spot = dice.randrange(len(part))
        part = part[:spot] + dice.choice(letters) + part[spot + dice.randrange(2) :]
    return text, part


def test_what_is_found_is_what_is_there(new_database: NewDatabase) -> None:
    dice = random.Random(7)
    pairs = [pair(dice) for _ in range(3_000)]
    expected = "".join(str(int(part in text)) for text, part in pairs)
    assert 500 < expected.count("1") < 2_500

    async def work(shop: Shop) -> None:
        (found,) = await shop.store.run(verdicts(shop.store.dialect), (json.dumps(pairs),))
        assert found is not None and found.decode() == expected

    on(new_database(), work)


# how long it takes


@pytest.fixture(scope="module")
def long_texts(new_database: NewDatabase) -> Iterator[Service]:
    """A service whose posts are a mebibyte each."""
    options = (f"--statement-timeout={TIMEOUT}", f"--request-timeout={20 * TIMEOUT}")
    with served(fill_long(new_database()), *options) as service:
        yield service


def costly() -> Iterator[dict[str, object]]:
    """Filters that look nearly everywhere as if they held, each with as many terms as one may have."""
    size = MAX_SEARCHED - 50
    for number in itertools.count():
        at = (0, size // 2, size - 1)[number % 3]
        parts = ["a" * at + "b" + "a" * (size - at + each) for each in range(40)]
        yield {"or": [{"body": {"contains": part}} for part in parts]}


def test_one_who_searches_long_texts_stops_nobody(long_texts: Service) -> None:
    """Neither the loop nor a thread is lost to it: it is told when its time is over, and others are served."""
    machine, over = Machine(), threading.Event()
    took: list[tuple[int, float]] = []

    def attack(filters: Iterator[dict[str, object]]) -> None:
        while not over.is_set():
            begun = time.perf_counter()
            body = {"query": SEARCH, "variables": {"where": next(filters)}}
            answer = long_texts.post("/graphql", body)
            took.append((answer.status, time.perf_counter() - begun))

    threads = [threading.Thread(target=attack, args=(costly(),)) for _ in range(3)]
    with Caller(Client(long_texts.url)) as health, Caller(Client(long_texts.url)) as other:
        other.times("/users?first=1", 3)
        for thread in threads:
            thread.start()
        try:
            lives, reads = health.times("/health/live", 60), other.times("/users?first=1", 30)
            until = time.monotonic() + 30
            while len(took) < 6 and time.monotonic() < until:
                lives += health.times("/health/live", 5)
        finally:
            over.set()
            for thread in threads:
                thread.join()
    lives.sort()
    assert took and {status for status, _ in took} <= {200, 504}
    assert max(seconds for _, seconds in took) < TIMEOUT + machine.limit(SLACK)
    assert lives[len(lives) // 2] < machine.limit(0.05) and lives[-1] < machine.limit(SLACK / 2)
    assert reads[len(reads) // 2] < machine.limit(0.1) and reads[-1] < machine.limit(SLACK)


def test_what_is_searched_for_has_a_limit(new_database: NewDatabase) -> None:
    with asyncio.Runner() as runner, in_process(model, new_database(), runner) as service:
        for op in ("contains", "startsWith"):
            filters = [{"body": {op: "a" * (MAX_SEARCHED + more)}} for more in (0, 1)]
            fine, refused = (service.query(SEARCH, {"where": each}) for each in filters)
            assert fine.json() == {"data": {"posts": []}}
            assert refused.code == "BAD_USER_INPUT"
            assert service.get(f"/posts?body[{op}]={'a' * MAX_SEARCHED}").status == 200
            assert service.get(f"/posts?body[{op}]={'a' * (MAX_SEARCHED + 1)}").code == "BAD_REQUEST"


# where it runs


def test_what_searches_texts_never_runs_in_the_loop(new_sqlite: NewDatabase) -> None:
    inline: list[str] = []
    with asyncio.Runner() as runner, in_process(model, new_sqlite(), runner) as service:
        store = service.app.store
        assert isinstance(store, SqliteStore) and store._inline is not None
        run = store._inline.run_inline

        def noted(plan: Plan, parameters: Sequence[Any], steps: int, now: float) -> BytesRow:
            inline.append(plan.sql)
            return run(plan, parameters, steps, now)

        store._inline.run_inline = noted  # type: ignore[method-assign]  # a spy
        assert service.get("/posts?title=x").status == 200
        assert len(inline) == 1
        for where in (
            {"body": {"contains": "x"}},
            {"not": {"title": {"startsWith": "x"}}},
            {"author": {"name": {"contains": "x"}}},
            {"comments": {"some": {"body": {"contains": "x"}}}},
        ):
            assert service.get(f"/posts?where={json.dumps(where, separators=(',', ':'))}").status == 200
        assert len(inline) == 1


def test_a_deadline_holds_where_steps_take_long(new_sqlite: NewDatabase) -> None:
    """In a worker, in the loop, and in the writer: no step count is reached before the time is over."""

    def changing() -> Script[None]:
        yield Step(LONG_STEPS.format(2_000), ())

    async def work(shop: Shop) -> None:
        store, machine = shop.store, Machine()
        assert isinstance(store, SqliteStore)
        await store.write(shop.adding(1))
        for ask in (
            lambda: store.run(Plan(LONG_STEPS.format(2_000), (), (), searches=True), ()),
            lambda: store.run(Plan(LONG_STEPS.format(2_000), (), ()), ()),
            lambda: store.write(changing),
        ):
            begun = time.monotonic()
            gaps = asyncio.create_task(longest_gap())
            await asyncio.sleep(0.05)
            with pytest.raises(Refusal) as refused:
                await ask()
            assert refused.value.code is Code.TIMEOUT
            took = time.monotonic() - begun
            gaps.cancel()
            assert await gaps < machine.limit(TIMEOUT / 2)  # the loop went on
            assert took < TIMEOUT + machine.limit(SLACK)
        assert await store.write(shop.adding(2)) == 2

    on(new_sqlite(), work, statement_timeout=TIMEOUT)


async def longest_gap() -> float:
    """For how long the loop did nothing else, at most, until this is cancelled."""
    longest, last = 0.0, time.monotonic()
    try:
        while True:
            await asyncio.sleep(0.002)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
    except asyncio.CancelledError:
        return longest
