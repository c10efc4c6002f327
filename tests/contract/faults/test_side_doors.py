"""Side doors: another method, header, media type or spelling reaches what the front door refuses.

Published in many forms: `X-HTTP-Method-Override` past a filter of methods, operators smuggled in as `?id[ne]=`
(Strapi, Parse Server and everything on MongoDB), unknown parameters that reach a lower layer (Strapi,
CVE-2026-27886), keys like `__proto__` (Parse Server, CVE-2022-24760), a form that a foreign page can post. Here there
is one way in, and whatever is not understood is refused and not ignored.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN, BEN, ORDER, POST
from tests.support.in_process import RESPONSE

OVERRIDES = ["x-http-method-override", "x-http-method", "x-method-override", "x-original-method"]


def test_head_and_options_tell_no_more_than_get(shop: Scene) -> None:
    """The head of a hidden row is that of none, its length too; OPTIONS does not look at rows at all."""
    for who in ("zoe", "anonymous"):
        for path, hidden in (("/posts", POST[6]), ("/orders", ORDER[1])):
            for method in ("GET", "HEAD", "OPTIONS"):
                one, none = (shop.rest(method, f"{path}/{id}", who=who) for id in (hidden, hidden[:-1] + "f"))
                assert (one.status, dict(one.headers), one.body) == (none.status, dict(none.headers), none.body)
    head, whole, shown = (
        shop.rest(method, f"/users/{BEN}", who=who)
        for method, who in (("HEAD", "ann"), ("GET", "ann"), ("HEAD", "admin"))
    )
    assert dict(head.headers) == dict(whole.headers) and head.headers["etag"] != shown.headers["etag"]


@pytest.mark.parametrize("header", OVERRIDES)
def test_a_method_in_a_header_is_no_method(shop: Scene, header: str) -> None:
    """Nor in a parameter or a body: what is asked is what the request line says."""
    with shop.unchanged():
        for method in ("DELETE", "PATCH", "PUT"):
            assert shop.rest("GET", f"/posts/{POST[1]}", who="ann", headers={header: method}).status == 200
            assert (
                shop.rest("POST", f"/posts/{POST[1]}", {"title": "x"}, who="ann", headers={header: method}).status
                == 405
            )
            assert shop.rest("GET", f"/posts/{POST[1]}?_method={method}", who="ann").status == 400
            assert shop.rest("POST", "/posts", {"_method": method, "title": "t"}, who="ann").status == 422
        hidden = {header: "GET", "x-original-url": f"/orders/{ORDER[4]}", "x-rewrite-url": f"/orders/{ORDER[4]}"}
        assert shop.rest("GET", f"/orders/{ORDER[1]}", who="zoe", headers=hidden).status == 404


@pytest.mark.parametrize(
    "header",
    [
        {"x-user-id": BEN},
        {"x-hasura-role": "admin"},
        {"x-hasura-user-id": BEN},
        {"x-forwarded-user": BEN},
        {"x-parse-master-key": "x"},
        {"role": "admin"},
        {"cookie": f"user={BEN}; role=admin"},
        {"x-forwarded-for": "127.0.0.1"},
        {"forwarded": "for=127.0.0.1"},
        {"x-role": "admin"},
        {"prefer": "role=admin"},
    ],
)
def test_no_header_but_the_token_says_who_asks(shop: Scene, header: dict[str, str]) -> None:
    """Hasura and PostgREST take a role from a header or a claim; here a client's word for it counts for nothing."""
    for who in ("ann", "anonymous"):
        for url in ("/users", "/posts?count=exact", f"/posts/{POST[6]}"):
            plain, dressed = (shop.rest("GET", url, who=who, headers=headers) for headers in ({}, header))
            assert (plain.status, plain.body) == (dressed.status, dressed.body)
    assert shop.rest("GET", "/orders", who="anonymous", headers=header).status == 401


