"""Trusted documents: every process has them at once, none runs for long after it was removed, and with `trusted_only`
nothing else runs, whichever way it comes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from typing import Any

import pytest

from diptych import Diptych
from diptych.api.graphql import document
from diptych.api.graphql.http import Parameters
from diptych.compile.plan import Plan
from diptych.config import Config
from diptych.db.store import Store
from diptych.db.trusted_documents import TrustedDocument, add_documents, all_documents, remove_documents
from diptych.demo.model import model
from diptych.errors import Code, Refusal
from tests.contract.http.data import ANN
from tests.contract.persisted.conftest import Fresh
from tests.contract.persisted.naming import (
    ANSWER,
    CREATE,
    FOLLOW,
    NAMES,
    ORDERS,
    apollo,
    by_apollo,
    by_id,
    document_id,
    hashed,
)
from tests.support.following import caller_of
from tests.support.in_process import RESPONSE, Answer, Service
from tests.support.running import NewDatabase

FORBIDDEN = {"errors": [{"message": "Only trusted documents run here.", "extensions": {"code": "FORBIDDEN"}}]}


def trust(service: Service, *texts: str) -> list[str]:
    made = [TrustedDocument(hashed(text), "x", text, 1) for text in texts]
    return service.runner.run(add_documents(service.app.store, made))


def distrust(service: Service, *texts: str) -> None:
    service.runner.run(remove_documents(service.app.store, map(hashed, texts)))


# in the database


@pytest.mark.slow
def test_every_process_has_them_at_once_and_none_for_long(fresh: Fresh, database: str) -> None:
    one, other = fresh(database), fresh(database, trusted_only=True)
    text = "{ __typename users(first: 1) { name } }"
    assert [each.get_query(by_id(text)).status for each in (one, other)] == [404, 404]
    assert trust(one, text, NAMES) == [hashed(text), hashed(NAMES)]
    assert trust(other, text, CREATE) == [hashed(CREATE)], "what is there stays as it is"
    for each in (one, other):
        for answer in (each.get_query(by_id(text)), each.get_query(by_apollo(text)), each.post({"query": text})):
            assert answer.json() == {"data": {"__typename": "Query", "users": []}}
    removed = time.monotonic()
    distrust(one, text)
    for each in (one, other):
        while each.get_query(by_id(text)).status == 200:
            assert time.monotonic() - removed < 1.5
        assert each.get_query(by_id(NAMES)).status == 200
    assert other.query(text).json() == FORBIDDEN
    assert [each.name for each in one.runner.run(all_documents(one.app.store))] == ["x", "x"]


def test_documents_are_removed_all_or_none(fresh: Fresh, database: str) -> None:
    service = fresh(database)
    trust(service, NAMES)
    with pytest.raises(Refusal, match=f"There is no trusted document {document_id(ORDERS)}") as refused:
        distrust(service, NAMES, ORDERS)
    assert refused.value.code is Code.NOT_FOUND
    assert service.get_query(by_id(NAMES)).status == 200


def test_a_document_that_is_asked_for_all_the_time_is_read_twice_a_second(
    fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = fresh(trusted_only=True)
    trust(service, NAMES)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def reads() -> int:
        before = service.runs
        assert service.get_query(by_id(NAMES)).json() == ANSWER
        return service.runs - before - 1

    assert [reads() for _ in range(5)] == [1, 0, 0, 0, 0]
    now += 0.49
    assert reads() == 0
    now += 0.02
    assert [reads(), reads()] == [1, 0]
    assert service.get_query(by_id(ORDERS)).status == 404
    assert service.runs == (before := service.runs) and service.get_query(by_id(ORDERS)).status == 404
    assert service.runs == before + 1, "what is unknown is looked for each time, by a read of one row"


def test_while_one_reads_it_again_the_others_go_on(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    service = fresh()
    trust(service, NAMES)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    trusted = service.handler.graphql.persisted.trusted
    looks, go_on = 0, asyncio.Event()

    async def slow(store: Store, name: str) -> str:
        nonlocal looks
        looks += 1
        await go_on.wait()
        return NAMES

    async def ask_at(*moments: float) -> list[bool]:
        """At which of these moments is the answer there at once?"""
        nonlocal now
        begun, at_once = now, []
        asking = []
        for moment in moments:
            now = begun + moment
            asking.append(asyncio.ensure_future(trusted.find(hashed(NAMES))))
            await asyncio.sleep(0)
            at_once.append(asking[-1].done())
        go_on.set()
        assert await asyncio.gather(*asking) == [NAMES] * len(moments)
        return at_once

    assert service.runner.run(trusted.find(hashed(NAMES))) == NAMES
    monkeypatch.setattr("diptych.serve.endpoint.persisted.find_document", slow)
    assert service.runner.run(ask_at(0.4, 0.6, 0.7, 0.99, 1.01)) == [True, False, True, True, False]
    assert looks == 2


def test_a_read_that_fails_leaves_nothing_behind(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    service = fresh(trusted_only=True)
    trust(service, NAMES)
    store = service.app.store
    run = store.run

    async def away(plan: Plan, parameters: Iterable[Any]) -> Any:
        raise Refusal(Code.UNAVAILABLE, "The database cannot answer.")

    monkeypatch.setattr(store, "run", away)
    answer = service.get_query(by_id(NAMES))
    assert (answer.status, answer.code) == (503, "UNAVAILABLE")
    monkeypatch.setattr(store, "run", run)
    assert service.get_query(by_id(NAMES)).json() == ANSWER


# trusted_only


def ways(service: Service, text: str, token: str | None) -> list[Answer]:
    """The answers to a text, by every way that HTTP has."""
    asked = {"query": text, "extensions": apollo(text)}
    events = "text/event-stream"
    return [
        service.query(text, token=token),
        service.get_query({"query": text}, token=token),
        service.post(asked, token=token, accept=RESPONSE),
        service.get_query({"query": text, **by_apollo(text)}, token=token),
        service.get_query({"query": text}, token=token, accept=events),
        service.post({"query": text}, token=token, accept=events),
    ]


@pytest.mark.parametrize(
    "text",
    [NAMES, ORDERS, CREATE, FOLLOW, "{ __schema { types { name } } }", "{", "", "{ nothing }", "x" * 200_000],
    ids=lambda text: text[:12],
)
def test_no_other_text_runs_or_is_parsed(fresh: Fresh, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    service = fresh(trusted_only=True)
    trust(service, NAMES + " ")
    monkeypatch.setattr(document, "parse", None)
    for token in (None, service.token(ANN, "admin")):
        for answer in ways(service, text, token):
            assert b"Only trusted documents run here." in answer.body
        assert [answer.status for answer in ways(service, text, token)[:4]] == [403] * 4
        assert ways(service, text, token)[0].json() == FORBIDDEN

        async def run(token: str | None = token) -> Any:
            return await service.handler.graphql.run(Parameters(query=text), await caller_of(service.handler, token))

        assert json.loads(service.runner.run(run()).body) == FORBIDDEN
    assert len(service.handler.graphql.persisted.registered) == 0
    assert service.get_query(by_id(text)).json()["errors"][0]["extensions"]["code"] == "PERSISTED_QUERY_NOT_FOUND"


def test_what_is_trusted_runs_in_every_way(fresh: Fresh) -> None:
    service = fresh(trusted_only=True)
    trust(service, NAMES, ORDERS, CREATE, FOLLOW)
    for answer in (
        *ways(service, NAMES, None)[:4],
        service.get_query(by_id(NAMES)),
        service.post({"extensions": apollo(NAMES)}),
    ):
        assert answer.json() == ANSWER
    for answer in ways(service, NAMES, None)[4:]:
        assert b'"Ann"' in answer.body
    assert service.get_query(by_id(NAMES), accept="text/event-stream").body.startswith(b"event: next")
    made = {"input": {"name": "Noa", "email": "noa@example.com"}}
    answer = service.post({"documentId": document_id(CREATE), "variables": made}, token=service.token(ANN, "admin"))
    assert answer.json() == {"data": {"createUser": {"name": "Noa"}}}
    assert service.get_query(by_id(CREATE)).status == 405

    async def follow() -> Any:
        return await service.handler.graphql.run(
            Parameters(documentId=document_id(FOLLOW)), await caller_of(service.handler, None)
        )

    assert service.runner.run(follow()).watch is not None


def test_trust_is_no_permission(fresh: Fresh) -> None:
    service = fresh(trusted_only=True)
    trust(service, ORDERS, "{ users(first: 101) { name } }", "query($n: Int!) { users(first: $n) { name } }")
    statuses = [
        service.get_query(by_id(ORDERS), token=token).status
        for token in (None, service.token(ANN), service.token(ANN, "admin"))
    ]
    assert statuses == [401, 400, 200]
    assert service.get_query(by_id("{ users(first: 101) { name } }")).code == "BAD_USER_INPUT"


def test_ill_formed_names_are_told_so_all_the_same(fresh: Fresh) -> None:
    service = fresh(trusted_only=True)
    trust(service, NAMES)
    assert service.get_query({"documentId": "x"}).code == "BAD_REQUEST"
    assert service.post({}, accept=RESPONSE).code == "BAD_REQUEST"
    assert (
        service.post({"query": ORDERS, "extensions": apollo(NAMES)}, accept=RESPONSE).code
        == "PERSISTED_QUERY_HASH_MISMATCH"
    )


def test_the_resource_style_goes_on(fresh: Fresh) -> None:
    service = fresh(trusted_only=True)
    assert service.rows("/users?first=1&sort=name&fields=name") == [{"name": "Ann"}]


def test_an_admin_is_told_why_while_developing(
    runner: asyncio.Runner, new_sqlite: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service(Diptych(model, config=Config(database=new_sqlite(), trusted_only=True), explain=True), runner)
    try:
        admin = service.token(ANN, "admin")
        text = f'mutation {{ deleteUser(id: "{ANN}") {{ id }} }}'
        trust(service, text)
        named, plain = (
            service.post(each, token=admin) for each in ({"documentId": document_id(text)}, {"query": text})
        )
        assert named.body == plain.body and named.code == "NOT_FOUND" and named.json()["errors"][0]["extensions"]["why"]
        assert service.query(ORDERS, token=admin).json() == FORBIDDEN
        for parameters in ({"documentId": "x"}, {}, {"extensions": "[]"}):
            assert service.get_query(parameters, token=admin).code == "BAD_REQUEST"
    finally:
        service.close()
    assert not caplog.records
