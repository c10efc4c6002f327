"""Who may write what in the default model, as its rules say it: everyone tries everything, in both styles."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.data import ANN, BEN, COMMENT, ORDER, POST, ZOE
from tests.contract.writes.shop import PEOPLE, Shop

EVERYONE = ("anonymous", *PEOPLE)
VERBS = {"create": "POST", "update": "PATCH", "replace": "PUT", "delete": "DELETE"}


def user(**more: Any) -> dict[str, Any]:
    return {"name": "Dan", "email": "dan@example.com", **more}


def post(author: str, **more: Any) -> dict[str, Any]:
    return {"authorId": author, "title": "t", "body": "b", **more}


def comment(author: str, on: int) -> dict[str, Any]:
    return {"authorId": author, "postId": POST[on], "body": "b"}


def order(customer: str, **more: Any) -> dict[str, Any]:
    return {"customerId": customer, "total": "1.00", **more}


# what is done, on which resource and row, with which values, and who may; all others may not
TABLE: list[tuple[str, str, str, dict[str, Any], set[str]]] = [
    ("create", "User", "", user(), {"admin"}),
    ("update", "User", ANN, {"name": "N"}, {"ann", "admin"}),
    ("update", "User", ANN, {"email": "n@example.com"}, {"ann", "admin"}),
    ("replace", "User", ANN, user(), {"ann", "admin"}),
    ("delete", "User", ZOE, {}, {"zoe", "admin"}),
    ("create", "Post", "", post(ANN), {"ann"}),
    ("create", "Post", "", post(ANN, published=True), {"ann"}),
    ("update", "Post", POST[1], {"title": "N"}, {"ann", "admin"}),
    ("update", "Post", POST[3], {"published": True}, {"ann", "admin"}),
    ("update", "Post", POST[1], {"authorId": BEN}, {"admin"}),
    ("replace", "Post", POST[1], post(ANN), {"ann", "admin"}),
    ("replace", "Post", POST[1], post(BEN), {"admin"}),
    ("delete", "Post", POST[1], {}, {"ann", "admin"}),
    ("delete", "Post", POST[3], {}, {"ann", "admin"}),
    ("create", "Comment", "", comment(ZOE, 1), {"zoe"}),
    ("create", "Comment", "", comment(ANN, 3), {"ann"}),
    ("create", "Comment", "", comment(ZOE, 3), set()),
    ("update", "Comment", COMMENT[1], {"body": "N"}, {"ben"}),
    ("update", "Comment", COMMENT[1], {"authorId": ANN}, set()),
    ("replace", "Comment", COMMENT[1], comment(BEN, 1), {"ben"}),
    ("delete", "Comment", COMMENT[1], {}, {"ann", "ben", "admin"}),
    ("delete", "Comment", COMMENT[6], {}, {"ann", "ben", "admin"}),
    ("create", "Order", "", order(ANN), {"ann", "staff", "admin"}),
    ("create", "Order", "", order(ANN, note="n", currency="USD"), {"ann", "staff", "admin"}),
    ("create", "Order", "", order(ANN, internalNote="n"), {"staff", "admin"}),
    ("update", "Order", ORDER[1], {"note": "N"}, {"staff", "admin"}),
    ("update", "Order", ORDER[1], {"internalNote": "N"}, {"staff", "admin"}),
    ("update", "Order", ORDER[1], {"customerId": BEN}, {"staff", "admin"}),
    ("update", "Order", ORDER[1], {"status": "paid"}, {"staff", "admin"}),
    ("update", "Order", ORDER[1], {"status": "cancelled"}, {"ann", "staff", "admin"}),
    ("update", "Order", ORDER[1], {"status": "cancelled", "note": "N"}, {"staff", "admin"}),
    ("replace", "Order", ORDER[1], order(ANN), {"staff", "admin"}),
    ("delete", "Order", ORDER[1], {}, {"admin"}),
]
IDS = [f"{verb} {resource} {','.join(values)}" for verb, resource, _, values, _ in TABLE]


@pytest.mark.parametrize(("verb", "resource", "id", "values", "may"), TABLE, ids=IDS)
def test_only_those_may_who_may(
    shop: Shop, verb: str, resource: str, id: str, values: dict[str, Any], may: set[str]
) -> None:
    url = f"/{resource.lower()}s" + (f"/{id}" if id else "")
    body = values if verb != "delete" else None
    with shop.unchanged():
        for who in EVERYONE:
            if who not in may:
                assert_refused(shop, who, verb, resource, id, values)
    for who in sorted(may):
        shop.refill()
        answer = shop.rest(VERBS[verb], url, body, who=who)
        assert answer.status in (200, 201, 204), (who, answer.body)
        shop.refill()
        assert "errors" not in mutate(shop, who, verb, resource, id, values), who


def assert_refused(shop: Shop, who: str, verb: str, resource: str, id: str, values: dict[str, Any]) -> None:
    """In REST; and in GraphQL with the same code, but where the schema of the role has no such field."""
    url = f"/{resource.lower()}s" + (f"/{id}" if id else "")
    answer = shop.rest(VERBS[verb], url, values if verb != "delete" else None, who=who)
    body = mutate(shop, who, verb, resource, id, values)
    assert answer.status in (401, 403, 404, 409, 422), (who, answer.body)
    assert answer.status != 409 or resource == "Comment"  # on a post that is not there for them
    codes = {error["extensions"]["code"] for error in body["errors"]}
    if "BAD_USER_INPUT" not in codes:
        assert codes == {answer.code}, who
    if who == "anonymous":
        assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")


def mutate(shop: Shop, who: str, verb: str, resource: str, id: str, values: dict[str, Any]) -> Any:
    word = {"create": "Create", "update": "Patch", "replace": "Replace"}.get(verb, "")
    name = "patch" if verb == "update" else "input"
    declared = [*(["$id: ID!"] if id else []), *([f"$v: {resource}{word}!"] if word else [])]
    passed = [*(["id: $id"] if id else []), *([f"{name}: $v"] if word else [])]
    document = f"mutation({', '.join(declared)}) {{ {verb}{resource}({', '.join(passed)}) {{ id }} }}"
    variables = {"id": id} if id else {}
    return shop.ql(document, variables | ({"v": values} if word else {}), who=who).json()


def test_who_may_not_see_a_row_is_told_that_there_is_none(shop: Shop) -> None:
    for method, url, body in (
        ("PATCH", f"/posts/{POST[3]}", {"title": "N"}),
        ("PUT", f"/posts/{POST[3]}", post(ZOE)),
        ("PATCH", f"/orders/{ORDER[1]}", {"status": "cancelled"}),
        ("DELETE", f"/posts/{POST[3]}", None),
        ("PATCH", f"/comments/{COMMENT[5]}", {"body": "N"}),
        ("DELETE", f"/comments/{COMMENT[5]}", None),
    ):
        with shop.unchanged():
            answer = shop.rest(method, url, body, who="zoe")
            other = shop.rest(method, url[:-2] + "77", body, who="zoe")
        assert (answer.status, answer.code, answer.body) == (404, "NOT_FOUND", other.body), url


def test_the_email_of_others_can_be_written_by_those_alone_who_may_update_them(shop: Shop) -> None:
    with shop.unchanged():
        assert shop.rest("PATCH", f"/users/{BEN}", {"email": "x@y"}, who="ann").status in (403, 422)
        assert shop.rest("PATCH", f"/users/{BEN}", {"email": None}, who="ann").status in (403, 422)
