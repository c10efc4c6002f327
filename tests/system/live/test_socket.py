"""graphql-transport-ws on /graphql, frame by frame: the protocol's codes, tokens, and what a socket may not do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.live.clients import PROTOCOL, WebSocket
from tests.support.cases import cases
from tests.support.running import NewDatabase, Service, diptych, served

USERS = "subscription($after: String) { userChanged(after: $after) { cursor kind rowId user { name } } }"


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample") as service:
        yield service


@pytest.fixture(scope="module")
def admin(service: Service) -> str:
    return service.token_of("admin").token


@pytest.fixture
def socket(service: Service) -> Iterator[WebSocket]:
    with WebSocket(service.port) as socket:
        socket.begin()
        yield socket


def add(service: Service, admin: str, name: str) -> str:
    """Make a user; gives its id."""
    answer = service.signed_in(admin).post("/users", {"name": name, "email": f"{name}@example.com"})
    assert answer.status == 201, answer.body
    return str(answer.json()["id"])


def now(service: Service) -> str:
    """The cursor of this moment: who follows from there misses nothing, whenever it begins."""
    return service.get("/users?first=1", prefer="change-cursor").headers["change-cursor"]


def settled(socket: WebSocket) -> None:
    """All messages that were sent before were read."""
    socket.subscribe("settled", "{ __typename }")
    assert socket.receive() == {"id": "settled", "type": "next", "payload": {"data": {"__typename": "Query"}}}
    assert socket.receive() == {"id": "settled", "type": "complete"}


# the handshake


def test_the_handshake_names_the_protocol_and_compresses_nothing(service: Service) -> None:
    with WebSocket(service.port, protocol=f"graphql-ws, {PROTOCOL}") as socket:
        assert socket.status == 101
        assert socket.headers["sec-websocket-protocol"] == PROTOCOL
        assert "sec-websocket-extensions" not in socket.headers


def test_the_legacy_protocol_is_refused_with_a_sentence(service: Service) -> None:
    with WebSocket(service.port, protocol="graphql-ws") as socket:
        assert socket.headers["sec-websocket-protocol"] == "graphql-ws"  # else a browser hears no reason
        told = "graphql-ws is the subprotocol of subscriptions-transport-ws; use graphql-transport-ws instead"
        assert socket.receive() == {"type": "connection_error", "payload": {"message": told}}
        assert socket.closed() == (4406, told)


@pytest.mark.parametrize("protocol", ["", "other"])
def test_another_protocol_is_not_acceptable(service: Service, protocol: str) -> None:
    with WebSocket(service.port, protocol=protocol) as socket:
        assert socket.status == 101
        assert socket.closed() == (4406, "Subprotocol not acceptable")


@pytest.mark.parametrize("path", ["/", "/users", "/graphql/"])
def test_there_is_no_socket_elsewhere(service: Service, path: str) -> None:
    with WebSocket(service.port, path) as socket:
        assert socket.status == 404
        assert socket.headers["content-type"] == "application/problem+json"


def test_a_bad_token_in_the_header_is_refused_before_the_upgrade(service: Service) -> None:
    for path in ("/graphql", "/nowhere"):
        with WebSocket(service.port, path, token="nonsense") as socket:
            assert socket.status == 401
            assert socket.headers["www-authenticate"] == 'Bearer error="invalid_token"'


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "file://", "x"])
def test_a_page_of_another_origin_is_refused(service: Service, origin: str) -> None:
    with WebSocket(service.port, headers={"Origin": origin}) as socket:
        assert socket.status == 403


def test_a_page_of_the_service_itself_is_let_in(service: Service) -> None:
    with WebSocket(service.port, headers={"Origin": f"http://127.0.0.1:{service.port}"}) as socket:
        assert socket.status == 101


# the beginning


def test_a_socket_that_says_nothing_is_closed(service: Service) -> None:
    with WebSocket(service.port) as socket:
        assert socket.closed() == (4408, "Connection initialisation timeout")


def test_a_second_beginning_is_one_too_many(socket: WebSocket) -> None:
    socket.send(type="connection_init")
    assert socket.closed() == (4429, "Too many initialisation requests")


def test_nothing_is_subscribed_before_the_beginning(service: Service) -> None:
    with WebSocket(service.port) as socket:
        socket.subscribe("1", "{ __typename }")
        assert socket.closed() == (4401, "Unauthorized")


def test_a_ping_is_answered_at_any_time(service: Service) -> None:
    with WebSocket(service.port) as socket:
        socket.send(type="ping")
        assert socket.receive() == {"type": "pong"}
        socket.send(type="ping", payload={"at": 1})
        assert socket.receive() == {"type": "pong", "payload": {"at": 1}}
        socket.send(type="pong", payload={"at": 1})
        socket.begin()


@pytest.mark.parametrize("key", ["authorization", "Authorization"])
def test_the_token_may_come_in_the_payload(service: Service, admin: str, key: str) -> None:
    with WebSocket(service.port) as socket:
        socket.begin(**{key: f"Bearer {admin}"})
        socket.subscribe("1", "{ orders(first: 1) { id } }")
        assert socket.receive()["type"] == "next"


@cases("shape", ["headers", "Headers", "authToken", "with its scheme"])
def test_the_token_may_come_as_clients_have_it_in_their_examples(service: Service, admin: str, shape: str) -> None:
    payloads: dict[str, dict[str, Any]] = {
        "headers": {"headers": {"Authorization": f"Bearer {admin}", "x-tenant": "a"}},
        "Headers": {"headers": {"authorization": f"Bearer {admin}"}, "lang": "en"},
        "authToken": {"authToken": admin},
        "with its scheme": {"authToken": f"Bearer {admin}"},
    }
    with WebSocket(service.port) as socket:
        socket.begin(**payloads[shape])
        socket.subscribe("1", "{ orders(first: 1) { id } }")
        assert socket.receive()["type"] == "next"


@cases(
    "payload",
    [
        {"token": "x"},
        {"accessToken": "x"},
        {"access_token": "x"},
        {"AUTHORIZATION": "Bearer x"},
        {"jwt": "x"},
        {"x-api-key": "x"},
        {"headers": {"x-auth": "x"}},
        {"headers": {"Cookie": "session=1"}},
        {"auth": {"token": "x"}},
    ],
)
def test_nobody_is_anonymous_without_knowing(service: Service, payload: dict[str, Any]) -> None:
    with WebSocket(service.port) as socket:
        socket.send(type="connection_init", payload=payload)
        code, reason = socket.closed()
        assert code == 4400 and reason.endswith("is not understood; send {authorization: 'Bearer <token>'}")


@cases(
    "payload", [{"authToken": 1}, {"authToken": "a", "authorization": "Bearer b"}, {"headers": {"Authorization": []}}]
)
def test_more_payloads_that_make_no_sense(service: Service, payload: dict[str, Any]) -> None:
    with WebSocket(service.port) as socket:
        socket.send(type="connection_init", payload=payload)
        assert socket.closed() == (4400, "The payload takes one authorization, which is a text")


@cases("payload", [{}, {"lang": "en"}, {"authToken": None}, {"headers": {}}, {"headers": "x"}, {"authorization": None}])
def test_a_payload_without_a_token_is_anonymous(service: Service, payload: dict[str, Any]) -> None:
    with WebSocket(service.port) as socket:
        socket.begin(**payload)
        socket.subscribe("1", "{ orders(first: 1) { id } }")
        assert socket.receive()["payload"][0]["extensions"]["code"] == "UNAUTHENTICATED"


def test_the_token_may_come_in_the_header_and_in_both(service: Service, admin: str) -> None:
    with WebSocket(service.port, token=admin) as socket:
        socket.begin()
        socket.subscribe("1", "{ orders(first: 1) { id } }")
        assert socket.receive()["type"] == "next"
    with WebSocket(service.port, token=admin) as socket:
        socket.begin(authorization=f"Bearer {admin}")


def test_two_tokens_are_refused(service: Service, admin: str) -> None:
    with WebSocket(service.port, token=admin) as socket:
        socket.send(type="connection_init", payload={"authorization": "Bearer other"})
        assert socket.closed()[0] == 4400


@pytest.mark.parametrize("payload", [{"authorization": 1}, {"authorization": "a", "Authorization": "b"}, [], 1])
def test_a_payload_that_makes_no_sense_is_refused(service: Service, payload: object) -> None:
    with WebSocket(service.port) as socket:
        socket.send(type="connection_init", payload=payload)
        assert socket.closed()[0] == 4400


def test_a_bad_token_in_the_payload_is_forbidden(service: Service) -> None:
    with WebSocket(service.port) as socket:
        socket.send(type="connection_init", payload={"authorization": "Bearer nonsense"})
        assert socket.closed() == (4403, "Forbidden")


def test_nobody_needs_a_token(socket: WebSocket) -> None:
    socket.subscribe("1", "{ orders { id } }")
    message = socket.receive()
    assert (message["type"], message["payload"][0]["extensions"]["code"]) == ("error", "UNAUTHENTICATED")


# messages


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"x",
        b"[]",
        b"1",
        b"null",
        b"{}",
        b'{"type":1}',
        b'{"type":"nothing"}',
        b'{"type":"next","id":"1"}',
        b'{"type":"subscribe","payload":{"query":"{a}"}}',
        b'{"type":"subscribe","id":"1"}',
        b'{"type":"subscribe","id":1,"payload":{"query":"{a}"}}',
        b'{"type":"subscribe","id":"","payload":{"query":"{a}"}}',
        b'{"type":"subscribe","id":"1","payload":[]}',
        b'{"type":"subscribe","id":"1","payload":{"query":1}}',
        b'{"type":"subscribe","id":"1","payload":{"query":"{a}","variables":[]}}',
        b'{"type":"complete"}',
        b'{"type":"ping","payload":1}',
        b'{"type":"ping","type":"ping"}',
        b'{"type":"ping","payload":{"a":1,"a":2}}',
        b'{"type":"ping","payload":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        b'{"type":"ping","payload":{"a":"\\ud800"}}',
        b'{"type":"subscribe","id":"' + b"x" * 200 + b'","payload":{"query":"{a}"}}',
    ],
    ids=lambda text: text.decode()[:60],
)
def test_what_is_no_message_closes_the_socket(socket: WebSocket, text: bytes) -> None:
    socket.frame(text)
    code, reason = socket.closed()
    assert code == 4400 and reason


def test_a_binary_frame_closes_the_socket(socket: WebSocket) -> None:
    socket.frame(b'{"type":"ping"}', opcode=2)
    assert socket.closed()[0] == 4400


def test_what_is_no_utf8_closes_the_socket(socket: WebSocket) -> None:
    socket.frame(b'{"type":"\xff"}')
    assert socket.closed()[0] == 1007


def test_a_message_in_pieces_is_one_message(socket: WebSocket) -> None:
    socket.frame(b'{"type":', final=False)
    socket.frame(b'"ping"}', opcode=0)
    assert socket.receive() == {"type": "pong"}


def test_a_message_may_have_64_kib_and_no_more(service: Service) -> None:
    text = json.dumps({"type": "ping", "payload": {"a": ""}})
    with WebSocket(service.port) as socket:
        socket.frame(text.replace('""', '"%s"' % ("x" * (65_536 - len(text)))).encode())
        assert socket.receive()["type"] == "pong"
        socket.frame(text.replace('""', '"%s"' % ("x" * (65_537 - len(text)))).encode())
        assert socket.closed()[0] == 1009
    with WebSocket(service.port) as socket:
        socket.frame(b"x" * 40_000, final=False)
        socket.frame(b"x" * 40_000, opcode=0)
        assert socket.closed()[0] == 1009


def test_after_a_socket_is_closed_the_service_goes_on(service: Service) -> None:
    assert service.get("/health/ready").status == 200
    assert service.err.text == ""


# operations


def test_a_query_and_a_mutation_have_one_result(service: Service, admin: str) -> None:
    with WebSocket(service.port, token=admin) as socket:
        socket.begin()
        socket.subscribe("q", "query($n: Int!) { users(first: $n) { __typename } }", n=1)
        assert socket.receive() == {"id": "q", "type": "next", "payload": {"data": {"users": [{"__typename": "User"}]}}}
        assert socket.receive() == {"id": "q", "type": "complete"}
        socket.subscribe("q", 'mutation { createUser(input: {name: "M", email: "m@example.com"}) { name } }')
        assert socket.receive() == {"id": "q", "type": "next", "payload": {"data": {"createUser": {"name": "M"}}}}
        assert socket.receive() == {"id": "q", "type": "complete"}
        socket.subscribe("q", 'mutation { createUser(input: {name: "M", email: "m@example.com"}) { name } }')
        message = socket.receive()  # it ran, and there is no data
        assert message["type"] == "next" and message["payload"]["data"] is None
        assert message["payload"]["errors"][0]["extensions"]["code"] == "CONFLICT"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{", "GRAPHQL_PARSE_FAILED"),
        ("{ nothing }", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription { nothingChanged { cursor } }", "GRAPHQL_VALIDATION_FAILED"),
        ('subscription { userChanged(after: "nonsense") { cursor } }', "BAD_USER_INPUT"),
        ("subscription { orderChanged { cursor } }", "UNAUTHENTICATED"),
    ],
)
def test_what_is_refused_is_an_error_of_its_operation(socket: WebSocket, query: str, code: str) -> None:
    socket.subscribe("1", query)
    message = socket.receive()
    assert (message["id"], message["type"]) == ("1", "error")
    assert {error["extensions"]["code"] for error in message["payload"]} == {code}
    settled(socket)  # the socket goes on, and the id is free
    socket.subscribe("1", "{ __typename }")
    assert socket.receive()["type"] == "next"


def test_changes_come_until_they_are_wanted_no_more(service: Service, admin: str) -> None:
    names = "subscription($after: String) { c: userChanged(kinds: [CREATED], after: $after) { kind user { name } } }"
    with WebSocket(service.port) as socket:
        socket.begin()
        socket.subscribe("all", USERS, after=now(service))
        socket.subscribe("names", names, after=now(service))
        first = add(service, admin, "First")
        told = {message["id"]: message["payload"] for message in (socket.receive(), socket.receive())}
        assert told["names"] == {"data": {"c": {"kind": "CREATED", "user": {"name": "First"}}}}
        assert told["all"]["data"]["userChanged"]["rowId"] == first
        socket.send(type="complete", id="all")
        socket.send(type="complete", id="never-there")
        settled(socket)
        add(service, admin, "Second")
        message = socket.receive()
        assert (message["id"], message["payload"]["data"]["c"]["user"]["name"]) == ("names", "Second")
        settled(socket)
        cursor = told["all"]["data"]["userChanged"]["cursor"]
        socket.subscribe("all", USERS, after=cursor)  # the id is free, and the cursor leads on
        message = socket.receive()
        assert (message["id"], message["payload"]["data"]["userChanged"]["user"]["name"]) == ("all", "Second")


def test_an_id_can_be_used_once_at_a_time(socket: WebSocket) -> None:
    socket.subscribe("twice", USERS)
    socket.subscribe("twice", "{ __typename }")
    assert socket.closed() == (4409, "Subscriber for twice already exists")


def test_a_socket_may_have_a_hundred_operations(socket: WebSocket) -> None:
    for number in range(100):
        socket.subscribe(str(number), USERS)
    socket.subscribe("one more", "{ __typename }")
    message = socket.receive()
    assert (message["id"], message["type"]) == ("one more", "error")
    assert message["payload"][0]["extensions"]["code"] == "TOO_COMPLEX"
    socket.send(type="complete", id="7")
    while True:  # the one that was given up ends in its own time
        socket.subscribe("another", "{ __typename }")
        if socket.receive()["type"] == "next":
            break


# the token, later


@pytest.fixture
def key(service: Service) -> str:
    """An API key."""
    made = diptych("api-key", "add", "machine", "--role", "admin", "--database", service.database)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_a_token_that_is_revoked_closes_the_socket(service: Service, key: str) -> None:
    with WebSocket(service.port, token=key) as idle, WebSocket(service.port) as watching:
        idle.begin()
        watching.begin(authorization=f"Bearer {key}")
        watching.subscribe("1", USERS, after=now(service))
        add(service, key, "Fifth")
        assert watching.receive()["type"] == "next"
        assert diptych("api-key", "remove", "machine", "--database", service.database).returncode == 0
        opcode, data = watching.next_frame()  # by itself, and with the cursor of what it was told
        assert opcode == 1 and list(json.loads(data)["payload"]) == ["cursor", "cursors"]
        assert watching.closed() == (4403, "Forbidden")
        idle.subscribe("1", "{ __typename }")
        assert idle.closed() == (4403, "Forbidden")  # when it asks again
