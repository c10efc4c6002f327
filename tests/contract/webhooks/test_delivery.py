"""Webhooks from a commit to a receiver: every change at least once, in order for each row, as its owner may see it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from diptych import Config, Diptych
from diptych.compile.dialect import Dialect
from diptych.db.script import Script
from diptych.demo.model import model
from diptych.errors import Code, Refusal
from diptych.identity.accounts import Accounts
from diptych.identity.owner import fixed_owner
from diptych.identity.revocation_list import RevocationList
from diptych.serve.handler import Handler
from diptych.webhooks import dispatcher, manage, records, service
from diptych.webhooks.dispatcher import BROKEN
from tests.contract.http import data
from tests.contract.http.data import POST
from tests.support.running import NewDatabase
from tests.support.webhooks import Message, Receiver

ADMIN = fixed_owner(["admin"])
ANYONE = fixed_owner([])


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "EVERY", 0.05)
    monkeypatch.setattr(service, "RARELY", 0.1)
    monkeypatch.setattr(service, "LEASE", 2.0)
    monkeypatch.setattr(dispatcher.BACKOFF, "first", 0.1)


@pytest.fixture
def database(new_database: NewDatabase) -> Iterator[str]:
    yield new_database()


@asynccontextmanager
async def serving(
    database: str, *, rows: bool = True, port: int = 0, serves: bool = True
) -> AsyncIterator[tuple[Handler, Receiver]]:
    async with Receiver(port) as receiver:
        app = Diptych(model, config=Config(database=database, webhook_networks="127.0.0.1"))
        handler = await app.start()
        if not serves:
            await handler.webhooks.stop()
        try:
            for resource, found in data.ROWS.items() if rows else ():
                await app.store.insert(model.resources[resource], list(found[0]), [list(row.values()) for row in found])
            yield handler, receiver
        finally:
            await app.stop()


async def until(holds: Callable[[], bool | Awaitable[bool]], seconds: float = 20.0) -> None:
    for _ in range(int(seconds / 0.02)):
        held = holds()
        if held if isinstance(held, bool) else await held:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to be in time")


async def rename(handler: Handler, title: str, post: str = POST[1]) -> None:
    session = await handler.engine.store.session()
    try:
        await session.rows(f"UPDATE posts SET title = '{title}' WHERE id = '{post}'", ())
        await session.commit()
    finally:
        await session.end()


async def add(handler: Handler, name: str, url: str, query: str = "fields=title", owner: str = ADMIN) -> str:
    _, secret = await manage.add(handler.live.watch_engine, name, url, "posts", query, owner, allowed="127.0.0.1")
    return secret


def titles(receiver: Receiver, name: str) -> list[str | None]:
    return [(message.event["data"]["post"] or {}).get("title") for message in receiver.messages[name]]


def test_changes_arrive_in_order_with_stable_ids(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            await add(handler, "one", receiver.url("good"))
            for number in range(30):
                await rename(handler, f"t{number}")
            await until(lambda: len(receiver.messages["good"]) >= 30)
            assert titles(receiver, "good") == [f"t{number}" for number in range(30)]
            event = receiver.messages["good"][0].event
            assert event["type"] == "posts.updated" and event["timestamp"] == event["data"]["at"]
            assert list(event["data"]) == ["eventId", "kind", "rowId", "at", "post"]
            webhook = await manage.find(handler.engine.store, "one")
            for message in receiver.messages["good"]:
                assert message.id == f"{webhook.id}_{message.event['data']['eventId']}"

    asyncio.run(run())


def test_a_row_that_fails_waits_in_order_and_the_others_go_on(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            seen: list[tuple[str, str]] = []
            refuse = True

            async def judge(name: str, message: Message) -> None:
                seen.append((message.row, message.event["data"]["post"]["title"]))

            def status(message: Message) -> int:
                return 500 if refuse and message.row == POST[1] else 200

            receiver.on_message, receiver.judge = judge, status
            await add(handler, "one", receiver.url("good"))
            for number in range(5):
                for post in (POST[1], POST[2], POST[4]):
                    await rename(handler, f"t{number}", post)
            await until(lambda: len(seen) >= 10)
            assert {row for row, _ in seen} == {POST[2], POST[4]}
            refuse = False
            await until(lambda: len(seen) >= 15)
            for post in (POST[1], POST[2], POST[4]):
                assert [title for row, title in seen if row == post] == [f"t{number}" for number in range(5)]
            await until(lambda: nothing_waits(handler))

    asyncio.run(run())


async def nothing_waits(handler: Handler) -> bool:
    return all(status.pending == 0 for status in await manage.statuses(handler.engine.store))


def test_a_failed_change_is_kept_if_its_progress_cannot_be_stored_at_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher.BACKOFF, "first", 30.0)
    refused: list[str] = []

    def advance(dialect: Dialect, id: str, *arguments: Any) -> Script[None]:
        if not refused:
            refused.append(id)
            raise Refusal(Code.UNAVAILABLE, "Not now.")
        return records.advance(dialect, id, *arguments)

    monkeypatch.setattr(dispatcher, "advance", advance)

    async def run() -> None:
        async with serving(database) as (handler, receiver):
            receiver.judge = lambda message: 500 if message.row == POST[1] else 200
            await add(handler, "one", receiver.url("good"))
            await rename(handler, "a", POST[1])
            await until(lambda: bool(refused))
            await rename(handler, "b", POST[2])
            await until(lambda: titles(receiver, "good") == ["b"])
            await until(lambda: is_at_the_end(handler))
            assert await has_pending(handler)

    asyncio.run(run())


async def is_at_the_end(handler: Handler) -> bool:
    return all(status.behind == 0 for status in await manage.statuses(handler.engine.store))


def test_an_endpoint_that_fails_pauses_and_loses_nothing(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            await add(handler, "one", receiver.url("good"))
            receiver.statuses["good"] = 503
            for number in range(20):
                await rename(handler, f"t{number}", POST[1 + number % 4])

            async def is_paused() -> bool:
                (status,) = await manage.statuses(handler.engine.store)
                return status.webhook.failures >= BROKEN and status.behind > 0

            await until(is_paused)
            (status,) = await manage.statuses(handler.engine.store)
            assert status.pending <= 8 and status.webhook.reason == "the response is 503"
            del receiver.statuses["good"]
            await until(lambda: len(receiver.messages["good"]) >= 20)
            rows = [(message.row, message.event["data"]["post"]["title"]) for message in receiver.messages["good"]]
            for post in range(1, 5):
                mine = [f"t{number}" for number in range(20) if 1 + number % 4 == post]
                assert [title for row, title in rows if row == POST[post]] == mine

    asyncio.run(run())


@pytest.mark.slow
def test_a_slow_endpoint_a_hanging_one_and_liars_delay_nobody(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            for name in ("slow", "hanging", "redirecting", "lying", "closing", "failing", "good"):
                await add(handler, name, receiver.url(name))
            begun = asyncio.get_running_loop().time()
            for number in range(20):
                await rename(handler, f"t{number}")
            await until(lambda: len(receiver.messages["good"]) >= 20)
            assert asyncio.get_running_loop().time() - begun < 8
            assert titles(receiver, "good") == [f"t{number}" for number in range(20)]
            for name in ("hanging", "redirecting", "lying", "closing", "failing"):
                assert receiver.messages[name] == []

    asyncio.run(run())


def test_a_new_process_goes_on_where_the_last_one_was(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            await add(handler, "one", receiver.url("good"))
            await rename(handler, "a")
            await until(lambda: titles(receiver, "good") == ["a"])
            port = receiver.port
        async with serving(database, rows=False, port=port, serves=False) as (handler, receiver):
            await rename(handler, "b")  # nobody delivers
            await rename(handler, "c")
            assert receiver.messages["good"] == []
        async with serving(database, rows=False, port=port) as (handler, receiver):
            await until(lambda: len(receiver.messages["good"]) >= 2)
            assert titles(receiver, "good") == ["b", "c"]

    asyncio.run(run())


def test_of_two_nodes_one_delivers_and_the_other_takes_over(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            await add(handler, "one", receiver.url("good"))
            async with serving(database, rows=False) as (other, _):
                await rename(handler, "a")
                await until(lambda: titles(receiver, "good") == ["a"])
                nodes = [each.webhooks.node for each in (handler, other)]
                webhook = await manage.find(handler.engine.store, "one")
                first = nodes.index(webhook.lease_by)
                await (handler, other)[first].webhooks.stop()
                await rename(handler, "b")
                await until(lambda: titles(receiver, "good") == ["a", "b"])
                assert (await manage.find(handler.engine.store, "one")).lease_by == nodes[1 - first]

    asyncio.run(run())


@pytest.mark.slow
def test_a_right_that_is_revoked_stops_values_at_once_and_also_of_what_waits(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            accounts = Accounts(handler.engine.store, RevocationList(handler.engine.store))
            account = await accounts.add("eve@example.org", None, ["admin"])
            await add(handler, "one", receiver.url("good"), owner=json.dumps({"account": account.id}))
            await rename(handler, "seen", POST[3])  # a draft, which admins may read
            await until(lambda: titles(receiver, "good") == ["seen"])
            receiver.statuses["good"] = 500
            await rename(handler, "waits", POST[3])
            await until(lambda: has_pending(handler))
            await accounts.set_roles("eve@example.org", [])
            await until(lambda: nothing_waits(handler))
            del receiver.statuses["good"]
            await rename(handler, "hidden", POST[3])
            await rename(handler, "public", POST[1])
            await until(lambda: "public" in titles(receiver, "good"))
            await until(lambda: nothing_waits(handler))
            assert titles(receiver, "good") == ["seen", "public"]
            await accounts.disable("eve@example.org")
            await rename(handler, "after", POST[1])
            await asyncio.sleep(0.5)
            assert titles(receiver, "good") == ["seen", "public"]

    asyncio.run(run())


async def has_pending(handler: Handler) -> bool:
    return any(status.pending for status in await manage.statuses(handler.engine.store))


def test_what_is_given_up_is_listed_and_can_be_replayed(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "RETRIED_FOR", -1)

    async def run() -> None:
        async with serving(database) as (handler, receiver):
            await add(handler, "one", receiver.url("good"))
            receiver.statuses["good"] = 500
            await rename(handler, "a")

            async def is_dead() -> bool:
                return [letter.state for letter in await manage.dead_letters(handler.engine.store, "one")] == ["dead"]

            await until(is_dead)
            (letter,) = await manage.dead_letters(handler.engine.store, "one")
            assert (letter.row_id, letter.last, letter.attempts) == (POST[1], "the response is 500", 2)
            del receiver.statuses["good"]
            _, count = await manage.replay(handler.engine.store, "one")
            assert count == 1
            await until(lambda: titles(receiver, "good") == ["a"])
            await until(lambda: nothing_waits(handler))
            assert await manage.dead_letters(handler.engine.store, "one") == []

    asyncio.run(run())


def test_the_feed_is_kept_for_webhooks_up_to_a_bound_and_then_a_gap_is_noted(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            await add(handler, "one", receiver.url("good"))
            receiver.statuses["good"] = 500
            store, live = handler.engine.store, handler.live
            start = (await store.head()).position
            for number in range(30):
                await rename(handler, f"t{number}")
            await until(lambda: has_pending(handler))
            live._retention._rows = 20
            await live._retention.trim()
            assert (await store.head()).oldest <= start + 1, "what was not delivered is kept"
            live._retention._rows = 5
            await live._retention.trim()
            assert (await store.head()).oldest > start + 1, "but not without end"
            await live.tail.refresh()
            del receiver.statuses["good"]
            await until(lambda: "t29" in titles(receiver, "good"))
            letters = await manage.dead_letters(store, "one")
            assert letters and {letter.state for letter in letters} == {"gap"}
            assert titles(receiver, "good") == [f"t{number}" for number in range(20, 30)]

    asyncio.run(run())


def test_an_endpoint_that_is_gone_disables_its_webhook(database: str) -> None:
    async def run() -> None:
        async with serving(database) as (handler, receiver):
            await add(handler, "one", receiver.url("good"))
            receiver.statuses["good"] = 410
            await rename(handler, "a")

            async def is_disabled() -> bool:
                return (await manage.find(handler.engine.store, "one")).disabled_at is not None

            await until(is_disabled)
            del receiver.statuses["good"]
            await manage.replay(handler.engine.store, "one")
            await until(lambda: titles(receiver, "good") == ["a"])

    asyncio.run(run())


@pytest.mark.slow
def test_a_service_without_webhooks_looks_for_them_rarely(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "RARELY", 0.6)
    looks: list[int] = []
    read = records.WEBHOOKS.all

    async def counted(*arguments: Any, **named: Any) -> Any:
        rows = await read(*arguments, **named)
        looks.append(len(rows))
        return rows

    monkeypatch.setattr(records.WEBHOOKS, "all", counted)

    async def run() -> None:
        async with serving(database) as (handler, receiver):
            await until(lambda: 0 in looks)
            await asyncio.sleep(0.1)
            looks.clear()
            await asyncio.sleep(1.0)
            assert len(looks) <= 3, "without webhooks it looks twice in this time"
            await add(handler, "one", receiver.url("good"))
            await until(lambda: 1 in looks)
            looks.clear()
            await asyncio.sleep(1.0)
            assert len(looks) > 4, "with one it looks at each interval"
            await rename(handler, "a")
            await until(lambda: titles(receiver, "good") == ["a"])

    asyncio.run(run())