@pytest.mark.parametrize(
    "token", ["", "null", "undefined", "Bearer", "eyJhbGciOiJub25lIn0.eyJyb2xlcyI6WyJhZG1pbiJdfQ.", "a.b.c"]
)
def test_a_token_that_does_not_hold_is_not_nobody(shop: Scene, token: str) -> None:
    """It is refused, also one that says it needs no signature; else an expired admin would be served as a guest,
    and cached."""
    for url in ("/users", "/graphql?query={users{id}}"):
        answer = shop.rest("GET", url, who="anonymous", headers={"authorization": f"Bearer {token}"})
        assert answer.status == 401


def test_media_types_are_masked_alike(shop: Scene) -> None:
    """What an answer is called changes nothing in it; what is not served is refused, not served as something else."""
    plain = shop.rest("GET", f"/users/{BEN}", who="ann")
    for accept in ("application/json", "*/*", "application/*", "application/json;q=0.1", "text/html, */*;q=0.1"):
        assert shop.rest("GET", f"/users/{BEN}", who="ann", headers={"accept": accept}).body == plain.body
    for accept in (
        "text/csv",
        "application/xml",
        "text/html",
        "application/octet-stream",
        "application/vnd.pgrst.object+json",
    ):
        answer = shop.rest("GET", f"/users/{BEN}", who="ann", headers={"accept": accept})
        assert answer.status == 406 and b"example.com" not in answer.body
    for accept in ("application/json", RESPONSE):
        reply = shop.service.query("{ users { email } }", token=shop.token("ann"), accept=accept)
        assert b"ben@example.com" not in reply.body and b"ann@example.com" in reply.body


def test_a_form_of_a_foreign_page_changes_nothing(shop: Scene) -> None:
    """The types that a page can post without asking are refused, by both styles; and GET changes nothing."""
    change = f'mutation {{ deletePost(id: "{POST[1]}") {{ id }} }}'
    with shop.unchanged():
        for kind in (
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain",
            "text/plain; a=application/json",
            "",
        ):
            body = json.dumps({"query": change}).encode()
            assert shop.rest("POST", "/graphql", body, who="ann", kind=kind).status == 415
            assert (
                shop.rest("POST", "/posts", b'{"authorId":"x","title":"t","body":"b"}', who="ann", kind=kind).status
                == 415
            )
        assert shop.rest("GET", f"/graphql?query={quote(change)}", who="ann").status == 405
        assert shop.rest("HEAD", f"/graphql?query={quote(change)}", who="ann").status == 405


def test_a_body_of_a_get_is_not_read(shop: Scene) -> None:
    """A filter, a document or an id in it is nothing: caches would not see it either."""
    plain = shop.rest("GET", "/users", who="ann")
    for body in ({"where": {"name": {"eq": "Ann"}}}, {"query": "{ users { id } }"}, {"id": BEN, "role": "admin"}):
        answer = shop.rest("GET", "/users", body, who="ann")
        assert (answer.body, answer.body_was_read) == (plain.body, False)


@pytest.mark.parametrize(
    "query",
    [
        "name[$ne]=x",
        "name[$regex]=.*",
        "name[]=x",
        "name[eq][ne]=x",
        "name[eq]=x&name[eq]=Ann",
        "name=x&name=Ann",
        "[name]=x",
        "name.eq=x",
        "name__startswith=x",
        "name[raw]=1",
        "name[OR]=1",
        "$where=1",
        "filters[email][$startsWith]=b",
        "filter=email~'b'",
        "where[email][startsWith]=b",
        "populate=*",
        "expand=orders",
        "select=*",
        "include=orders",
        "embed=orders",
        "_where=x",
        "or=(email.eq.x)",
        "and=()",
        "__proto__[name]=x",
        "constructor[prototype][x]=1",
        "email%00=x",
        "email%20=x",
        "\uff45mail=x",
        "ema\u0131l=x",
        "EMAIL=x",
        "e\u0301mail=x",
        "users.email=x",
        "author.email=x",
        "password=x",
    ],
)
def test_what_is_no_parameter_is_refused(shop: Scene, query: str) -> None:
    """Operators of other products, brackets too many, names in other spellings: 400, for the admin too, and no rows."""
    for who in ("ann", "admin"):
        answer = shop.rest("GET", "/users?" + quote(query, safe="=&%[]()$*'"), who=who)
        assert (answer.status, answer.code) == (400, "BAD_REQUEST"), answer.body


