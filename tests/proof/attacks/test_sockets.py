"""Attacks over real sockets: a part of those that are sent in process, and those that need a connection.

Whatever is sent, the service goes on afterwards, and says nothing on stderr (`running` holds that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from diptych.api.graphql.socket import MAX_MESSAGE
from tests.contract.live.clients import WebSocket
from tests.proof.attacks.bombs import U, fan, fan_out
from tests.proof.attacks.case import Case, times
from tests.proof.attacks.deep import attack, by_fragments
from tests.proof.attacks.everything import REFUSED
from tests.support.cases import cases
from tests.support.running import NewDatabase, Service, served

MOST = 65_536
"""Bytes that the head of a request may have."""
_ROOM = 2_000
"""What a client adds to it by itself."""
_EVERY = 15


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample", DIPTYCH_PLANNING_SHARE="0") as service:
        yield service
        assert service.query("{ users(first: 1) { __typename } }") == {"data": {"users": [{"__typename": "User"}]}}
        assert service.get("/health/ready").status == 200


@pytest.fixture
def socket(service: Service) -> Iterator[WebSocket]:
    with WebSocket(service.port) as socket:
        socket.begin()
        yield socket


# requests


def head_of(case: Case) -> int:
    return (
        len(case.method) + len(case.url) + sum(len(name) + len(value) for name, value in case.headers.items()) + _ROOM
    )


def is_sent(case: Case) -> bool:
    """Those who need no token, and no row that the sample has not; what is too large is refused while it is sent."""
    return case.who == "nobody" and not case.reads and head_of(case) < MOST and case.code != "PAYLOAD_TOO_LARGE"


SENT = {
    name: case
    for number, (name, case) in enumerate((name, case) for name, case in REFUSED.items() if is_sent(case))
    if number % _EVERY == 0 or name.startswith(("the named attack", "published"))
}


@cases("name", SENT)
def test_an_attack_is_refused_over_a_socket_as_it_is_in_process(service: Service, name: str) -> None:
    case = SENT[name]
    answer = service.request(case.method, case.url, case.headers, case.body if case.method != "GET" else None)
    assert answer.status == case.status, answer.body[:300]
    assert f'"{case.code}"'.encode() in answer.body


@pytest.mark.parametrize("name", ["accept", "prefer", "if-match", "authorization", "cookie", "x-anything"])
def test_a_head_that_is_too_large_is_refused(service: Service, name: str) -> None:
    answer = service.request("GET", "/users?first=1", {name: "x" * 70_000})
    assert answer.status == 431
    assert answer.json()["code"] == "HEADERS_TOO_LARGE"


@pytest.mark.parametrize(
    "target", ["/users/" + "x" * 70_000, "/users?fields=" + "id," * 30_000, "/graphql?query=" + "x" * 70_000]
)
def test_an_address_that_is_too_long_is_refused(service: Service, target: str) -> None:
    assert service.request("GET", target).status == 431


# sockets: the same limits hold there

OPERATIONS: dict[str, tuple[str, str]] = {
    "the named attack": (attack(21), "TOO_DEEP"),
    "the named attack by fragments": (by_fragments(21), "TOO_DEEP"),
    "the named attack, 100 levels": (attack(100), "TOO_DEEP"),
    "the named attack below a subscription": (
        "subscription { postChanged { post { author { posts { author { posts { author { posts { author "
        "{ posts { author { posts { author { id } } } } } } } } } } } } } }",
        "TOO_DEEP",
    ),
    "CVE-2026-30241 Mercurius: a subscription has no limit of depth": (
        "subscription { userChanged { user " + attack(30).replace(f"{{ {U} ", "", 1)[:-1] + "} }",
        "TOO_DEEP",
    ),
    "fragments and aliases": (fan(9, 3), "TOO_COMPLEX"),
    "fan-out": (fan_out(12), "TOO_DEEP"),
    "31 aliases": (f"{{ users {{ {times(31, 'a§: id')} }} }}", "TOO_COMPLEX"),
    "900 directives": (f"{{ __typename {'@aa' * 900} }}", "TOO_COMPLEX"),
    "a subscription with two roots": (
        "subscription { postChanged { rowId } userChanged { rowId } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    "a subscription that is dear": (
        "subscription { userChanged { user { posts(first: 100) { comments(first: 100) { id } } } } }",
        "TOO_COMPLEX",
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_of_a_socket_has_the_limits_of_all(socket: WebSocket, name: str) -> None:
    document, code = OPERATIONS[name]
    socket.subscribe("1", document)
    message = socket.receive()
    assert (message["type"], {error["extensions"]["code"] for error in message["payload"]}) == ("error", {code})


# sockets: what is sent on them

SUBSCRIBE = b'{"type":"subscribe","id":"1","payload":{"query":"subscription { postChanged { rowId } }"}}'


def _pieces(socket: WebSocket) -> None:
    """Up to the one that is too much: whoever goes on may find the connection closed, and its last word lost."""
    for number in range(MAX_MESSAGE // 4_000 + 1):
        socket.frame(b"x" * 4_000, opcode=0 if number else 1, final=False)


def _after_init(socket: WebSocket, message: bytes) -> None:
    socket.begin()
    socket.frame(message)


MESSAGES: dict[str, tuple[Callable[[WebSocket], None], int]] = {
    "CVE-2026-35523 Strawberry: an operation before the beginning": (lambda socket: socket.frame(SUBSCRIBE), 4401),
    "variables, 66 levels deep": (
        lambda socket: _after_init(
            socket,
            b'{"type":"subscribe","id":"1","payload":{"query":"{ __typename }","variables":{"a":'
            + b"[" * 66
            + b"]" * 66
            + b"}}}",
        ),
        4400,
    ),
    "brackets without end": (lambda socket: socket.frame(b"[" * 60_000), 4400),
    "a query that is a list": (
        lambda socket: _after_init(socket, b'{"type":"subscribe","id":"1","payload":{"query":["{ a }"]}}'),
        4400,
    ),
    "several messages in one": (lambda socket: _after_init(socket, b"[" + SUBSCRIBE + b"," + SUBSCRIBE + b"]"), 4400),
    "the query twice": (
        lambda socket: _after_init(
            socket, b'{"type":"subscribe","id":"1","payload":{"query":"{ a }","query":"{ b }"}}'
        ),
        4400,
    ),
    "a number of 50,000 digits": (
        lambda socket: _after_init(
            socket,
            b'{"type":"subscribe","id":"1","payload":{"query":"{ __typename }","variables":{"a":'
            + b"9" * 50_000
            + b"}}}",
        ),
        4400,
    ),
    "mercurius-js/mercurius#939: bits of a frame that have no meaning": (
        lambda socket: socket.socket.sendall(bytes([0xA2, 0x80, 0, 0, 0, 0])),
        1002,
    ),
    "a frame that is not masked": (lambda socket: socket.socket.sendall(b"\x81\x02{}"), 1002),
    "a ping of 126 bytes": (lambda socket: socket.frame(b"x" * 126, opcode=9), 1002),
    "a frame that says that it is huge": (
        lambda socket: socket.socket.sendall(b"\x81\xff\x7f" + b"\xff" * 7 + b"\0\0\0\0"),
        1009,
    ),
    "pieces without end": (_pieces, 1009),
}


@cases("name", MESSAGES)
def test_what_is_no_message_ends_the_socket_and_nothing_else(service: Service, name: str) -> None:
    send, code = MESSAGES[name]
    with WebSocket(service.port) as socket:
        send(socket)
        assert socket.closed()[0] == code


@pytest.mark.parametrize("protocol", ["graphql-ws", "subscriptions-transport-ws"])
def test_the_old_protocol_is_none_of_ours(service: Service, protocol: str) -> None:
    """CVE-2026-35523, of Strawberry: the client chose the protocol whose beginning nobody looked at."""
    with WebSocket(service.port, protocol=protocol) as socket:
        if protocol == "graphql-ws":  # the reason, in the form of that protocol: it is all that its clients show
            assert socket.receive()["type"] == "connection_error"
        assert socket.closed()[0] == 4406


def test_a_socket_may_not_follow_without_end(socket: WebSocket) -> None:
    """CVE-2026-35526, of Strawberry: as many subscriptions as there are messages."""
    for number in range(400):
        socket.subscribe(str(number), "subscription { postChanged { rowId } }")
    codes = [socket.receive()["payload"][0]["extensions"]["code"] for _ in range(300)]
    assert set(codes) == {"TOO_COMPLEX"}


def test_a_flood_of_refused_operations_leaves_the_socket_as_it_was(socket: WebSocket) -> None:
    for number in range(200):
        socket.subscribe(str(number), attack(11 + number % 40))
    assert {socket.receive()["payload"][0]["extensions"]["code"] for _ in range(200)} == {"TOO_DEEP"}
    socket.subscribe("last", "{ __typename }")
    assert socket.receive()["payload"] == {"data": {"__typename": "Query"}}
