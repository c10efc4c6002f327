"""GET on one resource, and on a list below it."""

from __future__ import annotations

import pytest

from tests.contract.http.data import ANN, BEN, COMMENT, ILL_FORMED, NOBODY, ORDER, POST, ZOE, day
from tests.support.cases import cases
from tests.support.in_process import Service

ANNS = {"id": ANN, "version": 3, "createdAt": day(1), "updatedAt": day(1), "name": "Ann"}
ORDER_2 = {
    "id": ORDER[2],
    "version": 1,
    "createdAt": day(2),
    "updatedAt": day(2),
    "customerId": ANN,
    "status": "paid",
    "total": "20.50",
    "currency": "EUR",
    "note": "gift",
    "internalNote": "checked",
}
LISTS_ALONE = (
    "first=2",
    "last=2",
    "after=x",
    "before=x",
    "offset=1",
    "sort=name",
    "count=exact",
    "where={}",
    "name=Ann",
)
NO_ROUTES = (
    "",
    "/user",
    "/Users",
    "/users/",
    f"/users/{ANN}/",
    f"/users/{ANN}/posts/",
    f"/users/{ANN}/nothing",
    f"/posts/{POST[1]}/author",
    f"/users/{ANN}/posts/{POST[1]}",
    "//users",
    "/users//posts",
    "/graphql/",
    "/oauth",
    "/metrics",
    "/console",
    f"/users/{ANN}/email",
    f"/users%2F{ANN}",
    "/%2575sers",
)


def test_one_is_the_bare_object_with_every_plain_field(shop: Service) -> None:
    answer = shop.get(f"/orders/{ORDER[2]}", token=shop.token(BEN, "staff"))
    assert (answer.status, answer.kind) == (200, "application/json")
    assert list(answer.json().items()) == list(ORDER_2.items())


@pytest.mark.parametrize("role", ["staff", "admin"])
def test_a_role_brings_fields_and_what_it_implies_brings_them_too(shop: Service, role: str) -> None:
    assert "internalNote" in shop.get(f"/orders/{ORDER[2]}", token=shop.token(BEN, role)).json()


def test_a_field_that_only_others_have_is_not_there(shop: Service) -> None:
    assert shop.get(f"/users/{ANN}").json() == ANNS
    own = shop.get(f"/orders/{ORDER[2]}", token=shop.token(ANN)).json()
    assert own == {name: value for name, value in ORDER_2.items() if name != "internalNote"}


def test_a_field_that_depends_on_the_row_is_null_where_it_is_not_allowed(shop: Service) -> None:
    token = shop.token(ANN)
    assert shop.get(f"/users/{ANN}", token=token).json() == {**ANNS, "email": "ann@example.com"}
    assert shop.get(f"/users/{BEN}", token=token).json()["email"] is None


def test_a_percent_encoded_id_is_the_same_id(shop: Service) -> None:
    assert shop.get(f"/users/%30{ANN[1:]}").json() == ANNS


@cases("id", [*ILL_FORMED, NOBODY, "%00", "%ED%A0%80", "%FF", "%", "x" * 5000, "é", "..", "%2e%2e"])
def test_an_id_that_names_nothing_is_not_found(shop: Service, things: Service, id: str) -> None:
    for service, path in ((shop, f"/users/{id}"), (shop, f"/users/{id}/posts"), (things, f"/items/{id}9999")):
        answer = service.get(path)
        assert (answer.status, answer.code) == (404, "NOT_FOUND")


@cases("id", ["0", "01", "-1", "+1", "1.0", "1e0", " 1", "9223372036854775808", "9" * 5000, "0x1"])
def test_an_ill_formed_integer_id_is_not_found(things: Service, id: str) -> None:
    assert things.get(f"/items/{id}").status == 404
    assert things.get("/items/1").status == 200


def test_a_row_that_may_not_be_read_cannot_be_told_from_no_row(shop: Service) -> None:
    for token in (None, shop.token(BEN), shop.token(BEN, "staff")):
        hidden, absent = (shop.get(f"/posts/{id}", token=token) for id in (POST[3], NOBODY))
        assert hidden.status == 404
        assert (hidden.body, hidden.headers) == (absent.body, absent.headers)
    assert shop.get(f"/posts/{POST[3]}", token=shop.token(ANN)).json()["title"] == "Draft"


@cases("parameter", LISTS_ALONE)
def test_one_takes_no_parameter_of_a_list(shop: Service, parameter: str) -> None:
    answer = shop.get(f"/users/{ANN}?{parameter}")
    assert (answer.status, answer.code) == (400, "BAD_REQUEST")
    assert answer.places == ["/query/" + parameter.partition("=")[0]]


@cases("path", NO_ROUTES)
def test_a_path_that_is_no_route_is_not_found(shop: Service, path: str) -> None:
    answer = shop.get(path)
    assert (answer.status, answer.code) == (404, "NOT_FOUND")


# below one


def test_a_list_below_one_has_only_its_rows_that_may_be_read(shop: Service) -> None:
    url = f"/users/{ANN}/posts?fields=title&sort=-title"
    assert shop.rows(url) == [{"title": "Beta"}, {"title": "Alpha"}]
    assert shop.rows(url, token=shop.token(ANN)) == [{"title": "Draft"}, {"title": "Beta"}, {"title": "Alpha"}]


def test_a_list_below_one_takes_all_parameters_of_a_list(shop: Service) -> None:
    url = f"/users/{ANN}/posts?title[ne]=Draft&where=%7B%22comments%22:%7B%22some%22:%7B%7D%7D%7D"
    url += "&sort=-title&first=1&offset=1&count=exact&fields=title,comments(body)"
    body = shop.get(url, token=shop.token(ANN)).json()
    comments = [{"body": "nice"}, {"body": "so-so"}, {"body": "thanks"}]
    assert body["data"] == [{"title": "Alpha", "comments": comments}]
    assert (body["page"]["size"], body["page"]["next"], body["page"]["total"]) == (1, None, 2)
    assert body["page"]["previous"] is not None


def test_a_list_below_one_without_rows_is_empty(shop: Service) -> None:
    answer = shop.get(f"/users/{ZOE}/posts?count=exact")
    assert answer.json() == {"data": [], "page": {"size": 20, "next": None, "previous": None, "total": 0}}
    assert "link" not in answer.headers


def test_a_list_below_a_row_that_may_not_be_read_is_not_found(shop: Service) -> None:
    assert shop.get(f"/posts/{POST[3]}/comments").status == 404
    assert shop.get(f"/posts/{NOBODY}/comments").status == 404
    assert shop.rows(f"/posts/{POST[3]}/comments?fields=id", token=shop.token(ANN)) == [{"id": COMMENT[5]}]


def test_a_list_below_one_that_others_may_read_is_refused_as_such(shop: Service) -> None:
    for id in (ANN, NOBODY, "x"):
        anonymous = shop.get(f"/users/{id}/orders")
        assert (anonymous.status, anonymous.code) == (401, "UNAUTHENTICATED")
    assert shop.rows(f"/users/{ANN}/orders?fields=total&total=10.00", token=shop.token(ANN)) == [{"total": "10.00"}]
    assert shop.rows(f"/users/{BEN}/orders", token=shop.token(ANN)) == []


def test_many_to_many_and_a_relation_to_itself_have_lists_too(things: Service) -> None:
    assert things.rows("/items/1/labels?sort=word&fields=word") == [{"word": "blue"}, {"word": "red"}]
    assert things.rows("/items/1/children?fields=id,parent(id)") == [
        {"id": "2", "parent": {"id": "1"}},
        {"id": "3", "parent": {"id": "1"}},
    ]
