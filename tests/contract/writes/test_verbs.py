"""POST creates, PUT replaces, PATCH changes, DELETE deletes: what each answers, in both styles."""

from __future__ import annotations

import pytest

from tests.contract.http.data import ANN, BEN, COMMENT, ILL_FORMED, NOBODY, ORDER, POST, ZOE
from tests.contract.writes.shop import Shop, error_of


def test_post_answers_201_with_the_object_and_where_it_is(shop: Shop) -> None:
    answer = shop.rest("POST", "/users", {"name": "Dan", "email": "dan@example.com"})
    made = answer.json()
    assert answer.status == 201
    assert answer.headers["location"] == f"/users/{made['id']}"
    assert list(made) == ["id", "version", "createdAt", "updatedAt", "name", "email"]
    assert (made["version"], made["name"], made["createdAt"]) == (1, "Dan", made["updatedAt"])
    found = shop.rest("GET", answer.headers["location"])
    assert found.body == answer.body and found.headers["etag"] == answer.headers["etag"]


def test_ids_are_made_by_the_server_and_ascend(shop: Shop) -> None:
    ids = [shop.rest("POST", "/posts", post("one"), who="ann").json()["id"] for _ in range(3)]
    assert ids == sorted(ids) and len(set(ids)) == 3
    assert all(each[14] == "7" and each == each.lower() for each in ids)


def test_what_is_left_out_of_a_new_row_is_its_default_or_null(shop: Shop) -> None:
    made = shop.rest("POST", "/orders", {"customerId": ANN, "total": "1"}, who="staff").json()
    assert (made["status"], made["currency"], made["note"], made["internalNote"]) == ("pending", "EUR", None, None)
    assert made["total"] == "1.00"


@pytest.mark.parametrize("fields", ["id,title", "again:title,author(name,posts[first=1](title))", "*"])
def test_the_answer_to_a_change_is_what_fields_says(shop: Shop, fields: str) -> None:
    made = shop.rest("POST", f"/posts?fields={fields}", post("New"), who="ann")
    assert made.status == 201
    id = made.headers["location"].removeprefix("/posts/")
    assert made.json() == shop.get(f"/posts/{id}?fields={fields}", "ann")
    for method, body in (("PATCH", {"title": "Newer"}), ("PUT", post("Newest"))):
        changed = shop.rest(method, f"/posts/{id}?fields={fields}", body, who="ann")
        assert changed.status == 200
        assert changed.body == shop.rest("GET", f"/posts/{id}?fields={fields}", who="ann").body


def test_an_array_is_created_in_its_order(shop: Shop) -> None:
    answer = shop.rest("POST", "/posts?fields=title,authorId", [post(str(n)) for n in range(100)], who="ann")
    assert answer.status == 201
    assert answer.json() == [{"title": str(n), "authorId": ANN} for n in range(100)]
    assert shop.count("posts") == 108
    assert "location" not in answer.headers


def test_a_path_of_their_own_creates_several_and_answers_as_the_collection_does(shop: Shop) -> None:
    rows = [post(str(n)) for n in range(3)]
    one, other = (shop.rest("POST", f"{path}?fields=title", rows, who="ann") for path in ("/posts", "/posts/batch"))
    assert (other.status, other.json()) == (201, [{"title": str(n)} for n in range(3)])
    assert (other.status, other.body, other.headers) == (one.status, one.body, one.headers)
    with shop.unchanged():
        for body in (post("x"), "x", True, 1):
            answer = shop.rest("POST", "/posts/batch", body, who="ann")
            assert (answer.status, answer.code, answer.places) == (422, "BAD_USER_INPUT", [""])
        for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE"):
            answer = shop.rest(method, "/posts/batch", rows, who="ann")
            assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
        assert shop.rest("POST", "/posts/batch", rows, who="anonymous").status == 401
        assert shop.rest("POST", "/users/batch", [{"name": "x", "email": "x@y"}], who="ann").status == 403
        assert shop.rest("POST", "/posts/batch?first=1", rows, who="ann").status == 400
    assert shop.rest("OPTIONS", "/posts/batch").headers["allow"] == "POST, OPTIONS"


@pytest.mark.parametrize("path", ["/posts", "/posts/batch"])
@pytest.mark.parametrize("number", [0, 101])
def test_an_array_has_1_to_100_objects(shop: Shop, number: int, path: str) -> None:
    with shop.unchanged():
        answer = shop.rest("POST", path, [post("x")] * number, who="ann")
    assert (answer.status, answer.code, answer.places) == (422, "BAD_USER_INPUT", [""])


