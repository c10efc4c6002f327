"""What GraphQL refuses, what it says of it, and what it keeps to itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from diptych.api.graphql import understand
from diptych.api.graphql.http import Parameters
from diptych.serve.endpoint import graphql_planner
from tests.contract.http.data import ANN, NOBODY
from tests.support.cases import cases
from tests.support.in_process import Service

PARSE = (
    "{",
    "}",
    "{}",
    "{ users { } }",
    "query",
    "{ users( { id } }",
    '{ user(id: "x { id } }',
    "query Q { users { id }",
    "{ users { id } } }",
    "{ users { 1 } }",
    "{ a.b }",
    "{ users { ...on } }",
    '{ user(id: "\\x") { id } }',
    "query(n: Int) { a }",
    '{ user(id: "a\nb") { id } }',
    "{ users(first: 01) { id } }",
    "{ users(first: 1a) { id } }",
    "é",
    "{ é }",
    "\x00",
    '{ user(id: "\\ud800") { id } }',
    '{ user(id: "\\u{110000}") { id } }',
    '{ user(id: "\\udc00\\ud800") { id } }',
    "{ users { id } } garbage",
    "fragment on on User { id }",
    "{ users @ { id } }",
    "{ a: }",
    "[{ users { id } }]",
)
INVALID = (
    "{ nope }",
    "{ users }",
    "{ users { id { x } } }",
    "{ users(nope: 1) { id } }",
    '{ users(first: "1") { id } }',
    "{ users(first: 1.5) { id } }",
    "{ users(first: 3000000000) { id } }",
    "{ user { id } }",
    "{ user(id: null) { id } }",
    "{ user(id: true) { id } }",
    "{ users { ...F } }",
    "{ ...F } fragment F on User { id }",
    "{ users { ... on Post { id } } }",
    "{ __typename } fragment F on User { id }",
    "{ users { id: name id } }",
    "query($n: Int) { users { id } }",
    "query($n: Nope) { users(first: $n) { id } }",
    "{ users(first: $n) { id } }",
    "query($n: String) { users(first: $n) { id } }",
    "{ users { id @nope } }",
    "{ users { id @skip } }",
    '{ users { id @skip(if: "x") } }',
    "{ users(first: 1, first: 2) { id } }",
    "{ users(where: {nope: {}}) { id } }",
    "{ users(where: {name: {nope: 1}}) { id } }",
    "{ users(where: {name: {eq: 5}}) { id } }",
    "{ users(orderBy: {}) { id } }",
    "{ users(orderBy: {id: ASC, name: ASC}) { id } }",
    "{ users(orderBy: {id: null}) { id } }",
    "{ users(orderBy: {id: UP}) { id } }",
    '{ users(orderBy: {id: "ASC"}) { id } }',
    "{ users(where: {and: [null]}) { id } }",
    "{ users(where: {name: {in: [null]}}) { id } }",
    "{ users(last: 1) { id } }",
    '{ posts(where: {createdAt: {gt: "now"}}) { id } }',
    "{ posts(where: {createdAt: {gt: 5}}) { id } }",
    "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
    "{ users { ...A } } fragment A on User { ...A }",
    "{ users(first: 1) { id } users(first: 2) { id } }",
    "{ usersConnection { nodes } }",
    "{ __schema }",
    "{ __schema { nope } }",
    "query($a: Int, $a: Int) { users(first: $a) { id } }",
    "query @skip(if: true) { __typename }",
    '{ users(where: {name: {eq: "a", eq: "b"}}) { id } }',
    "{ __type { name } }",
    "{ nothing }",
)


@cases("document", PARSE)
def test_what_cannot_be_read_is_told_with_its_location(shop: Service, document: str) -> None:
    answer = shop.query(document)
    assert (answer.status, answer.code) == (400, "GRAPHQL_PARSE_FAILED"), answer.body
    (error,) = answer.json()["errors"]
    assert error["message"].startswith("Syntax Error")
    assert list(error) == ["message", "locations", "extensions"]


@cases("document", INVALID)
def test_what_the_schema_does_not_allow_is_told(shop: Service, document: str) -> None:
    before = shop.runs
    answer = shop.query(document)
    assert (answer.status, answer.code) == (400, "GRAPHQL_VALIDATION_FAILED"), answer.body
    assert shop.runs == before
    for error in answer.json()["errors"]:
        assert "Did you mean" not in error["message"] or "{ ... }" in error["message"]  # it only wants a selection
        assert set(error) <= {"message", "locations", "extensions"}


NEAR = (
    "{ usrs { id } }",
    "{ users { nam } }",
    "{ users(frst: 1) { id } }",
    "{ users(where: {nam: {eq: 1}}) { id } }",
    "{ users(where: {name: {eqq: 1}}) { id } }",
    "{ users(orderBy: {nam: ASC}) { id } }",
    "{ users(orderBy: {name: ASCC}) { id } }",
    "query($w: UserWher) { users(where: $w) { id } }",
    "{ users { ... on Usr { id } } }",
    "{ users { id @skp(if: true) } }",
    "query($w: UserWhere) { users(where: $w) { id } }",
    "query($o: [UserOrder!]) { users(orderBy: $o) { id } }",
    "{ ...F } fragment F on Qery { __typename }",
    "{ users { posts { titl } } }",
    "{ usersConnection { node { id } } }",
    "{ orders(where: {status: {eq: payd}}) { id } }",
    "{ order { id } }",
)


@cases("document", NEAR)
def test_nothing_is_suggested(shop: Service, document: str) -> None:
    variables = {"w": {"nam": {"eq": "x"}}, "o": [{"nam": "ASC"}]}
    for token in (shop.token(ANN), shop.token(ANN, "admin")):
        body = shop.query(document, variables, token=token).body
        assert b'"errors"' in body
        assert b"mean" not in body and b"ugges" not in body


# a document with a name in it, a name that only others have, a name of the same length that no one has
HIDDEN: list[tuple[str, str, str]] = [
    ("{ users { %s } }", "email", "xmail"),
    ("{ users { a: %s } }", "email", "xmail"),
    ("{ users { ...F } } fragment F on User { %s }", "email", "xmail"),
    ('{ users(where: {%s: {eq: "x"}}) { id } }', "email", "xmail"),
    ("{ users(orderBy: {%s: ASC}) { id } }", "email", "xmail"),
    ("{ users { posts(where: {author: {%s: {isNull: true}}}) { id } } }", "email", "xmail"),
    ("{ users { %s { id } } }", "orders", "xrders"),
    ("{ users { %s { totalCount } } }", "ordersConnection", "xrdersConnection"),
    ("{ users(where: {%s: {some: {}}}) { id } }", "orders", "xrders"),
    ("{ users { ... on %s { id } } }", "Order", "Xrder"),
    ("{ ...F } fragment F on %s { id }", "OrderConnection", "XrderConnection"),
    ("query($w: %s) { users(where: $w) { id } }", "OrderWhere", "XrderWhere"),
    ("query($w: %s) { users(where: $w) { id } }", "OrderStatus", "XrderStatus"),
    ("query($w: %s) { users(where: $w) { id } }", "Decimal", "Xecimal"),
]
HIDDEN_FROM_CUSTOMERS: list[tuple[str, str, str]] = [
    ("{ orders { %s } }", "internalNote", "xnternalNote"),
    ('{ orders(where: {%s: {eq: "x"}}) { id } }', "internalNote", "xnternalNote"),
    ("{ orders(orderBy: [{%s: ASC}]) { id } }", "internalNote", "xnternalNote"),
    ("{ users { orders { %s } } }", "internalNote", "xnternalNote"),
    ("{ users(where: {orders: {some: {%s: {isNull: true}}}}) { id } }", "internalNote", "xnternalNote"),
]


@cases(("document", "hidden", "absent"), HIDDEN)
def test_what_only_others_have_is_told_as_what_no_one_has(
    shop: Service, document: str, hidden: str, absent: str
) -> None:
    alike(shop, document, hidden, absent, None)


@pytest.mark.parametrize(("document", "hidden", "absent"), HIDDEN_FROM_CUSTOMERS)
def test_a_field_of_staff_is_told_to_customers_as_what_no_one_has(
    shop: Service, document: str, hidden: str, absent: str
) -> None:
    alike(shop, document, hidden, absent, shop.token(ANN))
    staff = shop.query(document % hidden, token=shop.token(ANN, "staff"))
    assert staff.status == 200


def alike(shop: Service, document: str, hidden: str, absent: str, token: str | None) -> None:
    one, other = (shop.query(document % name, token=token) for name in (hidden, absent))
    assert (one.status, one.code) == (400, "GRAPHQL_VALIDATION_FAILED")
    assert (one.status, one.headers) == (other.status, other.headers)
    assert one.body.replace(hidden.encode(), absent.encode()) == other.body


def test_a_name_in_a_variable_that_only_others_have_is_told_as_one_that_no_one_has(shop: Service) -> None:
    token = shop.token(ANN)
    for document, given in (
        ("query($w: OrderWhere) { orders(where: $w) { id } }", {"w": {"NAME": {"eq": "x"}}}),
        ("query($w: UserWhere) { users(where: $w) { id } }", {"w": {"orders": {"some": {"NAME": {"eq": "x"}}}}}),
        ("query($o: [OrderOrder!]) { orders(orderBy: $o) { id } }", {"o": [{"NAME": "ASC"}]}),
    ):
        bodies = []
        for name in ("internalNote", "xnternalNote"):
            variables = json.loads(json.dumps(given).replace("NAME", name))
            answer = shop.query(document, variables, token=token)
            assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
            bodies.append(answer.body.replace(name.encode(), b""))
        assert bodies[0] == bodies[1]


# root fields of others

OTHERS = (
    "{ orders { id } }",
    "{ order(id: 1) { id } }",
    "{ ordersConnection { totalCount } }",
    "{ o: orders { id } }",
    "{ users { id } orders { id } }",
    "query Q { ...F } fragment F on Query { orders { id } }",
    "{ ... { orders { id } } }",
    "{ ... on Query { ... { orders { id } } } }",
    "{ orders { id nope } }",
    "query($b: Boolean!) { orders @include(if: $b) { id } }",
    "query($b: Boolean!) { users { id } orders @skip(if: $b) { id } }",
    "query($b: Boolean = true) { ... @include(if: $b) { orders { id } } }",
    "{ orders(first: 1000) { id } }",
    "{ orders(nope: 1) { id } }",
)


@cases("document", OTHERS)
def test_a_root_field_of_others_is_refused_by_whether_there_is_a_token(shop: Service, document: str) -> None:
    for variables in ({"b": True}, {"b": False}):
        anonymous = shop.query(document, variables)
        assert (anonymous.status, anonymous.code) == (401, "UNAUTHENTICATED"), anonymous.body
        assert anonymous.headers["www-authenticate"] == "Bearer"
        narrowed = shop.query(document, variables, token=shop.token(ANN, "admin", scopes=["users:read"]))
        assert (narrowed.status, narrowed.code) == (403, "FORBIDDEN"), narrowed.body
        assert "www-authenticate" not in narrowed.headers


def test_the_same_is_said_in_the_resource_style(shop: Service) -> None:
    for url in (
        "/orders",
        f"/orders/{NOBODY}",
        "/orders/x",
        f"/users/{ANN}/orders",
        "/orders?first=1000",
        "/orders?nope=1",
    ):
        anonymous = shop.get(url)
        assert (anonymous.status, anonymous.code) == (401, "UNAUTHENTICATED")
        assert anonymous.headers["www-authenticate"] == "Bearer"
        narrowed = shop.get(url, token=shop.token(ANN, "admin", scopes=["users:read"]))
        assert (narrowed.status, narrowed.code) == (403, "FORBIDDEN")


def test_many_faults_are_told_but_not_without_end(shop: Service) -> None:
    names = " ".join(f"n{number}" for number in range(90))
    errors = shop.query(f"{{ users {{ {names} }} }}").json()["errors"]
    assert 1 < len(errors) < 30


def test_a_refused_document_is_refused_again(shop: Service) -> None:
    for document in ("{ nope }", "{ users(first: 0) { id } }", "{ orders { id } }", "{"):
        assert len({shop.query(document).body for _ in range(4)}) == 1


@pytest.mark.parametrize("document", [PARSE[3], INVALID[3], "mutation { createUser(nope: 1) { id } }"])
def test_an_invalid_document_is_not_validated_again(
    shop: Service, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated: list[str | None] = []
    read = understand.read_operation

    def counted(sent: Parameters, *rest: Any) -> Any:
        validated.append(sent.query)
        return read(sent, *rest)

    monkeypatch.setattr(graphql_planner, "read_operation", counted)
    staff = shop.token(ANN, "admin")
    answers = [shop.query(document, token=staff) for _ in range(6)]
    assert len({answer.body for answer in answers}) == 1
    assert len(validated) <= 2  # a cache admits what is seen twice
    by_get = [shop.get_query({"query": document}, token=staff) for _ in range(3)]
    assert len({(answer.status, answer.body) for answer in by_get}) == 1
    assert by_get[0].status == (405 if document.startswith("mutation") else 400)


def test_errors_of_one_role_are_not_those_of_another(shop: Service) -> None:
    document = "{ users { email } }"
    staff = shop.token(ANN, "admin")
    for _ in range(4):
        assert shop.query(document).code == "GRAPHQL_VALIDATION_FAILED"
        assert "errors" not in shop.query(document, token=staff).json()
