"""A document that is named by its hash: what a name is, when a text is kept under it, and what it gives to whom."""

from __future__ import annotations

import json
from typing import Any

import pytest

from diptych.api.graphql.http import Parameters
from diptych.serve.endpoint.persisted import Persisted
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

LEGACY = "application/json"
NOT_FOUND = {"errors": [{"message": "PersistedQueryNotFound", "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"}}]}
HASH = hashed(NAMES)
NO_HASHES: tuple[Any, ...] = (
    None,
    1,
    True,
    [],
    {},
    [HASH],
    {"toString": HASH},
    "",
    HASH[:-1],
    HASH + "0",
    HASH.upper(),
    f"sha256:{HASH}",
    HASH[:-1] + "g",
    HASH[:-1] + "٣",
    f" {HASH[1:]}",
    f"{HASH[:-1]}\n",
    "__proto__",
    "constructor",
    "' OR 1=1 --",
)


def kept(service: Service) -> int:
    return len(service.handler.graphql.persisted.registered)


def register(service: Service, text: str, token: str | None = None, **others: Any) -> Answer:
    return service.post({"query": text, "extensions": apollo(text), **others}, accept=RESPONSE, token=token)


# Apollo's protocol


def test_a_hash_is_unknown_then_sent_with_its_text_then_known(service: Service) -> None:
    for answer in (service.get_query(by_apollo(NAMES)), service.post({"extensions": apollo(NAMES)}, accept=RESPONSE)):
        assert (answer.status, answer.json(), answer.headers["cache-control"]) == (404, NOT_FOUND, "no-store")
    assert register(service, NAMES).json() == ANSWER
    assert service.get_query(by_apollo(NAMES)).json() == ANSWER
    assert service.post({"extensions": apollo(NAMES)}).json() == ANSWER
    assert service.get_query(by_id(NAMES)).json() == ANSWER
    assert service.post({"documentId": document_id(NAMES)}).json() == ANSWER


def test_an_unknown_hash_is_a_200_for_those_who_take_plain_json(service: Service) -> None:
    for parameters in (by_apollo(NAMES), by_id(NAMES)):
        answer = service.get_query(parameters, accept=LEGACY)
        assert (answer.status, answer.kind, answer.json()) == (200, LEGACY, NOT_FOUND)
        assert answer.headers["cache-control"] == "no-store"


def test_a_text_can_be_registered_by_get(service: Service) -> None:
    assert service.get_query({"query": NAMES, **by_apollo(NAMES)}).json() == ANSWER
    assert service.get_query(by_id(NAMES)).json() == ANSWER


@pytest.mark.parametrize("accept", [RESPONSE, LEGACY])
def test_no_text_comes_under_the_hash_of_another(service: Service, accept: str) -> None:
    for other in (NAMES + " ", "{ __typename }", ""):
        answer = service.post({"query": other, "extensions": apollo(NAMES)}, accept=accept)
        assert (answer.status, answer.code) == (400, "PERSISTED_QUERY_HASH_MISMATCH"), other
    assert service.get_query(by_id(NAMES)).status == 404
    register(service, NAMES)
    service.post({"query": "{ __typename }", "extensions": apollo(NAMES)})
    assert service.get_query(by_id(NAMES)).json() == ANSWER


