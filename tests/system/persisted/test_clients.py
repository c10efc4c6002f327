"""Real clients against real servers: @apollo/client with its link for persisted queries, streams, and the page of the
docs, before and after a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.live.clients import EventStream, WebSocket
from tests.contract.persisted.naming import FOLLOW, apollo, document_id
from tests.support.running import Client, NewDatabase, Service, node, served
from tests.system.test_docs import Reader, exchanges

RESPONSE = "application/graphql-response+json"
UNKNOWN = ["hash", 404, RESPONSE, "no-store"]
KNOWN = ["hash", 200, RESPONSE, "private, no-cache"]
SENT = ["POST", "text", 200, RESPONSE, "private, no-cache"]


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample") as service:
        yield service


@pytest.fixture(scope="module")
def admin(service: Service) -> Client:
    return service.token_of("admin")


@pytest.fixture(scope="module")
def again(service: Service) -> Iterator[Service]:
    """The same service after a restart, with two processes: they remember nothing, and not the same."""
    with served(service.database, "--workers", "2") as again:
        yield again


@pytest.fixture(scope="module")
def steps(service: Service, again: Service, admin: Client) -> Any:
    return json.loads(node("apollo.mjs", service.url, again.url, admin.token))


def test_apollo_registers_first_and_then_asks_by_hash_alone(steps: Any) -> None:
    assert steps["first"]["sent"] == [["GET", *UNKNOWN], SENT]
    assert [steps[name]["sent"] for name in ("second", "other variables")] == [[["GET", *KNOWN]]] * 2
    assert steps["first"]["result"] == steps["second"]["result"]
    assert [len(steps[name]["result"]["users"]) for name in ("first", "other variables")] == [1, 2]
    assert steps["another"]["sent"] == [["GET", *UNKNOWN], SENT]
    assert len(steps["another"]["result"]["users"]) == 2


def test_apollo_as_a_stranger_gets_nothing_by_the_hash_of_an_admin(steps: Any) -> None:
    assert steps["a stranger"]["sent"] == [["GET", "hash", 400, RESPONSE, "no-store"]]
    assert set(steps["a stranger"]["result"]["codes"]) == {"GRAPHQL_VALIDATION_FAILED"}


def test_apollo_makes_changes_by_post(steps: Any) -> None:
    assert steps["create"]["sent"] == [["POST", *UNKNOWN], SENT]
    assert steps["create again"]["sent"] == [["POST", *KNOWN]]
    assert steps["create again"]["result"] == {"createUser": {"name": "nia", "__typename": "User"}}
    assert steps["conflict"]["result"]["codes"] == ["CONFLICT"]
    assert len(steps["conflict"]["sent"]) == 1


def test_apollo_is_told_what_is_wrong_with_its_query(steps: Any) -> None:
    for name in ("wrong", "wrong again"):
        assert steps[name]["sent"] == [["GET", *UNKNOWN], ["POST", "text", 400, RESPONSE, "no-store"]]
        assert steps[name]["result"]["codes"] == ["GRAPHQL_VALIDATION_FAILED"]


def test_apollo_recovers_after_a_restart_and_with_two_processes(steps: Any) -> None:
    assert steps["restarted"]["sent"] == [["GET", *UNKNOWN], SENT]
    assert steps["restarted"]["result"] == steps["once more"]["result"] == steps["first"]["result"]
    assert steps["once more"]["sent"][0] in (["GET", *KNOWN], ["GET", *UNKNOWN])
    many = steps["many"]
    assert many["result"] == [1 + number % 3 for number in range(40)]
    asked, sent = ([each for each in many["sent"] if (each[1] == "text") is text] for text in (False, True))
    assert len(asked) == 40 and len(sent) == asked.count(["GET", *UNKNOWN]) and all(each == SENT for each in sent)


def test_a_subscription_is_followed_by_its_hash(service: Service, admin: Client) -> None:
    with WebSocket(service.port, token=admin.token) as socket:
        socket.begin()
        socket.send(type="subscribe", id="1", payload={"documentId": document_id(FOLLOW)})
        assert socket.receive()["payload"][0]["message"] == "PersistedQueryNotFound"
        socket.send(type="subscribe", id="2", payload={"query": FOLLOW, "extensions": apollo(FOLLOW)})
        assert socket.receive(pings=True)["type"] == "ping"
        socket.send(type="subscribe", id="3", payload={"extensions": apollo(FOLLOW)})
        assert socket.receive(pings=True)["type"] == "ping"
        with EventStream(service.port, f"/graphql?documentId={document_id(FOLLOW)}", token=admin.token) as events:
            assert (events.status, events.next_event()) == (200, {"retry": "1000"})
            beat = events.next_event()
            assert "data" not in beat, "the stream is open"
            admin.post("/users", {"name": "Vera", "email": "vera@example.org"})
            told = {"data": {"userChanged": {"kind": "CREATED", "user": {"name": "Vera"}}}}
            assert events.change() == told
            assert {(each := socket.receive())["id"]: each["payload"] for _ in range(2)} == {"2": told, "3": told}


def test_the_requests_of_the_page_answer_what_it_says(service: Service, admin: Client) -> None:
    reader = Reader(admin)
    asked = list(exchanges("persisted.md"))
    assert len(asked) == 3
    for each in asked:
        answer = reader.send(each)
        assert answer.status == each.status, f"{each}\n{answer}"
        for name, value in each.shown.items():
            assert reader.agrees(value, answer.headers.get(name.lower(), "")), f"{each}\n{answer}"
        assert reader.agrees(each.answer, answer.json()), f"{each}\n{answer}"
