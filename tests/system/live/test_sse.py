"""Server-sent events in both styles, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.contract.live.clients import EventStream
from tests.support.running import NewDatabase, Service, diptych, served

USERS = "subscription($after: String) { userChanged(after: $after) { cursor kind user { name } } }"


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample", DIPTYCH_HEARTBEAT="0.5") as service:
        yield service


@pytest.fixture(scope="module")
def admin(service: Service) -> str:
    return service.token_of("admin").token


def add(service: Service, admin: str, name: str) -> None:
    answer = service.signed_in(admin).post("/users", {"name": name, "email": f"{name}@example.com"})
    assert answer.status == 201, answer.body


def now(service: Service) -> str:
    return service.get("/users?first=1", prefer="change-cursor").headers["change-cursor"]


def posted(query: str, **variables: object) -> bytes:
    return json.dumps({"query": query, "variables": variables}).encode()


def test_the_head_of_a_stream(service: Service) -> None:
    with EventStream(service.port, "/users/changes") as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store, no-transform"
        assert stream.headers["x-accel-buffering"] == "no"
        assert "content-length" not in stream.headers
        assert stream.next_event() == {"retry": "1000"}


def test_head_has_the_same_head_and_no_stream(service: Service) -> None:
    for target in ("/users/changes", f"/graphql?query={quote('subscription { userChanged { kind } }')}"):
        answer = service.request("HEAD", target, {"accept": "text/event-stream"})
        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"


def test_a_change_has_its_cursor_as_id_and_no_name(service: Service, admin: str) -> None:
    cursor = now(service)
    with EventStream(service.port, f"/users/changes?after={cursor}&fields=name") as stream:
        add(service, admin, "Ann")
        assert stream.next_event() == {"retry": "1000"}
        while "data" not in (event := stream.next_event()):
            assert event.keys() == {"", "id"}
        assert event.keys() == {"id", "data"}
        told = json.loads(event["data"])
        assert (told["cursor"], told["kind"], told["user"]) == (event["id"], "CREATED", {"name": "Ann"})
    add(service, admin, "Bea")
    with EventStream(service.port, f"/users/changes?after={cursor}", headers={"Last-Event-ID": event["id"]}) as stream:
        assert stream.change()["user"]["name"] == "Bea"  # the header holds: it is newer than the address


def test_heart_beats_move_the_cursor_and_tell_nothing(service: Service, admin: str) -> None:
    with EventStream(service.port, "/users/changes") as stream:
        while stream.next_event().keys() != {"", "id"}:
            pass
        event = stream.next_event()
        assert event.keys() == {"", "id"} and event[""] == ""
    add(service, admin, "Cem")
    with EventStream(service.port, "/users/changes", headers={"Last-Event-ID": event["id"]}) as stream:
        assert stream.change()["user"]["name"] == "Cem"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_subscription_comes_as_next_events(service: Service, admin: str, method: str) -> None:
    cursor = now(service)
    if method == "POST":
        stream = EventStream(service.port, "/graphql", method="POST", body=posted(USERS, after=cursor))
    else:
        variables = quote(json.dumps({"after": cursor}))
        stream = EventStream(service.port, f"/graphql?query={quote(USERS)}&variables={variables}")
    with stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        add(service, admin, f"Dan{method}")
        while "data" not in (event := stream.next_event()):
            pass
        assert event["event"] == "next"
        told = json.loads(event["data"])["data"]["userChanged"]
        assert (told["cursor"], told["user"]) == (event["id"], {"name": f"Dan{method}"})


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("{ __typename }", {"data": {"__typename": "Query"}}),
        (
            'mutation { createUser(input: {name: "E", email: "e@example.com"}) { name } }',
            {"data": {"createUser": {"name": "E"}}},
        ),
        ("{", "GRAPHQL_PARSE_FAILED"),
        ("subscription { nothing }", "GRAPHQL_VALIDATION_FAILED"),
        ('subscription { userChanged(after: "nonsense") { kind } }', "BAD_USER_INPUT"),
    ],
)
def test_whatever_has_an_end_is_completed(service: Service, admin: str, query: str, told: object) -> None:
    with EventStream(service.port, "/graphql", method="POST", token=admin, body=posted(query)) as stream:
        assert stream.status == 200
        event = stream.next_event()
        assert event["event"] == "next"
        data = json.loads(event["data"])
        assert (data["errors"][0]["extensions"]["code"] if isinstance(told, str) else data) == told
        assert stream.next_event() == {"event": "complete", "data": ""}


def test_what_is_no_request_has_its_status(service: Service) -> None:
    mutation = quote('mutation { deleteUser(id: "1") { id } }')
    with EventStream(service.port, f"/graphql?query={mutation}") as stream:
        assert (stream.status, stream.headers["allow"]) == (405, "POST")
    with EventStream(service.port, "/graphql", method="POST", body=b"{") as stream:
        assert stream.status == 400
    with EventStream(service.port, "/users/changes", token="nonsense") as stream:
        assert stream.status == 401
    with EventStream(service.port, "/users/changes?after=nonsense") as stream:
        assert (stream.status, stream.headers["content-type"]) == (400, "application/problem+json")
    with EventStream(service.port, "/orders/changes") as stream:
        assert stream.status == 401


def test_a_token_that_is_revoked_ends_both_kinds_of_streams(service: Service) -> None:
    made = diptych("api-key", "add", "machine", "--role", "admin", "--database", service.database)
    key = made.stdout.strip()
    body = posted(USERS)
    with (
        EventStream(service.port, "/users/changes", token=key) as rest,
        EventStream(service.port, "/graphql", token=key, method="POST", body=body) as query,
    ):
        assert (rest.status, query.status) == (200, 200)
        assert diptych("api-key", "remove", "machine", "--database", service.database).returncode == 0
        while (event := rest.next_event()).get("event") != "end":
            assert event.keys() in ({"retry"}, {"", "id"})
        told = json.loads(event["data"])
        assert (told["code"], told["cursor"]) == ("UNAUTHENTICATED", event["id"])
        with pytest.raises(EOFError):
            rest.next_event()
        error = query.change()["errors"][0]
        assert error["extensions"]["code"] == "UNAUTHENTICATED" and error["extensions"]["cursor"]
        assert query.next_event() == {"event": "complete", "data": ""}
        with pytest.raises(EOFError):
            query.next_event()


def test_a_client_that_goes_leaves_nothing_behind(service: Service) -> None:
    for _ in range(20):
        with EventStream(service.port, "/users/changes") as stream:
            stream.next_event()
    assert service.get("/health/ready").status == 200
    assert service.err.text == ""
