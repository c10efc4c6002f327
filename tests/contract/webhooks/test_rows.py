"""Webhooks as rows of the model: managed in both styles by who may, and judged by the rules of their owner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from standardwebhooks import Webhook as Verifier

from diptych import Config, Diptych, Model, Resource, Role, Viewer, WebhookResource, WriteBy, allow, from_viewer, grant
from diptych.engine.read import Engine
from diptych.engine.watch import WatchEngine
from diptych.identity.accounts import Accounts
from diptych.identity.owner import fixed_owner
from diptych.identity.revocation_list import RevocationList
from diptych.webhooks import dispatcher, manage, records, service
from tests.contract.migrate.scene import opened
from tests.support.existing import run_sql
from tests.support.in_process import Service, in_process
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.support.webhooks import Receiver

partner, staff = Role("partner"), Role("staff")
ANN, BEN = (f"01900000-0000-7000-8000-00000000000{digit}" for digit in "ab")


class User(Resource):
    name: str
    access = (grant("read"),)


class Order(Resource):
    buyer: Annotated[User, WriteBy()] = from_viewer()
    total: int
    access = (grant("create"), grant("read", to=staff))

    @allow("read", to=partner)
    def own(self, viewer: Viewer) -> bool:
        return self.buyer.id == viewer.id


class Hook(WebhookResource):
    access = (grant("create", to=partner),)

    @allow("read", "update", "delete")
    def own(self, viewer: Viewer) -> bool:
        return self.owner == viewer.id


model = Model(User, Order, Hook)


@pytest.fixture
def served(new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Service, Receiver]]:
    monkeypatch.setattr(service, "EVERY", 0.05)
    monkeypatch.setattr(service, "RARELY", 0.1)
    monkeypatch.setattr(dispatcher.BACKOFF, "first", 0.1)
    users = [{"id": ANN, "name": "Ann"}, {"id": BEN, "name": "Ben"}]
    now = "2026-01-01T00:00:00.000000Z"
    rows = {"User": [{**user, "version": 1, "createdAt": now, "updatedAt": now} for user in users]}
    with asyncio.Runner() as runner:
        receiver = runner.run(Receiver().__aenter__())
        with in_process(model, new_database(), runner, rows, rounds=True, webhook_networks="127.0.0.1") as found:
            accounts = Accounts(found.app.store, RevocationList(found.app.store))
            for email, user in (("ann@example.org", ANN), ("ben@example.org", BEN)):
                runner.run(accounts.add(email, None, ["partner"], user))
            yield found, receiver
        runner.run(receiver.__aexit__())


def until(found: Service, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, "it did not come to be in time"
        found.runner.run(asyncio.sleep(0.02))


def order(found: Service, user: str, total: int) -> None:
    answer = found.send_json("POST", "/orders", {"total": total}, found.token(user, "partner"))
    assert answer.status == 201, answer


def totals(receiver: Receiver, name: str) -> list[Any]:
    return [message.event["data"]["order"]["total"] for message in receiver.messages[name]]


@pytest.mark.slow
def test_both_styles_make_webhooks_that_send_what_their_owner_may_see(served: tuple[Service, Receiver]) -> None:
    found, receiver = served
    ann, ben = found.token(ANN, "partner"), found.token(BEN, "partner")
    value = {"url": receiver.url("good-a"), "follows": "orders", "query": "fields=total"}
    made = found.send_json("POST", "/hooks", value, ann)
    assert made.status == 201 and made.json()["owner"] == ANN
    order(found, ANN, 1)  # at once: a webhook begins with its own row
    document = "mutation ($input: HookCreate!) { createHook(input: $input) { id owner } }"
    value = {"url": receiver.url("good-b"), "follows": "orders", "query": "fields=total"}
    other = found.data(document, {"input": value}, token=ben)["createHook"]
    assert other["owner"] == BEN
    for user, total in ((BEN, 2), (ANN, 3), (BEN, 4)):
        order(found, user, total)
    until(found, lambda: len(totals(receiver, "good-a")) + len(totals(receiver, "good-b")) >= 4)
    assert (totals(receiver, "good-a"), totals(receiver, "good-b")) == ([1, 3], [2, 4])
    # the secret is given to its owner alone, in either style
    secrets = [
        found.send_json("POST", f"/hooks/{made.json()['id']}/rotate", {}, ann).json(),
        found.data("mutation ($id: ID!) { rotateHook(id: $id) }", {"id": other["id"]}, token=ben)["rotateHook"],
    ]
    assert found.send_json("POST", f"/hooks/{made.json()['id']}/rotate", {}, ben).status in (403, 404)
    found.runner.run(asyncio.sleep(0.3))
    order(found, ANN, 5)
    order(found, BEN, 6)
    until(found, lambda: totals(receiver, "good-a")[-1] == 5 and totals(receiver, "good-b")[-1] == 6)
    for name, secret in zip(("good-a", "good-b"), secrets, strict=True):
        message = receiver.messages[name][-1]
        assert Verifier(secret).verify(message.body, dict(message.headers)) == message.event
    # a row that is deleted sends nothing more
    assert found.send("DELETE", f"/hooks/{made.json()['id']}", token=ann).status == 204
    found.runner.run(asyncio.sleep(0.3))
    order(found, ANN, 7)
    order(found, BEN, 8)
    until(found, lambda: totals(receiver, "good-b")[-1] == 8)
    assert 7 not in totals(receiver, "good-a")


def test_who_may_not_make_one_does_not_and_nobody_sets_its_owner(served: tuple[Service, Receiver]) -> None:
    found, receiver = served
    value = {"url": receiver.url("good"), "follows": "orders"}
    assert found.send_json("POST", "/hooks", value).status in (401, 403, 404, 405)
    assert found.send_json("POST", "/hooks", value, found.token(ANN)).status in (403, 404, 405)
    ann = found.token(ANN, "partner")
    for more in ({"owner": BEN}, {"generation": 5}, {"rotatedAt": None}):
        assert found.send_json("POST", "/hooks", {**value, **more}, ann).status == 403
    assert found.send_json("POST", "/hooks", {**value, "url": "ftp://a"}, ann).status == 422


def test_a_row_that_cannot_be_a_webhook_is_disabled_with_the_reason_until_it_is_mended(
    served: tuple[Service, Receiver],
) -> None:
    found, receiver = served
    ann = found.token(ANN, "partner")

    def reason() -> str | None:
        (status,) = found.runner.run(manage.statuses(found.app.store))
        return status.webhook.reason

    made = found.send_json("POST", "/hooks", {"url": "https://10.0.0.1/", "follows": "orders"}, ann).json()
    until(found, lambda: bool(found.runner.run(manage.statuses(found.app.store))))
    assert "not on the public internet" in str(reason())
    for value, words in (
        ({"url": receiver.url("good"), "follows": "nothing"}, "There is no resource"),
        ({"follows": "orders", "query": "fields=nothing"}, "not valid"),
    ):
        assert found.send_json("PATCH", f"/hooks/{made['id']}", value, ann).status == 200
        until(found, lambda words=words: words in str(reason()))  # type: ignore[misc]  # mypy infers no type of its default
    assert found.send_json("PATCH", f"/hooks/{made['id']}", {"query": "fields=total"}, ann).status == 200
    until(found, lambda: reason() is None)
    order(found, ANN, 9)
    until(found, lambda: totals(receiver, "good") == [9])


def test_a_row_whose_endpoint_is_gone_stays_disabled(served: tuple[Service, Receiver]) -> None:
    found, receiver = served
    ann = found.token(ANN, "partner")
    receiver.statuses["good"] = 410
    found.send_json("POST", "/hooks", {"url": receiver.url("good"), "follows": "orders"}, ann)
    order(found, ANN, 1)

    def is_disabled() -> bool:
        return any(each.webhook.disabled_at for each in found.runner.run(manage.statuses(found.app.store)))

    until(found, is_disabled)
    found.runner.run(asyncio.sleep(0.3))
    assert is_disabled()


def test_rows_beyond_the_most_webhooks_hold_up_no_others(
    served: tuple[Service, Receiver], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(records, "MOST", 1)
    found, receiver = served
    ann = found.token(ANN, "partner")

    def make(name: str) -> str:
        value = {"url": receiver.url(name), "follows": "orders", "query": "fields=total"}
        return str(found.send_json("POST", "/hooks", value, ann).json()["id"])

    first = make("good-a")
    until(found, lambda: bool(found.runner.run(manage.statuses(found.app.store))))
    for name in ("good-b", "good-b"):
        make(name)
    until(found, lambda: "rows that send nothing" in caplog.text)
    assert found.send_json("PATCH", f"/hooks/{first}", {"url": receiver.url("good-c")}, ann).status == 200
    found.runner.run(asyncio.sleep(0.3))
    order(found, ANN, 1)
    until(found, lambda: totals(receiver, "good-c") == [1])
    assert totals(receiver, "good-a") == totals(receiver, "good-b") == []
    assert found.send("DELETE", f"/hooks/{first}", token=ann).status == 204
    until(found, lambda: totals(receiver, "good-b") == [1])  # the next row takes its place, from its own creation on


NOTES = """
class Note(Resource):
    text: str
    MORE
    access = (grant("read"),)