def test_a_patch_without_a_media_type_is_a_merge_patch(shop: Shop) -> None:
    """Some clients send none with a PATCH, or leave it to a library that does not know one."""
    id = shop.rest("POST", "/posts", post("New"), who="ann").json()["id"]
    answer = shop.rest("PATCH", f"/posts/{id}?fields=title", {"title": "Newer"}, who="ann", kind="")
    assert (answer.status, answer.json()) == (200, {"title": "Newer"})
    with shop.unchanged():
        operations = [{"op": "replace", "path": "/title", "value": "x"}]  # a JSON Patch says what it is
        assert shop.rest("PATCH", f"/posts/{id}", operations, who="ann", kind="").status == 422
        assert shop.rest("PATCH", f"/posts/{id}", b"title=x", who="ann", kind="").status == 400
        assert shop.rest("PATCH", f"/posts/{id}", b"", who="ann", kind="").status == 415


def test_an_array_is_created_wholly_or_not_at_all(shop: Shop) -> None:
    users = [{"name": str(n), "email": f"{n}@example.com"} for n in range(5)]
    with shop.unchanged():
        twice = shop.rest("POST", "/users", [*users, {"name": "x", "email": "ann@example.com"}, *users])
        assert (twice.status, twice.code, twice.places) == (409, "CONFLICT", ["/5/email"])
        among = shop.rest("POST", "/users", [*users, users[0]])
        assert (among.status, among.code, among.places) == (409, "CONFLICT", ["/5/email"])
        dangling = shop.rest("POST", "/orders", [order(ANN), order(ANN), order(NOBODY)], who="staff")
        assert (dangling.status, dangling.places) == (409, ["/2/customerId"])
        foreign = shop.rest("POST", "/posts", [post("x"), post("x", BEN)], who="ann")
        assert (foreign.status, foreign.code) == (403, "FORBIDDEN")


def test_faults_of_an_array_are_told_with_the_place_of_each(shop: Shop) -> None:
    rows = [post("ok"), {"title": "", "body": 1}, "no object", post("ok"), {**post("x"), "nope": 1}, None]
    with shop.unchanged():
        answer = shop.rest("POST", "/posts", rows, who="ann")
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
    assert answer.places == ["/1/authorId", "/1/title", "/1/body", "/2", "/4/nope", "/5"]


def test_a_fault_of_the_query_string_is_told_once_for_an_array(shop: Shop) -> None:
    with shop.unchanged():
        answer = shop.rest("POST", "/posts?fields=nope", [post("x")] * 3, who="ann")
    assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", ["/query/fields"])


def test_put_overwrites_the_entire_object(shop: Shop) -> None:
    shop.rest("PATCH", f"/orders/{ORDER[1]}", {"note": "n", "currency": "USD", "internalNote": "i"})
    answer = shop.rest("PUT", f"/orders/{ORDER[1]}", order(BEN, "7"))
    found = answer.json()
    assert answer.status == 200
    assert (found["customerId"], found["total"], found["version"]) == (BEN, "7.00", 3)
    assert (found["currency"], found["note"], found["internalNote"]) == ("EUR", None, None)
    assert found["createdAt"] < found["updatedAt"]
    assert answer.body == shop.rest("GET", f"/orders/{ORDER[1]}").body


def test_patch_changes_only_what_is_supplied(shop: Shop) -> None:
    before = shop.get(f"/posts/{POST[1]}")
    answer = shop.rest("PATCH", f"/posts/{POST[1]}", {"title": "New"}, who="ann")
    assert answer.status == 200
    after = answer.json()
    assert after == {**before, "title": "New", "version": 2, "updatedAt": after["updatedAt"]}
    assert after["updatedAt"] > before["updatedAt"]


def test_a_patch_of_nothing_is_a_write_all_the_same(shop: Shop) -> None:
    answer = shop.rest("PATCH", f"/posts/{POST[1]}", {}, who="ann")
    assert (answer.status, answer.json()["version"]) == (200, 2)
    assert shop.data("mutation($id: ID!) { updatePost(id: $id, patch: {}) { version } }", {"id": POST[1]}) == {
        "updatePost": {"version": 3}
    }


def test_delete_answers_204_and_then_404(shop: Shop) -> None:
    answer = shop.rest("DELETE", f"/posts/{POST[1]}", who="ann")
    assert (answer.status, answer.body) == (204, b"")
    assert "content-type" not in answer.headers
    assert shop.rest("GET", f"/posts/{POST[1]}").status == 404
    again = shop.rest("DELETE", f"/posts/{POST[1]}", who="ann")
    assert (again.status, again.code) == (404, "NOT_FOUND")


def test_delete_answers_200_with_the_object_if_that_is_preferred(shop: Shop) -> None:
    before = shop.rest("GET", f"/posts/{POST[1]}?fields=title,comments(body)", who="ann")
    answer = shop.rest(
        "DELETE",
        f"/posts/{POST[1]}?fields=title,comments(body)",
        who="ann",
        headers={"prefer": "return=representation"},
    )
    assert (answer.status, answer.body) == (200, before.body)
    assert answer.headers["preference-applied"] == "return=representation"
    assert shop.rest("GET", f"/posts/{POST[1]}").status == 404