@pytest.mark.parametrize(
    "id",
    [
        {"ne": ""},
        {"$ne": None},
        [POST[6]],
        [],
        {},
        None,
        True,
        1.5,
        {"in": [POST[6]]},
        {"id": POST[6]},
        ["1", "2"],
    ],
    ids=json.dumps,
)
def test_an_id_is_a_text_and_nothing_else(shop: Scene, id: Any) -> None:
    """No object, list or truth passes for an id, in a variable, a filter or a reference; none of it finds a row."""
    with shop.unchanged():
        for document in (
            "query($v: ID!) { post(id: $v) { id } }",
            "mutation($v: ID!) { deletePost(id: $v) { id } }",
            "query($v: ID) { posts(where: {id: {eq: $v}}) { id } }",
        ):
            answer = shop.ql(document, {"v": id}, who="ann")
            assert answer.code == "BAD_USER_INPUT", answer.body
        assert shop.rest("POST", "/comments", {"authorId": id, "postId": id, "body": "b"}, who="ann").status == 422
        assert shop.rest("GET", "/posts?where=" + quote(json.dumps({"id": {"eq": id}})), who="ann").status == 400


@pytest.mark.parametrize(
    "key",
    [
        "__proto__",
        "constructor",
        "prototype",
        "toString",
        "__class__",
        "__init__",
        "__dict__",
        "self",
        "_id",
        "$set",
        "$where",
        "",
    ],
)
def test_keys_that_mean_something_to_a_language_mean_nothing_here(shop: Scene, key: str) -> None:
    """In bodies, patches, filters and variables: a name that no field has, refused as such."""
    for value in ({"published": True}, "x", {"isAdmin": True}):
        with shop.unchanged():
            assert shop.rest("PATCH", f"/posts/{POST[1]}", {key: value}, who="ann").status == 422
            assert (
                shop.rest("POST", "/posts", {"authorId": ANN, "title": "t", "body": "b", key: value}, who="ann").status
                == 422
            )
            assert shop.rest("GET", "/posts?where=" + quote(json.dumps({key: value})), who="ann").status == 400
            reply = shop.ql(
                'mutation($v: PostPatch!) { updatePost(id: "x", patch: $v) { id } }', {"v": {key: value}}, who="ann"
            )
            assert reply.code == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "body",
    [
        b'{"title":"a","title":"b"}',
        b'{"title":"a","titl\\u0065":"b"}',
        b'{"authorId":"x","title":"t","body":"b","authorId":"y"}',
    ],
)
def test_a_key_that_stands_twice_is_refused(shop: Scene, body: bytes) -> None:
    """One reader takes the first and another the last: a filter in front and the service would judge different
    bodies."""
    with shop.unchanged():
        assert shop.rest("PATCH", f"/posts/{POST[1]}", body, who="ann").status == 400
        assert shop.rest("POST", "/posts", body, who="ann").status == 400


def test_a_path_has_one_spelling(shop: Scene) -> None:
    """Slashes, dots, case and escapes too many: not there, so no rule of a proxy in front is slipped past."""
    assert shop.rest("GET", f"/orders/{ORDER[1]}", who="ann").status == 200
    for path in (
        "/orders/ID/",
        "//orders/ID",
        "/ORDERS/ID",
        "/orders//ID",
        "/orders/./ID",
        "/posts/../orders/ID",
        "/orders/ID;x",
        "/orders/ID.json",
        f"/orders/{ORDER[1].upper()}",
        "/orders/%20ID",
        "/orders/ID%00",
        "/orders/",
        "/order",
    ):
        assert shop.rest("GET", path.replace("ID", ORDER[1]), who="ann").status == 404, path