class Hook(WebhookResource):
    access = ()
"""
TAGS = """
class Tag(Resource):
    text: str
    access = (grant("read"),)
"""


def test_a_node_with_the_model_before_leaves_alone_what_it_does_not_know(
    new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "EVERY", 0.05)
    monkeypatch.setattr(service, "RARELY", 0.1)
    before, after = model_of(NOTES.replace("MORE", "")), model_of(NOTES.replace("MORE", "extra: str = '-'") + TAGS)
    database = new_database()
    opened(database, after)

    def insert(table: str, number: int, **values: str) -> None:
        id = f"00000000-0000-7000-8000-{number:012}"
        names, shown = ", ".join(values), ", ".join(f"'{value}'" for value in values.values())
        run_sql(database, f"INSERT INTO {table} (id, {names}) VALUES ('{id}', {shown})")

    async def run() -> None:
        apps = [
            Diptych(each, config=Config(database=database, webhook_networks="127.0.0.1")) for each in (before, after)
        ]
        async with Receiver() as receiver:
            old = await apps[0].start()
            store, names = apps[0].store, ("good", "good-note", "good-tag")
            engine = WatchEngine(Engine(after, store, old.engine.checks, old.engine.secret))
            url = receiver.url("good")
            await manage.add(engine, "one", url, "notes", "fields=text,extra", fixed_owner([]), allowed="127.0.0.1")
            insert("hooks", 1, url=receiver.url("good-note"), follows="notes", query="fields=extra", owner=ANN)
            insert("hooks", 2, url=receiver.url("good-tag"), follows="tags", query="fields=text", owner=ANN)

            async def settled(count: int) -> None:
                for _ in range(500):
                    reasons = [status.webhook.reason for status in await manage.statuses(store)]
                    if sum(reason is not None for reason in reasons) == count:
                        return
                    await asyncio.sleep(0.02)
                raise AssertionError(reasons)

            await settled(3)
            insert("notes", 3, text="a")
            insert("tags", 4, text="a")
            await asyncio.sleep(0.5)
            assert not receiver.messages
            await apps[1].start()
            for count in (1, 2):
                for _ in range(500):
                    if all(len(receiver.messages[name]) >= count for name in names):
                        break
                    await asyncio.sleep(0.02)
                assert [len(receiver.messages[name]) for name in names] == [count] * 3
                await settled(0)
                insert("notes", 10 + count, text="b")
                insert("tags", 10 + count, text="b")
            for app in apps:
                await app.stop()

    asyncio.run(run())
