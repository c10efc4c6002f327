"""Those who judge are judged: each fault that they look for is planted once, and found; what is right is let pass."""

from __future__ import annotations

import json
from typing import Any

import graphql
import pytest

from tests.proof.fuzz.drive import completed, shrink
from tests.proof.fuzz.foresee import foresee
from tests.proof.fuzz.judge import Judge
from tests.proof.fuzz.sample import LAST, handshake, sample
from tests.proof.fuzz.shape import misshapen
from tests.support.cases import cases
from tests.support.documents import document_of

JUDGE = Judge(document_of("default", "admin"))
USERS = sample("GET", "/users").raw()
QUERY = sample("POST", "/graphql", body={"query": "{ __typename }"}).raw()
TOKEN = sample("POST", "/oauth/token", body="x").raw()
KEPT = {"cache-control": "private, no-cache"}
STORED = {"cache-control": "no-store"}
PROBLEM = {"type": "about:blank", "title": "Bad request", "status": 400, "detail": "No.", "code": "BAD_REQUEST"}
ERROR = {"message": "No.", "extensions": {"code": "GRAPHQL_PARSE_FAILED"}}
RESPONSE = "application/graphql-response+json"


def answered(status: int, body: Any = b"", kind: str = "application/json", **headers: str) -> bytes:
    """The bytes of an answer, which is right unless it is asked to be wrong."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content-type": kind, "content-length": str(len(sent)), **(KEPT if status < 400 else STORED)}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in given.items() if value]
    return "\r\n".join((f"HTTP/1.1 {status} X", *lines, "", "")).encode("latin-1") + sent


def problem(**changed: Any) -> bytes:
    told = {**PROBLEM, **changed}
    return answered(
        int(told["status"]),
        {name: value for name, value in told.items() if value is not None},
        "application/problem+json",
    )


def errors(error: Any, status: int = 400) -> bytes:
    return answered(status, {"errors": [error]}, RESPONSE)


END = answered(200, {"status": "ok"}, connection="close", cache_control="no-store")
RIGHT = [
    (USERS, answered(200, {"data": []})),
    (USERS, problem()),
    (QUERY, answered(200, {"data": {"__typename": "Query"}}, RESPONSE)),
    (QUERY, errors(ERROR)),
    (USERS, answered(304, content_type="", content_length="")),
    (TOKEN, answered(401, {"error": "invalid_client"}, www_authenticate="Basic")),
    (
        QUERY,
        answered(
            200, {"data": None, "errors": [{**ERROR, "path": ["a"], "locations": [{"line": 1, "column": 2}]}]}, RESPONSE
        ),
    ),
]
WRONG = {
    "a 500": (USERS, problem(status=500, code="INTERNAL")),
    "a 503 that does not say when to come again": (USERS, problem(status=503, code="UNAVAILABLE")),
    "a traceback": (USERS, problem(detail="Traceback (most recent call last)")),
    "a path of the machine": (USERS, problem(detail="in /usr/lib/x")),
    "a statement": (USERS, problem(detail='near "x": SELECT 1')),
    "an error that is kept": (USERS, problem().replace(b"no-store", b"max-age=9")),
    "nothing said to caches": (USERS, answered(200, {"data": []}, cache_control="")),
    "a header twice": (USERS, problem().replace(b"\r\n\r\n", b"\r\nvary: a\r\nvary: b\r\n\r\n", 1)),
    "a status that is in no document": (USERS, problem(status=409, code="CONFLICT")),
    "a problem without a code": (USERS, problem(code=None)),
    "a problem with a code of nowhere": (USERS, problem(code="NOPE")),
    "a problem with another status": (USERS, problem(status=406)),
    "a problem of no problem": (USERS, answered(400, PROBLEM)),
    "no JSON": (USERS, answered(200, b"{")),
    "a number that is none": (USERS, answered(200, b'{"a": NaN}')),
    "a key twice": (USERS, answered(200, b'{"a": 1, "a": 2}')),
    "no UTF-8": (USERS, answered(200, b'"\xff"')),
    "a page": (USERS, answered(200, b"<p>", "text/html")),
    "a media type of nowhere": (USERS, answered(200, b"x", "text/plain")),
    "a 401 without a challenge": (USERS, problem(status=401, code="UNAUTHENTICATED")),
    "a 405 without methods": (sample("PUT", "/users").raw(), problem(status=405, code="METHOD_NOT_ALLOWED")),
    "a body after 304": (USERS, answered(304, b"x")),
    "a body that is cut": (USERS, answered(200, b"{}", content_length="9")),
    "a body that is too long": (USERS, answered(200, b"{}", content_length="1")),
    "a header that is none": (USERS, answered(200, b"{}", x_a="b\x00c")),
    "no status line": (USERS, b"hello\r\n\r\n"),
    "an error without a code": (QUERY, errors({"message": "No."})),
    "an error with a code of nowhere": (QUERY, errors({"message": "No.", "extensions": {"code": "NOPE"}})),
    "an error with another member": (QUERY, errors({**ERROR, "stack": "x"})),
    "an error with another status": (QUERY, errors({**ERROR, "extensions": {"code": "TIMEOUT"}})),
    "data with the status of an error": (QUERY, answered(400, {"data": {}, "errors": [ERROR]}, RESPONSE)),
    "no errors where there are no data": (QUERY, answered(200, {"data": None}, RESPONSE)),
    "an empty list of errors": (QUERY, answered(400, {"errors": []}, RESPONSE)),
    "an error of OAuth without a name": (TOKEN, answered(400, {"errors": []})),
    "a frame that is masked": (
        handshake().raw(),
        b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n\x81\x84abcdefgh",
    ),
    "a message that is none": (
        handshake().raw(),
        b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n\x81\x02[]",
    ),
}


@pytest.mark.parametrize(("sent", "came"), RIGHT)
def test_what_is_right_passes(sent: bytes, came: bytes) -> None:
    assert JUDGE.judge(sent + LAST, came + END, ended=True) is None


@cases("fault", WRONG)
def test_a_planted_fault_is_found(fault: str) -> None:
    sent, came = WRONG[fault]
    assert JUDGE.judge(sent + LAST, came + END, ended=True) is not None


def kind(sent: bytes, came: bytes, *, ended: bool) -> str:
    """The kind of the fault that is reported; "" if there is none."""
    fault = JUDGE.judge(sent, came, ended=ended)
    return fault.kind if fault else ""


def test_every_request_is_answered_and_the_connection_goes_on_as_it_was_said() -> None:
    good = answered(200, {"data": []})
    assert kind(USERS + LAST, good, ended=True) == "unanswered"
    assert kind(USERS + LAST, b"", ended=True) == "unanswered"
    assert kind(USERS + LAST, END + END, ended=True) == "after the end"
    assert kind(USERS + LAST, good + END, ended=False) == "not closed"
    assert kind(USERS + b"\x00", good, ended=True) == "unanswered"


def test_bytes_are_foreseen_as_the_server_reads_them() -> None:
    assert (
        foresee(USERS).end == "whole" and foresee(USERS[:-1]).end == "torn" and foresee(USERS + b"\x00").end == "broken"
    )
    assert foresee(handshake().raw()).end == "socket"
    assert [
        seen.method for seen in foresee(sample("GET", "/", upgrade="h2c", connection="Upgrade").raw() + USERS).requests
    ] == [b"GET", b"GET"]
    short = sample("POST", "/users", body="x" * 100).raw()[: -len(LAST)]
    assert completed(short) == short + LAST + LAST, "what a body swallows is sent again"
    assert foresee(completed(short)).ends
    assert not foresee(USERS).ends and foresee(USERS + LAST).ends


def test_what_fails_is_made_small() -> None:
    assert shrink(b"a" * 500 + b"x" + b"b" * 500 + b"y", lambda raw: b"x" in raw and b"y" in raw) == b"xy"


SCHEMA = graphql.build_schema("type Query { a(b: Int): A c: [C!]! } type A { id: ID! n: Int } enum C { X Y }")


@cases(
    ("document", "data", "wrong"),
    [
        ("{ a { id n } }", {"a": {"id": "1", "n": None}}, ""),
        ("{ z: a { ... on A { n } ...F } c } fragment F on A { id n }", {"z": {"n": 1, "id": "1"}, "c": ["X"]}, ""),
        ("{ a { id } }", {"a": None}, ""),
        ("{ a { id } }", {"a": {"id": None}}, "data.a.id is null, and ID! is not"),
        ("{ a { id n } }", {"a": {"n": 1, "id": "1"}}, "data.a has ['n', 'id'], and ['id', 'n'] was asked for"),
        ("{ a { id } }", {"a": {"id": "1", "n": 1}}, "data.a has ['id', 'n'], and ['id'] was asked for"),
        ("{ a { n } }", {"a": {"n": True}}, "data.a.n is True, which is no Int"),
        ("{ c }", {"c": ["Z"]}, "data.c.0 is 'Z', which C has not"),
    ],
)
def test_data_are_what_was_asked_for(document: str, data: Any, wrong: str) -> None:
    assert misshapen(SCHEMA, document, data) == wrong
