"""The order of checks, each pair of neighbours; and failures of our own, of which nothing is told."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from diptych.compile.plan import Plan
from diptych.errors import Code, Refusal
from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN, NOBODY, POST
from tests.support.cases import cases
from tests.support.in_process import RESPONSE, Service

BAD = {"authorization": "Bearer nope"}
JSON = {"content-type": "application/json"}
LARGE = b'{"query":"' + b"x" * 2_000_000

# what is wrong (first the thing that is told), the request, what is told
PAIRS: list[tuple[str, str, str, dict[str, str], bytes, int, str]] = [
    ("token, path", "GET", "/nope", BAD, b"", 401, "UNAUTHENTICATED"),
    ("token, method", "TRACE", "/users", BAD, b"", 401, "UNAUTHENTICATED"),
    ("token, method (GraphQL)", "PUT", "/graphql", BAD, b"", 401, "UNAUTHENTICATED"),
    ("token, media", "GET", "/users", {**BAD, "accept": "text/html"}, b"", 401, "UNAUTHENTICATED"),
    ("token, media (GraphQL)", "POST", "/graphql", {**BAD, "content-type": "text/plain"}, b"", 401, "UNAUTHENTICATED"),
    ("token, size", "POST", "/graphql", {**BAD, **JSON}, LARGE, 401, "UNAUTHENTICATED"),
    ("token, syntax", "GET", "/users?%zz", BAD, b"", 401, "UNAUTHENTICATED"),
    ("path, method", "TRACE", "/nope", {}, b"", 404, "NOT_FOUND"),
    ("path, media", "GET", "/nope", {"accept": "text/html"}, b"", 404, "NOT_FOUND"),
    ("path, syntax", "GET", "/nope?%zz", {}, b"", 404, "NOT_FOUND"),
    ("path, role", "GET", "/orders/1/nope", {}, b"", 404, "NOT_FOUND"),
    ("method, media", "TRACE", "/users", {"accept": "text/html"}, b"", 405, "METHOD_NOT_ALLOWED"),
    ("method, media (GraphQL)", "PUT", "/graphql", {"accept": "text/html"}, b"", 405, "METHOD_NOT_ALLOWED"),
    ("method, syntax", "TRACE", "/users?%zz", {}, b"", 405, "METHOD_NOT_ALLOWED"),
    ("method, role", "TRACE", "/orders", {}, b"", 405, "METHOD_NOT_ALLOWED"),
    ("method, size", "PUT", "/graphql", JSON, LARGE, 405, "METHOD_NOT_ALLOWED"),
    ("media of the answer, syntax", "GET", "/users?%zz", {"accept": "text/html"}, b"", 406, "NOT_ACCEPTABLE"),
    ("media of the answer, role", "GET", "/orders", {"accept": "text/html"}, b"", 406, "NOT_ACCEPTABLE"),
    ("media of the answer, size", "POST", "/graphql", {**JSON, "accept": "text/html"}, LARGE, 406, "NOT_ACCEPTABLE"),
    (
        "media of the body, size",
        "POST",
        "/graphql",
        {"content-type": "text/plain"},
        LARGE,
        415,
        "UNSUPPORTED_MEDIA_TYPE",
    ),
    ("size, syntax", "POST", "/graphql", JSON, LARGE, 413, "PAYLOAD_TOO_LARGE"),
    ("syntax, role", "GET", "/orders?%zz", {}, b"", 400, "BAD_REQUEST"),
    ("syntax, role (twice)", "GET", "/orders?a=1&a=1", {}, b"", 400, "BAD_REQUEST"),
    ("syntax, role (fields)", "GET", "/orders?fields=(", {}, b"", 400, "BAD_REQUEST"),
    ("syntax, role (where)", "GET", "/orders?where={", {}, b"", 400, "BAD_REQUEST"),
    ("syntax, role (JSON)", "POST", "/graphql", JSON, b'{"query":"{ orders { id } }"', 400, "BAD_REQUEST"),
    ("syntax, role (GraphQL)", "POST", "/graphql", JSON, b'{"query":"{ orders { id }"}', 400, "GRAPHQL_PARSE_FAILED"),
    ("syntax, row", "GET", f"/users/{NOBODY}?nope=1", {}, b"", 400, "BAD_REQUEST"),
    ("syntax, hidden row", "GET", f"/posts/{POST[3]}?fields=nope", {}, b"", 400, "BAD_REQUEST"),
    ("role, values", "GET", "/orders?first=0&total=x", {}, b"", 401, "UNAUTHENTICATED"),
    (
        "role, values (GraphQL)",
        "POST",
        "/graphql",
        JSON,
        b'{"query":"{ orders(first: 0) { id } }"}',
        401,
        "UNAUTHENTICATED",
    ),
    (
        "role, variables",
        "POST",
        "/graphql",
        JSON,
        b'{"query":"query($n: Int!) { orders(first: $n) { id } }"}',
        401,
        "UNAUTHENTICATED",
    ),
    ("role, row", "GET", f"/orders/{NOBODY}", {}, b"", 401, "UNAUTHENTICATED"),
    ("role, row below", "GET", f"/users/{NOBODY}/orders", {}, b"", 401, "UNAUTHENTICATED"),
    ("values, row", "GET", f"/users/{NOBODY}/posts?first=0", {}, b"", 400, "BAD_REQUEST"),
    ("values, cursor", "GET", "/posts?first=0&after=x", {}, b"", 400, "BAD_REQUEST"),
]


@cases(("what", "method", "url", "headers", "body", "status", "code"), PAIRS, ids=[case[0] for case in PAIRS])
def test_of_two_faults_the_earlier_check_is_told(
    shop: Service, what: str, method: str, url: str, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    before = shop.runs
    given = headers if "accept" in headers or url != "/graphql" else {**headers, "accept": RESPONSE}
    answer = shop.send(method, url, headers=given, body=body)
    assert (answer.status, answer.code) == (status, code), answer.body
    assert shop.runs == before


def test_the_largest_body_is_taken_and_one_byte_more_is_not(fresh: Fresh) -> None:
    service = fresh(max_body=1000)
    body = b'{"query":"{ __typename }"'
    fits = body + b" " * (1000 - len(body) - 1) + b"}"
    assert service.post(fits).status == 200
    for accept in (RESPONSE, "application/json"):
        answer = service.post(fits + b" ", accept=accept)
        assert (answer.status, answer.code) == (413, "PAYLOAD_TOO_LARGE")
        assert "1000" in answer.json()["errors"][0]["message"]


# failures of our own


def break_store(service: Service, error: Exception) -> None:
    async def run(plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        raise error

    service.app.store.run = run  # type: ignore[method-assign]  # a spy


@pytest.mark.parametrize("accept", [RESPONSE, "application/json", "*/*"])
def test_nothing_of_an_exception_is_told_but_a_number_that_the_log_has_too(
    fresh: Fresh, caplog: pytest.LogCaptureFixture, accept: str
) -> None:
    service = fresh()
    break_store(service, RuntimeError("the secret is 42"))
    answers = [
        service.get("/users"),
        service.get(f"/users/{ANN}"),
        service.send("HEAD", "/users"),
        service.query("{ users { id } }", accept=accept),
        service.get_query({"query": "{ users { id } }"}, accept=accept),
    ]
    assert len(caplog.records) == len(answers)
    for answer, record in zip(answers, caplog.records, strict=True):
        assert (answer.status, answer.code) == (500, "INTERNAL")
        assert b"secret" not in answer.body and b"RuntimeError" not in answer.body and b"42" not in answer.body[:60]
        body = answer.json()
        told = body["detail"] if "detail" in body else body["errors"][0]["message"]
        number = told.rstrip(".").split()[-1]
        assert len(number) >= 8
        assert record.levelno == logging.ERROR and number in record.getMessage()
        assert record.exc_info is not None and "the secret is 42" in str(record.exc_info[1])
        assert answer.headers["cache-control"] == "no-store"
    assert len({record.getMessage().split()[1] for record in caplog.records}) == len(answers)


@pytest.mark.parametrize(("code", "status"), [(Code.UNAVAILABLE, 503), (Code.TIMEOUT, 504)])
def test_a_store_that_cannot_answer_has_its_own_status_in_both_styles(fresh: Fresh, code: Code, status: int) -> None:
    service = fresh()
    break_store(service, Refusal(code, "Not now."))
    for answer in (
        service.get("/users"),
        service.query("{ users { id } }"),
        service.query("{ users { id } }", accept="application/json"),
    ):
        assert (answer.status, answer.code) == (status, code.value)
        assert answer.headers["cache-control"] == "no-store"


def test_a_failure_is_not_remembered(fresh: Fresh) -> None:
    service = fresh()
    run = service.app.store.run
    break_store(service, RuntimeError("x"))
    assert [service.get("/users").status for _ in range(3)] == [500] * 3
    assert [service.query("{ users { id } }").status for _ in range(3)] == [500] * 3
    service.app.store.run = run  # type: ignore[method-assign]  # a spy
    assert service.get("/users").status == 200
    assert service.query("{ users { id } }").status == 200


def test_readiness_needs_the_store_and_life_does_not(fresh: Fresh) -> None:
    service = fresh()
    assert (service.get("/health/ready").status, service.get("/health/live").status) == (200, 200)
    service.runner.run(service.app.store.close())
    ready = service.get("/health/ready")
    assert (ready.status, ready.code) == (503, "UNAVAILABLE")
    assert service.get("/health/live").status == 200
    assert service.get("/users").status == 503
