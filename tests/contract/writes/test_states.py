"""States move as the model says, for those who may move them; a new row is in the first."""

from __future__ import annotations

import pytest

from tests.contract.http.data import ANN, BEN, ORDER
from tests.contract.writes.shop import Shop, error_of
from tests.contract.writes.vault import BOX

STATES = ("pending", "paid", "shipped", "delivered", "cancelled")
MOVES = {
    "pending": ["paid", "cancelled"],
    "paid": ["shipped", "cancelled"],
    "shipped": ["delivered"],
    "delivered": [],
    "cancelled": [],
}
MOVE = "mutation($id: ID!, $to: OrderStatus!) { m: updateOrder(id: $id, patch: {status: $to}) { status } }"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("target", STATES)
def test_staff_makes_every_move_and_no_other(shop: Shop, state: str, target: str) -> None:
    url = f"/orders/{ORDER[1]}"
    shop.service.execute(f"UPDATE orders SET status = '{state}' WHERE id = '{ORDER[1]}'")
    if target == state or target in MOVES[state]:
        assert shop.rest("PATCH", url, {"status": target}, who="staff").json()["status"] == target
        return
    with shop.unchanged():
        answer = shop.rest("PATCH", url, {"status": target}, who="staff")
        assert (answer.status, answer.code, answer.places) == (409, "CONFLICT", ["/status"])
        assert answer.json()["allowed"] == MOVES[state]
        assert all(each in answer.json()["detail"] for each in (state, *MOVES[state]))
        error = error_of(shop.ql(MOVE, {"id": ORDER[1], "to": target}, who="staff"))
        assert error["path"] == ["m"]
        assert (error["extensions"]["code"], error["extensions"]["allowed"]) == ("CONFLICT", MOVES[state])


@pytest.mark.parametrize(
    ("state", "target", "status"),
    [
        ("pending", "cancelled", 200),
        ("paid", "cancelled", 200),
        ("pending", "pending", 200),
        ("pending", "paid", 403),
        ("paid", "shipped", 403),
        ("shipped", "delivered", 403),
        ("shipped", "cancelled", 409),
        ("pending", "delivered", 409),
        ("cancelled", "pending", 409),
    ],
)
def test_the_customer_may_only_cancel(shop: Shop, state: str, target: str, status: int) -> None:
    shop.service.execute(f"UPDATE orders SET status = '{state}' WHERE id = '{ORDER[1]}'")
    answer = shop.rest("PATCH", f"/orders/{ORDER[1]}", {"status": target}, who="ann")
    assert answer.status == status, answer.body
    if status == 409:
        assert answer.json()["allowed"] == [each for each in MOVES[state] if each == "cancelled"]


def test_a_new_row_is_in_the_first_state(shop: Shop) -> None:
    body = {"customerId": ANN, "total": "1"}
    assert shop.rest("POST", "/orders", {**body, "status": "pending"}, who="ann").status == 201
    with shop.unchanged():
        for who in ("ann", "staff", "admin"):
            for state in STATES[1:]:
                answer = shop.rest("POST", "/orders", {**body, "status": state}, who=who)
                assert (answer.status, answer.code, answer.places) == (409, "CONFLICT", ["/status"])
                assert answer.json()["allowed"] == ["pending"]
        document = f'mutation {{ createOrder(input: {{customerId: "{ANN}", total: "1", status: paid}}) {{ id }} }}'
        error = error_of(shop.ql(document, who="staff"))
        assert (error["extensions"]["code"], error["extensions"]["allowed"]) == ("CONFLICT", ["pending"])
        assert error["extensions"]["errors"][0]["argument"] == ["createOrder", "input", "status"]


def test_a_rule_can_open_other_states_to_new_rows(safe: Shop) -> None:
    body = {"owner": ANN, "label": "l", "stage": "old"}
    assert safe.rest("POST", "/boxes", body, who="admin").json()["stage"] == "old"
    with safe.unchanged():
        assert safe.rest("POST", "/boxes", body, who="ann").status == 409


def test_put_without_the_state_leaves_it(shop: Shop) -> None:
    body = {"customerId": ANN, "total": "1"}
    for number, state in ((2, "paid"), (4, "shipped"), (5, "cancelled")):
        assert shop.rest("PUT", f"/orders/{ORDER[number]}", body, who="staff").json()["status"] == state
        document = f'mutation {{ replaceOrder(id: "{ORDER[number]}", input: {{customerId: "{ANN}", total: "2"}}) {{ status }} }}'
        assert shop.data(document, who="staff") == {"replaceOrder": {"status": state}}


def test_put_moves_the_state_as_patch_does(shop: Shop) -> None:
    body = {"customerId": ANN, "total": "1"}
    assert (
        shop.rest("PUT", f"/orders/{ORDER[2]}", {**body, "status": "shipped"}, who="staff").json()["status"]
        == "shipped"
    )
    with shop.unchanged():
        answer = shop.rest("PUT", f"/orders/{ORDER[2]}", {**body, "status": "paid"}, who="staff")
    assert (answer.status, answer.json()["allowed"]) == (409, ["delivered"])


def test_the_customer_cancels_by_put_too(shop: Shop) -> None:
    shown = shop.get(f"/orders/{ORDER[1]}", "ann")
    answer = shop.rest("PUT", f"/orders/{ORDER[1]}", {**shown, "status": "cancelled"}, who="ann")
    assert (answer.status, answer.json()["status"]) == (200, "cancelled")
    assert shop.get(f"/orders/{ORDER[1]}")["note"] is None


def test_a_move_of_others_is_forbidden_and_not_listed(safe: Shop) -> None:
    url = f"/boxes/{BOX[3]}"  # old
    with safe.unchanged():
        assert safe.rest("PATCH", url, {"stage": "gone"}, who="ben").status == 403
        answer = safe.rest("PATCH", url, {"stage": "new"}, who="ben")
        assert (answer.status, answer.json()["allowed"]) == (409, [])
    assert safe.rest("PATCH", url, {"stage": "gone"}, who="staff").status == 200
    with safe.unchanged():
        assert safe.rest("PATCH", url, {"stage": "new"}, who="staff").status == 403
    assert safe.rest("PATCH", url, {"stage": "new"}, who="admin").status == 200


def test_a_state_that_is_none_is_a_fault_of_the_body(shop: Shop) -> None:
    with shop.unchanged():
        for state in ("nope", "PAID", 1, None, ["paid"], {"to": "paid"}, True):
            answer = shop.rest("PATCH", f"/orders/{ORDER[1]}", {"status": state}, who="staff")
            assert (answer.status, answer.places) == (422, ["/status"]), state


def test_of_two_moves_at_once_one_is_made(shop: Shop) -> None:
    document = f"""mutation {{
        a: updateOrder(id: "{ORDER[1]}", patch: {{status: paid}}) {{ status }}
        b: updateOrder(id: "{ORDER[1]}", patch: {{status: cancelled}}) {{ status }}
    }}"""
    assert shop.data(document, who="staff") == {"a": {"status": "paid"}, "b": {"status": "cancelled"}}
    with shop.unchanged():
        assert error_of(shop.ql(document, who="staff"))["path"] == ["a"]


def test_ben_cannot_cancel_the_order_of_ann(shop: Shop) -> None:
    with shop.unchanged():
        assert shop.rest("PATCH", f"/orders/{ORDER[1]}", {"status": "cancelled"}, who="ben").status == 404
        assert shop.rest("PATCH", f"/orders/{ORDER[1]}", {"customerId": BEN}, who="ben").status in (403, 404)
