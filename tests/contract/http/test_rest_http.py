"""HTTP of the resource style: methods, negotiation, entity tags, caching, the form of errors."""

from __future__ import annotations

import re

import pytest

from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN, NOBODY, POST
from tests.support.cases import cases
from tests.support.in_process import Service

PATHS = ("/users", f"/users/{ANN}", f"/users/{ANN}/posts", "/openapi.json", "/health/live", "/health/ready")


@pytest.mark.parametrize("path", PATHS)
def test_head_answers_as_get_does(shop: Service, path: str) -> None:
    got, head = shop.get(path), shop.send("HEAD", path)
    assert (head.status, head.headers) == (got.status, got.headers)
    assert got.status == 200


@pytest.mark.parametrize("path", [f"/users/{NOBODY}", "/users?nope=1", "/orders", "/nope"])
def test_head_fails_as_get_does(shop: Service, path: str) -> None:
    got, head = shop.get(path), shop.send("HEAD", path)
    assert (head.status, head.headers) == (got.status, got.headers)
    assert got.status >= 400


@pytest.mark.parametrize("path", PATHS)
def test_options_tells_what_is_allowed(shop: Service, path: str) -> None:
    answer = shop.send("OPTIONS", path)
    assert (answer.status, answer.body) == (204, b"")
    assert {"GET", "HEAD", "OPTIONS"} <= set(answer.headers["allow"].split(", "))


@cases("path", PATHS)
@cases("method", ["TRACE", "CONNECT", "PROPFIND", "get", "SEARCH", ""])
def test_a_method_that_is_not_there_is_refused_with_those_that_are(shop: Service, path: str, method: str) -> None:
    answer = shop.send(method, path)
    assert (answer.status, answer.code) == (405, "METHOD_NOT_ALLOWED")
    allowed = answer.headers["allow"].split(", ")
    assert {"GET", "HEAD", "OPTIONS"} <= set(allowed)
    assert method not in allowed
    assert allowed == shop.send("OPTIONS", path).headers["allow"].split(", ")


# Accept, is JSON acceptable?
ACCEPTS: dict[str, bool] = {
    "": True,
    "*/*": True,
    "application/json": True,
    "application/*": True,
    "APPLICATION/JSON": True,
    "application/json;q=0.5": True,
    "text/html, application/json": True,
    "text/html, */*;q=0.1": True,
    "application/json; charset=utf-8": True,
    "text/html,application/xml;q=0.9,*/*;q=0.8": True,
    "text/html": False,
    "application/xml": False,
    "application/json;q=0": False,
    "*/*;q=0": False,
    "application/json;q=0, */*": False,
    "text/*": False,
    "application/problem+json": False,
    "json": False,
    "/": False,
    "application/*;q=0, application/json": True,
    ",": False,
    "image/png;q=1.0": False,
}


@cases("accept", ACCEPTS)
@cases("path", PATHS)
def test_only_json_is_served(shop: Service, path: str, accept: str) -> None:
    answer = shop.get(path, headers={"accept": accept})
    if ACCEPTS[accept]:
        assert (answer.status, answer.kind) == (200, "application/json")
    else:
        assert (answer.status, answer.code, answer.kind) == (406, "NOT_ACCEPTABLE", "application/problem+json")


# entity tags


@pytest.mark.parametrize("path", PATHS[:4])
def test_every_get_has_a_tag_and_is_not_sent_again_to_whoever_has_it(shop: Service, path: str) -> None:
    answer = shop.get(path)
    tag = answer.headers["etag"]
    assert re.fullmatch(r'"[!-~]+"', tag)
    assert shop.get(path).headers["etag"] == tag
    for given in (tag, f"W/{tag}", f'"x", {tag}', f'{tag},"y"', f'W/"x" ,  W/{tag} , "z"', "*", " * "):
        again = shop.get(path, headers={"if-none-match": given})
        assert (again.status, again.body) == (304, b""), given
        kept = {name: again.headers.get(name) for name in ("etag", "cache-control", "vary")}
        assert kept == {name: answer.headers[name] for name in kept}
        assert "content-type" not in again.headers
        assert shop.send("HEAD", path, headers={"if-none-match": given}).status == 304
    for given in ("", '"x"', tag.strip('"'), tag[:-2] + '"', '"*"', "W/", '"x", "y"'):
        assert shop.get(path, headers={"if-none-match": given}).status == 200, given


def test_the_tag_of_one_resource_begins_with_its_version(shop: Service) -> None:
    versioned = (f"/users/{ANN}", f"/users/{ANN}?fields=name,version", f"/users/{ANN}?fields=*,posts(id)")
    for url in versioned:
        assert re.fullmatch(r'"3\.[0-9a-f]+"', shop.get(url).headers["etag"]), url
    without = (
        "/users",
        f"/users/{ANN}/posts",
        f"/users/{ANN}?fields=name",
        f"/users/{ANN}?fields=v:version",
        f"/users/{ANN}?fields=version:name",
        f"/users/{ANN}?fields=posts(version)",
    )
    for url in without:
        assert "." not in shop.get(url).headers["etag"], url


