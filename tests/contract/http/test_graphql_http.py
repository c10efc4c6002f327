"""GraphQL over HTTP: methods, media types, statuses, parameters, operations, caching."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN
from tests.support.cases import cases
from tests.support.in_process import RESPONSE, Service

LEGACY = "application/json"
GOOD = f"{{ user(id: {json.dumps(ANN)}) {{ name }} }}"
ANNS = {"data": {"user": {"name": "Ann"}}}

# Accept, the media type of the answer; None is 406
ACCEPTS: dict[str, str | None] = {
    "": LEGACY,
    "*/*": LEGACY,
    "application/*": LEGACY,
    LEGACY: LEGACY,
    RESPONSE: RESPONSE,
    f"{RESPONSE}, {LEGACY}": LEGACY,
    f"{RESPONSE}, {LEGACY};q=0.9": RESPONSE,
    f"{LEGACY};q=0.1, */*;q=0.5": RESPONSE,
    f"{RESPONSE}; charset=utf-8, {LEGACY};q=0.9": RESPONSE,
    f"{RESPONSE};q=0, */*": LEGACY,
    f"text/html, {RESPONSE}": RESPONSE,
    "APPLICATION/JSON": LEGACY,
    "application/json; charset=utf-8": LEGACY,
    "text/html": None,
    "application/xml": None,
    f"{LEGACY};q=0": None,
    "text/event-stream-x": None,
}

# a document, the code of its error, its status in the media type of GraphQL
FAILING: dict[str, tuple[str, int]] = {
    "{": ("GRAPHQL_PARSE_FAILED", 400),
    "": ("GRAPHQL_PARSE_FAILED", 400),
    "{ nope }": ("GRAPHQL_VALIDATION_FAILED", 400),
    "{ users }": ("GRAPHQL_VALIDATION_FAILED", 400),
    "{ users(first: 0) { id } }": ("BAD_USER_INPUT", 422),
    "query($n: Int!) { users(first: $n) { id } }": ("BAD_USER_INPUT", 422),
    "{ orders { id } }": ("UNAUTHENTICATED", 401),
    "mutation { nope }": ("GRAPHQL_VALIDATION_FAILED", 400),
    "{ posts(first: 100) { comments(first: 100) { id } } }": ("TOO_COMPLEX", 400),
    "query A { __typename } query B { __typename }": ("GRAPHQL_VALIDATION_FAILED", 400),
}


@cases("accept", ACCEPTS)
def test_the_answer_is_of_the_media_type_that_is_liked_best(shop: Service, accept: str) -> None:
    for answer in (
        shop.post({"query": GOOD}, headers={"accept": accept}),
        shop.get_query({"query": GOOD}, accept=accept),
    ):
        if ACCEPTS[accept] is None:
            assert (answer.status, answer.code) == (406, "NOT_ACCEPTABLE")
        else:
            assert (answer.status, answer.json()) == (200, ANNS)
            assert answer.headers["content-type"] == f"{ACCEPTS[accept]}; charset=utf-8"


@cases("document", FAILING)
def test_a_failing_document_has_a_status_of_its_own_only_in_the_media_type_of_graphql(
    shop: Service, document: str
) -> None:
    code, status = FAILING[document]
    for accept, wanted in ((RESPONSE, status), (LEGACY, 200)):
        answer = shop.query(document, accept=accept)
        assert (answer.status, answer.code, answer.kind) == (wanted, code, accept)
        assert list(answer.json()) == ["errors"]
        assert answer.headers["cache-control"] == "no-store"
        assert ("www-authenticate" in answer.headers) == (answer.status == 401)


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        'application/json; charset="utf-8"',
        " application/json ; charset=utf-8",
        "application/json; profile=x",
    ],
)
def test_json_is_taken(shop: Service, kind: str) -> None:
    assert shop.post({"query": GOOD}, kind=kind).json() == ANNS


@cases(
    "kind",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/graphql",
        "application/json; charset=utf-16",
        "application/json; charset=latin1",
        "text/json",
        "application/jsonx",
        "json",
        "application/graphql-response+json",
        "application/problem+json",
        "text/plain; application/json",
    ],
)
def test_any_other_content_type_is_refused_before_the_body_is_read(shop: Service, kind: str) -> None:
    for accept in (RESPONSE, LEGACY):
        answer = shop.post({"query": GOOD}, kind=kind, accept=accept)
        assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
        assert not answer.body_was_read


def test_a_body_without_a_content_type_is_refused(shop: Service) -> None:
    answer = shop.send("POST", "/graphql", body=json.dumps({"query": GOOD}).encode())
    assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


WRONG_BODIES: list[Any] = [
    b"",
    b" ",
    b"{",
    b"nope",
    b"null",
    b"5",
    b'"{ users { id } }"',
    b"[]",
    b"{}",
    b"{}{}",
    b"\xff",
    b'{"query":"\xff"}',
    [{"query": GOOD}],
    [],
    {"query": None},
    {"query": 5},
    {"query": ["x"]},
    {"query": {}},
    {"query": True},
    {"Query": GOOD},
    {"variables": {}},
    {"query": GOOD, "variables": []},
    {"query": GOOD, "variables": "{}"},
    {"query": GOOD, "variables": 5},
    {"query": GOOD, "variables": False},
    {"query": GOOD, "operationName": 5},
    {"query": GOOD, "operationName": {}},
    {"query": GOOD, "operationName": []},
    {"query": GOOD, "extensions": []},
    {"query": GOOD, "extensions": "x"},
    {"query": GOOD, "extensions": 0},
    b'{"query":"{ __typename }",}',
    b"{'query':'{ __typename }'}",
    b'\xef\xbb\xbf{"query":"{ __typename }"}',
    b'{"query":"\\ud800"}',
    b'{"query":"{ __typename }","variables":{"a":NaN}}',
    b'{"query":"{ __typename }","variables":{"a":Infinity}}',
    b'{"query":"{ __typename }","variables":{"a":1e400}}',
    b'{"query":"{ __typename }","variables":{"a":"\\udfff"}}',
    b'{"query":"{ __typename }" "variables":{}}',
    b'{"query":"\n"}',
    b'{"query":"\x00"}',
]


@cases("body", WRONG_BODIES)
def test_a_body_that_is_no_request_is_refused_in_every_media_type(shop: Service, body: Any) -> None:
    for accept in (RESPONSE, LEGACY):
        answer = shop.post(body, accept=accept)
        assert (answer.status, answer.code, answer.kind) == (400, "BAD_REQUEST", accept), answer.body
        assert list(answer.json()) == ["errors"]


@cases(
    "more",
    [
        {},
        {"variables": None},
        {"variables": {}},
        {"variables": {"unknown": [1]}},
        {"operationName": None},
        {"extensions": None},
        {"extensions": {}},
        {"extensions": {"x": 1}},
        {"unknown": 1},
        {"variables": None, "operationName": None, "extensions": None},
    ],
)
def test_what_may_be_left_out_may_be_null(shop: Service, more: dict[str, Any]) -> None:
    assert shop.post({"query": GOOD, **more}).json() == ANNS


# GET


def test_a_query_may_be_sent_by_get(shop: Service) -> None:
    document = "query One($id: ID!) { user(id: $id) { name } } query Two { __typename }"
    given = {"query": document, "operationName": "One", "variables": json.dumps({"id": ANN}), "extensions": "{}"}
    assert shop.get_query(given).json() == ANNS
    assert shop.get_query({"query": GOOD, "variables": "", "operationName": "", "extensions": ""}).json() == ANNS
    assert shop.get_query({"query": GOOD, "variables": "null"}).json() == ANNS
    assert shop.get("/graphql?query=%7B+__typename%20%7D").json() == {"data": {"__typename": "Query"}}
    head = shop.send("HEAD", "/graphql?query=%7B__typename%7D")
    assert (head.status, "etag" in head.headers) == (200, True)


@cases(
    "query",
    [
        "",
        "query",
        "query=",
        "variables={}",
        "query=%7B__typename%7D&query=%7B__typename%7D",
        "query=%",
        "query=%FF",
        "query=%7B__typename%7D&variables=[]",
        "query=%7B__typename%7D&variables=x",
        "query=%7B__typename%7D&variables=5",
        "query=%7B__typename%7D&variables=%22%22",
        "query=%7B__typename%7D&extensions=[]",
        "query=%7B__typename%7D&nope=1",
        "query=%7B__typename%7D&variables={%22a%22:NaN}",
        "query=%7B__typename%7D&variables={%22a%22:%22%5Cud800%22}",
        "query=%7B__typename%7D&extensions=%7B",
        "query=%7B__typename%7D&variables=" + "[" * 10_000,
        "query=%7B__typename%7D&variables={%22a%22:" + "[" * 10_000 + "]" * 10_000 + "}",
    ],
)
def test_a_query_string_that_is_no_request_is_refused(shop: Service, query: str) -> None:
    answer = shop.get(f"/graphql?{query}", headers={"accept": RESPONSE})
    assert answer.status == 400, answer.body
    assert answer.kind == RESPONSE


def test_get_answers_have_a_tag_and_are_not_sent_again(shop: Service) -> None:
    first = shop.get_query({"query": GOOD})
    tag = first.headers["etag"]
    assert (first.headers["cache-control"], first.headers["vary"]) == (
        "private, no-cache",
        "Authorization, Accept, Accept-Encoding",
    )
    for given in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        again = shop.get_query({"query": GOOD}, headers={"if-none-match": given})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert shop.get_query({"query": GOOD}, headers={"if-none-match": '"x"'}).status == 200
    assert "etag" not in shop.get_query({"query": "{ nope }"}).headers


def test_a_get_answer_that_changed_is_sent_again(fresh: Fresh) -> None:
    service = fresh()
    tag = service.get_query({"query": GOOD}).headers["etag"]
    service.execute("UPDATE users SET name = name || '!'")
    again = service.get_query({"query": GOOD}, headers={"if-none-match": tag})
    assert (again.status, again.json()) == (200, {"data": {"user": {"name": "Ann!"}}})


@pytest.mark.parametrize("document", ["mutation { x }", "mutation M { x } query Q { __typename }"])
def test_a_mutation_may_not_be_sent_by_get(shop: Service, document: str) -> None:
    for accept in (RESPONSE, LEGACY):
        given = {"query": document} if "Q" not in document else {"query": document, "operationName": "M"}
        answer = shop.get_query(given, accept=accept)
        assert (answer.status, answer.code, answer.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", "POST")


@pytest.mark.parametrize("document", ["subscription { postChanged { rowId } }", "subscription { nope }"])
def test_a_subscription_needs_a_client_that_takes_a_stream(shop: Service, document: str) -> None:
    for accept in (RESPONSE, LEGACY):
        for answer in (shop.query(document, accept=accept), shop.get_query({"query": document}, accept=accept)):
            assert (answer.status, answer.code) == (406, "NOT_ACCEPTABLE")


def test_get_and_post_give_the_same_bytes(shop: Service) -> None:
    document = "{ posts(first: 3) { title author { name } } }"
    assert shop.get_query({"query": document}).body == shop.query(document).body


# methods


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "post", ""])
def test_another_method_is_refused_with_those_that_are_allowed(shop: Service, method: str) -> None:
    answer = shop.send(method, "/graphql", body=b"{}", headers={"content-type": "application/json"})
    assert (answer.status, answer.code) == (405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == "GET, HEAD, POST, QUERY, OPTIONS"
    assert not answer.body_was_read


def test_options_tells_what_is_allowed(shop: Service) -> None:
    answer = shop.send("OPTIONS", "/graphql")
    assert (answer.status, answer.headers["allow"], answer.body) == (204, "GET, HEAD, POST, QUERY, OPTIONS", b"")


# operations

SEVERAL = "query A { a: __typename } query B { b: __typename } mutation C { c }"


@cases(
    ("document", "name", "wanted"),
    [
        ("{ a: __typename }", None, {"a": "Query"}),
        ("query { a: __typename }", None, {"a": "Query"}),
        ("query A { a: __typename }", None, {"a": "Query"}),
        ("query A { a: __typename }", "A", {"a": "Query"}),
        ("query A { a: __typename } query B { b: __typename }", "B", {"b": "Query"}),
        ("query A { a: __typename } query B { b: __typename }", "C", "GRAPHQL_VALIDATION_FAILED"),
        ("query A { a: __typename } query B { b: __typename }", "a", "GRAPHQL_VALIDATION_FAILED"),
        ("query A { a: __typename } query B { b: __typename }", None, "GRAPHQL_VALIDATION_FAILED"),
        ("{ a: __typename }", "A", "GRAPHQL_VALIDATION_FAILED"),
        ("query A { a: __typename }", "", "GRAPHQL_VALIDATION_FAILED"),
        ("fragment F on User { id }", None, "GRAPHQL_VALIDATION_FAILED"),
        ("query A { a: __typename } query A { b: __typename }", "A", "GRAPHQL_VALIDATION_FAILED"),
        ("{ a: __typename } query B { b: __typename }", "B", "GRAPHQL_VALIDATION_FAILED"),
        ("query A { a: __typename } query B { nope }", "A", "GRAPHQL_VALIDATION_FAILED"),
        ("type X { y: Int }", None, "GRAPHQL_VALIDATION_FAILED"),
        ("# nothing", None, "GRAPHQL_PARSE_FAILED"),
    ],
)
def test_the_operation_that_is_named_runs(shop: Service, document: str, name: str | None, wanted: Any) -> None:
    for _ in range(3):
        answer = shop.post({"query": document, "operationName": name}, accept=RESPONSE)
        if isinstance(wanted, str):
            assert (answer.status, answer.code) == (400, wanted), answer.body
        else:
            assert answer.json() == {"data": wanted}


def test_an_operation_that_the_schema_lacks_is_refused(shop: Service) -> None:
    answer = shop.query("mutation { __typename }")
    assert (answer.status, answer.code) == (400, "GRAPHQL_VALIDATION_FAILED")