@pytest.mark.parametrize("who", ["zoe", "staff"])
def test_delete_without_permission_is_401_also_with_a_token(shop: Shop, who: str) -> None:
    with shop.unchanged():
        for url in (f"/posts/{POST[1]}", f"/orders/{ORDER[1]}", f"/users/{BEN}"):
            answer = shop.rest("DELETE", url, who=who)
            if url.startswith("/orders") and who == "zoe":
                assert answer.status == 401  # the role never deletes orders, whether it sees this one or not
            assert (answer.status, answer.code, answer.json()["status"]) == (401, "FORBIDDEN", 401)
            assert answer.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'


def test_delete_without_a_token_is_401(shop: Shop) -> None:
    with shop.unchanged():
        for url in (f"/posts/{POST[1]}", f"/posts/{NOBODY}", "/posts/x", f"/orders/{ORDER[1]}", f"/users/{ANN}"):
            answer = shop.rest("DELETE", url, who="anonymous")
            assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_what_is_not_there_is_404_and_nothing_is_made(shop: Shop, method: str) -> None:
    body = None if method == "DELETE" else post("x")
    with shop.unchanged():
        for id in (NOBODY, *ILL_FORMED[:4], *ILL_FORMED[5:7]):
            answer = shop.rest(method, f"/posts/{id}", body)
            assert (answer.status, answer.code) == (404, "NOT_FOUND"), id


def test_mutations_on_what_is_not_there_are_not_found(shop: Shop) -> None:
    with shop.unchanged():
        for id in (NOBODY, *ILL_FORMED):
            for call in (
                'updatePost(id: $id, patch: {title: "x"})',
                "deletePost(id: $id)",
                f'replacePost(id: $id, input: {{title: "x", body: "", authorId: "{ANN}"}})',
            ):
                error = error_of(shop.ql(f"mutation($id: ID!) {{ a: {call} {{ id }} }}", {"id": id}))
                assert (error["extensions"]["code"], error["path"]) == ("NOT_FOUND", ["a"])


@pytest.mark.parametrize(
    ("method", "url", "allow"),
    [
        ("POST", f"/users/{ANN}", "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"),
        ("PUT", "/users", "GET, HEAD, OPTIONS, QUERY, POST, PATCH, DELETE"),
        ("POST", f"/users/{ANN}/posts", "GET, HEAD, OPTIONS, QUERY"),
        ("DELETE", f"/users/{ANN}/posts", "GET, HEAD, OPTIONS, QUERY"),
    ],
)
def test_a_method_that_a_path_has_not_is_405(shop: Shop, method: str, url: str, allow: str) -> None:
    with shop.unchanged():
        answer = shop.rest(method, url, {})
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", allow)


def test_options_tells_what_can_be_written(shop: Shop) -> None:
    answer = shop.rest("OPTIONS", f"/posts/{POST[1]}")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"
    assert "application/json-patch+json" in answer.headers["accept-patch"]
    many = shop.rest("OPTIONS", "/posts")
    assert many.headers["allow"] == "GET, HEAD, OPTIONS, QUERY, POST, PATCH, DELETE"
    assert many.headers["accept-patch"] == "application/merge-patch+json, application/json"


def test_cascades_go_where_the_model_says_and_restrictions_hold(shop: Shop) -> None:
    answer = shop.rest("DELETE", f"/users/{ANN}")
    assert (answer.status, answer.code) == (409, "CONFLICT")  # she has orders
    error = error_of(shop.ql(f'mutation {{ deleteUser(id: "{ANN}") {{ id }} }}'))
    assert (error["extensions"]["code"], error["path"]) == ("CONFLICT", ["deleteUser"])
    assert (shop.count("users"), shop.count("posts"), shop.count("comments")) == (4, 8, 8)
    for number in (1, 2, 3):
        assert shop.rest("DELETE", f"/orders/{ORDER[number]}").status == 204
    assert shop.rest("DELETE", f"/users/{ANN}", who="ann").status == 204
    assert (shop.count("users"), shop.count("posts"), shop.count("comments")) == (3, 5, 2)
    assert shop.rest("DELETE", f"/posts/{POST[8]}", who="cleo").status == 204
    assert shop.count("comments") == 1
    assert shop.rest("GET", f"/comments/{COMMENT[7]}").status == 200


def test_both_styles_write_the_same(shop: Shop) -> None:
    document = "mutation($input: PostCreate!) { createPost(input: $input) { title body published authorId version } }"
    queried = shop.data(document, {"input": post("Same")}, who="ann")["createPost"]
    resourced = shop.rest("POST", "/posts?fields=title,body,published,authorId,version", post("Same"), who="ann").json()
    assert queried == resourced


def test_zoe_has_nothing_and_can_go(shop: Shop) -> None:
    assert shop.rest("DELETE", f"/users/{ZOE}", who="zoe").status == 204


def post(title: str, author: str = ANN) -> dict[str, object]:
    return {"authorId": author, "title": title, "body": "words"}


def order(customer: str, total: str = "1") -> dict[str, object]:
    return {"customerId": customer, "total": total}
