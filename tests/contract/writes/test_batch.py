"""`POST /batch`, and references between the steps of a request in both styles."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from diptych import Json, Model, Refusal, Resource, Tx, Unique, action, grant, inverse
from diptych.errors import Code
from tests.support.emptied import emptied
from tests.support.in_process import Answer, Service


class Person(Resource, plural="people"):
    """Has a UUID."""

    name: Annotated[str, Unique()]
    orders: list[Order] = inverse("customer")

    access = (grant("read", "create", "update", "delete"),)


class Order(Resource, ids="integer"):
    """Has an integer id, which only the database knows before it is made."""

    customer: Person
    total: int
    status: str = "new"
    extra: Json | None = None
    lines: list[Line] = inverse("order")

    access = (grant("read", "create", "update", "delete"),)

    @action
    async def pay(self, tx: Tx, note: str) -> Order:
        """Pay it."""
        if note == "refuse":
            raise Refusal(Code.CONFLICT, "Not today.")
        self.status = f"paid: {note}"
        return await tx.save(self)


class Line(Resource, ids="integer"):
    """Refers to both."""

    order: Order
    person: Person | None = None
    text: str = ""

    access = (grant("read", "create"),)


MODEL = Model(Person, Order, Line)
shared, service = emptied(MODEL, "lines", "orders", "people")


def send(service: Service, *requests: Any, headers: dict[str, str] | None = None) -> Answer:
    body = json.dumps({"requests": requests}).encode()
    return service.send("POST", "/batch", body=body, headers={"content-type": "application/json", **(headers or {})})


def step(method: str, url: str, body: Any = None, id: str = "", **headers: str) -> dict[str, Any]:
    found: dict[str, Any] = {"method": method, "url": url}
    if body is not None:
        found["body"] = body
    if id:
        found["id"] = id
    if headers:
        found["headers"] = {name.replace("_", "-"): value for name, value in headers.items()}
    return found


ANN = step("POST", "/people?fields=id,name", {"name": "Ann"}, "ann")
ORDER = step("POST", "/orders?fields=id,total,customer(name)", {"customerId": "$ann", "total": 9}, "order")


def test_later_requests_refer_to_the_rows_of_earlier_ones(service: Service) -> None:
    answer = send(
        service,
        ANN,
        ORDER,
        step("POST", "/lines?fields=orderId,personId", {"orderId": "$order", "personId": "$ann"}),
        step("PATCH", "/orders/$order?fields=status,version", {"status": "sent"}, if_match='"1."'),
        step("POST", "/orders/$order/pay?fields=status", {"note": "x"}),
    )
    assert answer.status == 200, answer.body
    ann, order, line, patched, paid = answer.json()["responses"]
    assert (ann["id"], ann["status"], ann["body"]["name"]) == ("ann", 201, "Ann")
    assert ann["headers"]["location"] == f"/people/{ann['body']['id']}"
    assert order["body"] == {"id": order["body"]["id"], "total": 9, "customer": {"name": "Ann"}}
    assert line["body"] == {"orderId": order["body"]["id"], "personId": ann["body"]["id"]} and "id" not in line
    assert patched["body"] == {"status": "sent", "version": 2} and patched["headers"]["etag"].startswith('"2.')
    assert paid["body"] == {"status": "paid: x"}


def test_a_mutation_refers_by_its_response_keys(service: Service) -> None:
    answer = service.query(
        """mutation {
          ann: createPerson(input: {name: "Ann"}) { id }
          createOrder(input: {customerId: "$ann", total: 9}) { total customer { name } }
          sent: updateOrder(id: "$createOrder", patch: {status: "sent"}) { status version }
          paid: payOrder(id: "$sent", note: "y") { status }
          gone: deletePerson(id: "$nobody") { id }
        }"""
    )
    assert answer.code == "BAD_USER_INPUT"
    (error,) = answer.json()["errors"]
    assert error["message"] == "There is no step 'nobody' before this one, at gone.id."
    assert error["extensions"]["argument"] == ["gone", "id"]
    assert service.rows("/people") == []
    answer = service.query(
        """mutation($ann: ID!) {
          ann: createPerson(input: {name: "Ann"}) { id }
          order: createOrder(input: {customerId: $ann, total: 9}) { total customer { name } }
          paid: payOrder(id: "$order", note: "y") { status }
        }""",
        {"ann": "$ann"},
    )
    assert answer.json()["data"]["order"] == {"total": 9, "customer": {"name": "Ann"}}
    assert answer.json()["data"]["paid"] == {"status": "paid: y"}


@pytest.mark.parametrize(
    ("requests", "faults"),
    [
        ([ORDER, ANN], {"/requests/0/body/customerId": "there is no step 'ann' before this one"}),
        ([step("DELETE", "/people/$ann")], {"/requests/0/url": "there is no step 'ann' before this one"}),
        (
            [ANN, step("DELETE", "/orders/$ann")],
            {"/requests/1/url": "the step 'ann' writes a row of Person, and this is the id of a row of Order"},
        ),
        (
            [ANN, ORDER, step("POST", "/orders/$order/pay", {"note": "x"}, "paid"), step("DELETE", "/orders/$paid")],
            {"/requests/3/url": "the step 'paid' writes no row of its own"},
        ),
        (
            [step("POST", "/people", {}), step("POST", "/orders", {"customerId": "x", "total": "9"})],
            {"/requests/0/body/name": "expected a value", "/requests/1/body/total": "expected an integer"},
        ),
        ([ANN, ANN], {"/requests/1/id": "another request has this id"}),
        ([step("GET", "/people")], {"/requests/0/method": "expected one of POST, PUT, PATCH, DELETE"}),
        ([{**ANN, "more": 1, "id": "a b"}], {"/requests/0/more": "there is", "/requests/0/id": "expected a name"}),
        ([step("POST", "people", {})], {"/requests/0/url": "expected a path"}),
        ([step("POST", "/people", {}, cookie="a")], {"/requests/0/headers/cookie": "a request of a batch may have"}),
        (["x"], {"/requests/0": "expected an object"}),
        ([], {"/requests": "expected a list of requests"}),
    ],
)
def test_all_faults_of_a_batch_are_told(service: Service, requests: list[Any], faults: dict[str, str]) -> None:
    answer = send(service, *requests)
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT"), answer.body
    found = {fault["pointer"]: fault["message"] for fault in answer.json()["errors"]}
    assert found.keys() == faults.keys()
    assert all(found[place].startswith(message) for place, message in faults.items()), found
    assert service.rows("/people") == []


@pytest.mark.parametrize(
    ("last", "status", "request_", "pointer"),
    [
        (step("POST", "/people", {"name": "Ann"}, "twin"), 409, "twin", "/requests/2/body/name"),
        (
            step("POST", "/orders", {"customerId": "00000000-0000-7000-8000-000000000000", "total": 1}),
            409,
            2,
            "/requests/2/body/customerId",
        ),
        (step("PATCH", "/orders/$order", {"total": 1}, if_match='"7."'), 412, 2, None),
        (step("POST", "/orders/$order/pay", {"note": "refuse"}, "pay"), 409, "pay", None),
        (step("DELETE", "/people/$ann"), 409, 2, None),
        (step("DELETE", "/lines/1"), 405, 2, None),
        (step("DELETE", "/people/nobody"), 404, 2, None),
        (step("POST", "/nowhere", {}), 404, 2, None),
        (step("POST", "/people?sort=name", {"name": "B"}), 400, 2, "/requests/2/url"),
        (step("PATCH", "/orders/$order", {"total": 1}, content_type="application/json-patch+json"), 415, 2, None),
    ],
)
def test_one_refusal_undoes_all_and_names_its_request(
    service: Service, last: Any, status: int, request_: str | int, pointer: str | None
) -> None:
    answer = send(service, ANN, ORDER, last)
    assert answer.status == status, answer.body
    assert answer.json()["request"] == request_
    assert [fault["pointer"] for fault in answer.json().get("errors", [])] == ([pointer] if pointer else [])
    assert service.rows("/people") == [] == service.rows("/orders")


def test_a_reference_names_nothing_outside_of_a_batch(service: Service) -> None:
    headers = {"content-type": "application/json"}
    assert service.send("DELETE", "/people/$ann").status == 404
    assert service.send("PATCH", "/people/$ann", body=b'{"name": "B"}', headers=headers).status == 404
    assert service.send("POST", "/orders/$o/pay", body=b'{"note": "B"}', headers=headers).status == 404
    assert service.send("GET", "/people/$ann").status == 404
    answer = service.send("POST", "/orders", body=b'{"customerId": "$ann", "total": 1}', headers=headers)
    assert (answer.status, answer.places) == (422, ["/customerId"])


def test_a_batch_has_as_many_requests_as_an_operation_has_root_fields(service: Service) -> None:
    requests = [step("POST", "/people", {"name": f"P{number}"}) for number in range(21)]
    answer = send(service, *requests)
    assert (answer.status, answer.code) == (400, "TOO_COMPLEX")
    assert send(service, *requests[:20]).status == 200


def test_other_methods_and_media_types_are_refused(service: Service) -> None:
    assert service.send("GET", "/batch").status == 405
    assert service.send("OPTIONS", "/batch").headers["allow"] == "POST, OPTIONS"
    assert service.send("POST", "/batch", body=b"{}", headers={"content-type": "text/plain"}).status == 415
    assert service.send("POST", "/batch", body=b"[]", headers={"content-type": "application/json"}).status == 422
    assert service.send("POST", "/batch?a=1", body=b"{}", headers={"content-type": "application/json"}).status == 400