def test_different_answers_have_different_tags(shop: Service) -> None:
    urls = (
        "/users",
        "/users?first=2",
        "/users?fields=id",
        f"/users/{ANN}",
        f"/users/{ANN}?fields=version,id",
        f"/users/{ANN}?fields=id,version",
        "/posts",
    )
    tags = [shop.get(url).headers["etag"] for url in urls]
    tags += [shop.get(f"/users/{ANN}", token=shop.token(ANN)).headers["etag"]]
    assert len(set(tags)) == len(tags)


def test_what_was_changed_is_sent_again(fresh: Fresh) -> None:
    service = fresh()
    for url, changes in (
        (f"/users/{ANN}", True),
        ("/users?fields=name", True),
        (f"/posts/{POST[1]}?fields=author(name)", True),
        (f"/users/{ANN}?fields=id", False),
        ("/posts?fields=title", False),
    ):
        tag = service.get(url).headers["etag"]
        assert service.get(url, headers={"if-none-match": tag}).status == 304
        service.execute(f"UPDATE users SET name = name || '!', version = version + 1 WHERE id = '{ANN}'")
        again = service.get(url, headers={"if-none-match": tag})
        assert again.status == (200 if changes else 304)
        assert (again.headers["etag"] != tag) == changes
    assert service.get(f"/users/{ANN}").headers["etag"].startswith('"8.')


def test_a_change_of_what_the_caller_may_not_see_changes_no_tag_but_that_of_a_version(fresh: Fresh) -> None:
    service = fresh()
    urls = (
        f"/users/{ANN}?fields=id,name,createdAt",
        f"/users/{ANN}?fields=name,posts(title)",
        "/posts?count=exact",
        f"/posts/{POST[1]}",
    )
    before = [service.get(url).headers for url in urls]
    version = service.get(f"/users/{ANN}").json()["version"]
    service.execute(f"UPDATE users SET email = 'other@example.com' WHERE id = '{ANN}'")
    service.execute(f"UPDATE posts SET title = 'other', version = 9 WHERE id = '{POST[3]}'")
    assert [service.get(url).headers for url in urls] == before
    assert service.get(f"/users/{ANN}").headers["etag"].startswith(f'"{version + 1}.')  # it counts every write


# headers


def test_answers_are_private_and_errors_are_not_stored(shop: Service) -> None:
    for path in PATHS[:4]:
        answer = shop.get(path)
        assert answer.headers["cache-control"] == "private, no-cache"
        assert {each.strip().lower() for each in answer.headers["vary"].split(",")} >= {"authorization", "accept"}
    for path in (f"/users/{NOBODY}", "/users?nope=1", "/orders", "/nope"):
        answer = shop.get(path)
        assert (answer.headers["cache-control"], "etag" in answer.headers) == ("no-store", False)


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", "/nope", 404),
        ("GET", "/users?x=1", 400),
        ("GET", "/orders", 401),
        ("TRACE", "/users", 405),
        ("GET", "/users?first=0", 400),
    ],
)
def test_an_error_is_a_problem_with_a_code(shop: Service, method: str, url: str, status: int) -> None:
    answer = shop.send(method, url)
    body = answer.json()
    assert (answer.status, answer.kind) == (status, "application/problem+json")
    assert list(body)[:5] == ["type", "title", "status", "detail", "code"]
    assert set(body) <= {"type", "title", "status", "detail", "code", "errors"}
    assert (body["type"], body["status"]) == ("about:blank", status)
    assert re.fullmatch("[A-Z_]+", body["code"])
    assert re.fullmatch(r"[A-Z].*\.", body["detail"]) and body["title"]
    for error in body.get("errors", ()):
        assert list(error) == ["pointer", "message"]
        assert error["pointer"].startswith("/query/")


def test_a_pointer_is_escaped_as_json_pointers_are(shop: Service) -> None:
    assert shop.get("/users?a/b~c=1").places == ["/query/a~1b~0c"]


@pytest.mark.parametrize("path", ["/openapi.json", "/health/live", "/health/ready"])
def test_a_fixed_route_takes_no_parameters(shop: Service, path: str) -> None:
    answer = shop.get(f"{path}?x=1")
    assert (answer.status, answer.code) == (400, "BAD_REQUEST")


def test_a_get_reads_no_body(shop: Service) -> None:
    answer = shop.send("GET", "/users", body=b"\xff" * 10, headers={"content-type": "text/plain"})
    assert (answer.status, answer.body_was_read) == (200, False)
