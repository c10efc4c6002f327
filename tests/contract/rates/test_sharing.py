"""Processes share what callers have spent through the database, and go on alone while it is away."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from diptych import Config, Diptych, Model, Rate
from diptych.db.rates import RateRow, all_rates, sweep_rates
from diptych.engine import rate_limiter
from diptych.errors import Code, Refusal
from diptych.serve.http.request import Request
from tests.contract.rates.shop import shop
from tests.support.running import NewDatabase

ANN = "00000000-0000-7000-8000-00000000000a"


class Node:
    """A service in this process, asked as one caller."""

    def __init__(self, model: Model, database: str, **settings: Any) -> None:
        self.app = Diptych(model, config=Config(database=database, planning_share=0.0, **settings))

    async def __aenter__(self) -> Node:
        self.handler = await self.app.start()
        self.token = self.handler.context.tokens.make(ANN, (), None, 900)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.app.stop()

    async def get(self, url: str = "/goods", peer: str = "192.0.2.1", *, token: bool = True) -> int:
        headers = {b"authorization": b"Bearer " + self.token.encode()} if token else {}
        path, _, query = url.partition("?")

        async def body(_: int) -> bytes:
            return b""

        return (await self.handler.handle(Request("GET", path, query, headers, body, "", (peer, 1)))).status

    async def share(self) -> None:
        rates = self.handler.engine.rates
        assert rates is not None
        await rates.sharing.share()

    async def rows(self) -> list[RateRow]:
        return await all_rates(self.app.store)


def test_what_one_process_admits_the_others_know(new_database: NewDatabase) -> None:
    async def work() -> None:
        url, model = new_database(), shop(Rate(requests=40, per="day"))
        async with Node(model, url) as one, Node(model, url) as two:
            first = [await one.get() for _ in range(30)]
            await one.share()
            second = [await two.get() for _ in range(30)]
            assert first == [200] * 30
            assert 10 <= second.count(200) <= 10 + 4 + 1  # a slice and one more
            third = [await one.get() for _ in range(30)]
            await two.share()
            assert (first + second + third).count(200) <= 40 + 4 + 1
            await one.share()
            (row,) = await one.rows()
            assert (row.policy, row.owner) == ("requests-per-day", f"caller {ANN}")
            assert row.spent == (first + second + third).count(200)
            assert row.refused == (first + second + third).count(429)

    asyncio.run(work())


@pytest.mark.parametrize("committed", [True, False])
def test_what_is_being_shared_when_a_process_stops_is_stored_once(new_database: NewDatabase, committed: bool) -> None:
    async def work() -> None:
        url, model = new_database(), shop(Rate(requests=400, per="day"))
        async with Node(model, url) as one:
            assert [await one.get() for _ in range(9)] == [200] * 9
            store, begun = one.app.store, asyncio.Event()
            write = store.write

            async def slowly(script: Any) -> Any:
                done = await write(script) if committed else None
                begun.set()
                await asyncio.sleep(0.1)
                return done if committed else await write(script)

            rates = one.handler.engine.rates
            assert rates is not None
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(store, "write", slowly)
                rates.sharing._due.set()
                await begun.wait()
                await rates.sharing.stop()
            (row,) = await one.rows()
            assert row.spent == 9

    asyncio.run(work())


def test_without_the_database_each_process_limits_alone(
    new_database: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise Refusal(Code.UNAVAILABLE, "The database cannot answer now.")

    async def work() -> None:
        async with Node(shop(Rate(requests=20, per="day")), new_database()) as node:
            write = node.app.store.write
            node.app.store.write = away  # type: ignore[method-assign]  # writes fail, reads do not
            begun = time.monotonic()
            with caplog.at_level(logging.WARNING):
                statuses = [await asyncio.wait_for(node.get(), 10) for _ in range(21)]
            assert statuses == [200] * 20 + [429]
            assert time.monotonic() - begun < 8.0  # requests do not wait for it, or once
            assert sum("not shared" in record.message for record in caplog.records) == 1
            node.app.store.write = write  # type: ignore[method-assign]  # as it was
            await node.share()
            (row,) = await node.rows()
            assert row.spent == 20

    asyncio.run(work())


def test_many_addresses_take_bounded_memory_and_rows(
    new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limiter, "_SPENDERS", 50)

    async def work() -> None:
        async with Node(shop(Rate(requests=1_000, per="minute")), new_database()) as node:
            rates = node.handler.engine.rates
            assert rates is not None
            for number in range(200):
                assert await node.get(peer=f"198.51.100.{number}", token=False) == 200
            await node.share()
            assert len(rates._spenders) <= 50 and len(rates._buckets) <= 50
            for number in range(100):  # one machine has all of a /64 network
                await node.get(peer=f"2001:db8::{number:x}", token=False)
            await node.share()
            owners = {row.owner for row in await node.rows()}
            assert "address 198.51.100.7" in owners and "address 2001:db8::/64" in owners and len(owners) == 201

    asyncio.run(work())


def test_rows_of_full_buckets_are_swept(new_database: NewDatabase) -> None:
    async def work() -> None:
        async with Node(shop(Rate(requests=1_000, per="minute")), new_database()) as node:
            await node.get()
            await node.share()
            store = node.app.store
            assert await store.write(lambda: sweep_rates(store.dialect)) == 1
            await _execute(store, "UPDATE diptych_rates SET full_at = full_at - 4000000000")
            assert await store.write(lambda: sweep_rates(store.dialect)) == 0

    asyncio.run(work())


async def _execute(store: Any, sql: str) -> None:
    session = await store.session()
    await session.rows(sql, ())
    await session.commit()
    await session.end()