@pytest.mark.parametrize("hash", NO_HASHES, ids=repr)
def test_what_is_no_hash_is_refused_with_its_place(service: Service, hash: Any) -> None:
    answer = service.post({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": hash}}}, accept=RESPONSE)
    assert (answer.status, answer.code) == (400, "BAD_REQUEST")
    assert answer.places == ["/extensions/persistedQuery/sha256Hash"]


@pytest.mark.parametrize("version", [None, 0, 2, "1", 1.0, True, [1], 10**30])
def test_there_is_one_version(service: Service, version: Any) -> None:
    answer = service.post({"extensions": apollo(NAMES, version=version)}, accept=RESPONSE)
    assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", ["/extensions/persistedQuery/version"])


@pytest.mark.parametrize("extension", [1, "x", [], True, [{"version": 1, "sha256Hash": HASH}]])
def test_an_extension_that_is_no_object_is_refused(service: Service, extension: Any) -> None:
    answer = service.post({"query": NAMES, "extensions": {"persistedQuery": extension}}, accept=RESPONSE)
    assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", ["/extensions/persistedQuery"])


def test_other_extensions_mean_nothing(service: Service) -> None:
    for others in ({"clientLibrary": {"name": "x"}}, {"__proto__": {"persistedQuery": 1}}, {"persistedQuery": None}):
        assert service.post({"query": NAMES, "extensions": others}).json() == ANSWER
    assert register(service, NAMES, extensions={**apollo(NAMES, more="x"), "clientLibrary": {}}).json() == ANSWER
    assert kept(service) == 1


# documentId


@pytest.mark.parametrize(
    "id",
    [
        "",
        HASH,
        f"sha256:{HASH.upper()}",
        f"SHA256:{HASH}",
        f"sha256:{HASH[:-1]}",
        f"md5:{HASH}",
        f"sha256:{HASH}0",
        "sha256:",
        f" sha256:{HASH}",
        "x-own:abc",
        "sha256:../../etc",
    ],
)
def test_what_is_no_document_id_is_refused(service: Service, id: str) -> None:
    for answer in (service.post({"documentId": id}, accept=RESPONSE), service.get_query({"documentId": id})):
        assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", ["/documentId"])


@pytest.mark.parametrize("id", [1, True, [], {}, {"sha256": HASH}])
def test_a_document_id_is_a_text(service: Service, id: Any) -> None:
    assert service.post({"documentId": id}, accept=RESPONSE).status == 400


def test_a_document_is_named_once(service: Service) -> None:
    register(service, NAMES)
    for others in ({"query": NAMES}, {"query": ""}, {"extensions": apollo(NAMES)}):
        answer = service.post({"documentId": document_id(NAMES), **others}, accept=RESPONSE)
        assert (answer.status, answer.code) == (400, "BAD_REQUEST"), others
        given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in others.items()}
        assert service.get_query({**by_id(NAMES), **given}).status == 400
    assert service.get(f"/graphql?documentId={document_id(NAMES)}&documentId={document_id(NAMES)}").status == 400


def test_a_request_that_names_nothing_has_no_query(service: Service) -> None:
    requests: list[dict[str, Any]] = [{}, {"extensions": {}}, {"documentId": None}]
    for request in requests:
        assert service.post(request, accept=RESPONSE).code == "BAD_REQUEST"


# what is kept


JUNK = [
    "",
    "{",
    "{ nothing }",
    "{ users { nothing } }",
    "{ users(first: 101) { name } }",
    "query A { users { name } } query B { users { name } }",
    "{ users { name " + "posts { author { " * 12 + "name " + "} } " * 12 + "} }",
    "{ " + "a: __typename " * 2500 + "}",
    "{ users(first: 100) { posts(first: 100) { title } } }",
]


@pytest.mark.parametrize("text", JUNK, ids=lambda text: text[:30])
def test_what_is_not_understood_is_not_kept(service: Service, text: str) -> None:
    assert register(service, text).status in (400, 422)
    assert kept(service) == 0
    assert service.get_query(by_id(text)).status == 404


def test_what_its_sender_may_not_do_is_not_kept(service: Service) -> None:
    assert register(service, ORDERS).status == 401
    assert service.get_query({"query": CREATE, **by_apollo(CREATE)}).status == 405
    assert register(service, FOLLOW).status == 406
    assert kept(service) == 0
    assert register(service, ORDERS, service.token(ANN, "admin")).status == 200
    assert kept(service) == 1


def test_one_off_texts_take_bounded_memory(fresh: Fresh) -> None:
    service = fresh(persisted_queries=5, persisted_bytes=100_000)
    for number in range(60):
        assert register(service, f"{{ __typename }} # {number}").status == 200
    assert kept(service) == 5
    assert [service.get_query(by_id(f"{{ __typename }} # {number}")).status for number in (0, 54, 55, 59)] == [
        404,
        404,
        200,
        200,
    ]
    large = [f"{{ __typename }} # {number}" + "é" * 6_000 for number in range(5)]
    for text in large:
        assert register(service, text).status == 200
    assert service.handler.graphql.persisted.registered.used <= 100_000 and 1 <= kept(service) <= 2


def test_nothing_is_kept_where_none_are_wanted(fresh: Fresh) -> None:
    service = fresh(persisted_queries=0)
    for _ in range(2):
        assert register(service, NAMES).json() == ANSWER
        assert service.get_query(by_apollo(NAMES)).status == 404


def test_a_service_that_begins_anew_knows_nothing(service: Service) -> None:
    register(service, NAMES)
    service.forget()
    assert service.get_query(by_id(NAMES)).status == 404


# what it gives


def test_a_hash_gives_each_caller_what_the_text_would(service: Service) -> None:
    admin, ann = service.token(ANN, "admin"), service.token(ANN)
    texts = (
        NAMES,
        "{ users(first: 4) { name email } }",
        ORDERS,
        "{ orders(first: 2) { status } }",
        "{ posts(first: 20) { title published } }",
        '{ user(id: "x") { name } }',
    )
    for text in texts:
        register(service, text, admin)
    for text in texts:
        for token in (None, ann, admin):
            plain = service.query(text, token=token)
            for named in (
                service.get_query(by_id(text), token=token),
                service.post({"extensions": apollo(text)}, token=token, accept=RESPONSE),
            ):
                assert (named.status, named.body) == (plain.status, plain.body), (text, token)
    statuses = [service.get_query(by_id(ORDERS), token=token).status for token in (None, ann, admin)]
    assert statuses == [401, 400, 200]


def test_limits_hold_for_each_request_by_hash(fresh: Fresh) -> None:
    service = fresh(max_complexity=50)
    text = "query($n: Int!) { users(first: $n) { name } }"
    assert register(service, text, variables={"n": 5}).status == 200
    assert service.get_query({**by_id(text), "variables": '{"n": 51}'}).code == "TOO_COMPLEX"
    assert service.get_query({**by_id(text), "variables": '{"n": "x"}'}).code == "BAD_USER_INPUT"
    assert len(service.get_query({**by_id(text), "variables": '{"n": 3}'}).json()["data"]["users"]) == 3


def test_an_operation_of_several_is_named(service: Service) -> None:
    text = "query A { users(first: 1) { id } } query B { __typename }"
    assert register(service, text, operationName="A").status == 200
    assert service.get_query({**by_id(text), "operationName": "B"}).json() == {"data": {"__typename": "Query"}}
    assert service.get_query(by_id(text)).code == "GRAPHQL_VALIDATION_FAILED"
    assert service.get_query({**by_id(text), "operationName": "C"}).code == "GRAPHQL_VALIDATION_FAILED"


# ways to ask


def test_a_get_by_hash_is_cached_like_any(service: Service) -> None:
    register(service, NAMES)
    named, plain = service.get_query(by_id(NAMES)), service.get_query({"query": NAMES})
    assert named == plain and named.headers["etag"]
    assert (
        named.headers["cache-control"] == "private, no-cache"
        and named.headers["vary"] == "Authorization, Accept, Accept-Encoding"
    )
    again = service.get_query(by_id(NAMES), headers={"if-none-match": named.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    head = service.send("HEAD", f"/graphql?documentId={document_id(NAMES)}", headers={"accept": RESPONSE})
    assert (head.status, head.headers) == (200, named.headers)


def test_a_mutation_by_hash_goes_by_post_alone(service: Service) -> None:
    admin = service.token(ANN, "admin")
    made = {"input": {"name": "Noa", "email": "noa@example.com"}}
    assert register(service, CREATE, admin, variables=made).status == 200
    answer = service.get_query({**by_id(CREATE), "variables": json.dumps(made)}, token=admin)
    assert (answer.status, answer.headers["allow"], answer.headers["cache-control"]) == (405, "POST", "no-store")
    key = {"idempotency-key": "k"}
    made = {"input": {"name": "Nia", "email": "nia@example.com"}}
    request = {"documentId": document_id(CREATE), "variables": made}
    first, second = (service.post(request, token=admin, headers=key) for _ in range(2))
    assert first.body == second.body == b'{"data":{"createUser":{"name":"Nia"}}}'


def test_a_socket_and_a_stream_take_names(service: Service) -> None:
    graphql = service.handler.graphql

    async def run(**parameters: Any) -> Any:
        return await graphql.run(Parameters(**parameters), await caller_of(service.handler, None))

    refused = service.runner.run(run(documentId=document_id(FOLLOW)))
    assert json.loads(refused.body) == NOT_FOUND
    assert service.runner.run(run(query=FOLLOW, extensions=apollo(FOLLOW))).watch is not None
    assert service.runner.run(run(documentId=document_id(FOLLOW))).watch is not None
    assert service.runner.run(run(extensions=apollo(FOLLOW))).watch is not None
    register(service, NAMES)
    events = service.get_query(by_id(NAMES), accept="text/event-stream")
    assert b"event: next" in events.body and b'"Ann"' in events.body
    for parameters in (by_id("{ nothing }"), by_apollo("{ nothing }")):
        assert b"PERSISTED_QUERY_NOT_FOUND" in service.get_query(parameters, accept="text/event-stream").body
    assert service.get_query(by_id(FOLLOW)).status == 406


def test_a_plain_request_does_not_look_for_names(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Persisted, "resolve", None)
    assert service.data(NAMES) == ANSWER["data"]
