"""Who gets what of the console: other origins, other hosts, other roles, other apps, and those who guess paths."""

from __future__ import annotations

import time

from diptych.identity.console_code import new_console_code
from diptych.identity.oauth.console_client import CONSOLE_CLIENT
from tests.contract.console.conftest import HERE, Console
from tests.contract.http.data import ANN, POST
from tests.support.cases import cases
from tests.support.in_process import Service

READING = ("boot", "model", "rules", "recent", "metrics")
SENDING = ("twin", "plan", "why")
FOR_ADMINS = ("rules", "recent", "metrics", "plan", "why")
DEV = ("code", "as", "person")
LISTS = ("accounts", "clients", "keys", "signing-keys", "documents", "migrations")
QUERY = {"query": "{ users { name } }", "resource": "Post", "id": POST[1], "verb": "read"}


def ask(console: Console, path: str, token: str | None = None, **headers: str) -> int:
    if path in READING or path.startswith("admin/"):
        return console.get(path, token, **headers).status
    return console.send(path, QUERY, token, **headers).status


@cases("path", FOR_ADMINS)
def test_explanations_are_for_admins(console: Console, dev: Console, path: str) -> None:
    for service in (console, dev):
        user = service.service.token(ANN)
        staff = service.service.token(ANN, "staff")
        found = [ask(service, path, token) for token in (None, user, staff, service.admin)]
        assert found == [401, 403, 403, 200]


@cases("path", LISTS)
def test_lists_of_admins_need_a_recent_sign_in(console: Console, dev: Console, path: str) -> None:
    where = f"admin/{path}"
    assert [ask(console, where, token) for token in (None, console.service.token(ANN), console.admin)] == [
        401,
        403,
        401,
    ]
    assert console.get(where, console.admin).json()["reauthenticate"] is True
    assert [ask(dev, where, token) for token in (None, dev.service.token(ANN), dev.admin)] == [401, 403, 200]
    tokens = console.service.handler.context.tokens
    for ago, status in ((10, 200), (290, 200), (310, 401), (10**6, 401)):
        more = {"client_id": CONSOLE_CLIENT, "auth_time": int(time.time()) - ago}
        assert ask(console, where, tokens.make(ANN, ["admin"], None, more=more)) == status


def test_an_app_that_acts_for_an_admin_is_no_admin(console: Console, dev: Console) -> None:
    for service in (console, dev):
        tokens = service.service.handler.context.tokens
        app = tokens.make(ANN, ["admin"], None, more={"client_id": "0123456789abcdef", "auth_time": int(time.time())})
        assert {ask(service, path, app) for path in (*FOR_ADMINS, *(f"admin/{path}" for path in LISTS))} == {403}
        assert service.twin(QUERY, app)["sql"] == [] and service.get("model", app).json()["admin"] is False
        assert service.send("twin", {**QUERY, "as": "anonymous"}, app).status == 403
        for path in ("as", "person"):
            assert service.send(path, {"role": "staff"}, app).status == (403 if service is dev else 404)
        assert service.get("people", app).status == (403 if service is dev else 404)


@cases("path", [*READING, *SENDING, *DEV, *(f"admin/{path}" for path in LISTS)])
def test_pages_of_other_origins_get_nothing(dev: Console, path: str) -> None:
    strange: tuple[dict[str, str], ...] = (
        {"origin": "http://localhost:3000"},
        {"origin": "http://127.0.0.1:9000"},
        {"origin": "https://127.0.0.1:8000"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    )
    assert {ask(dev, path, dev.admin, **headers) for headers in strange} == {403}
    own = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    assert ask(dev, path, dev.admin, **own) != 403
    rebound = {"host": "evil.example:8000", "origin": "http://evil.example:8000", "sec-fetch-site": "same-origin"}
    assert ask(dev, path, dev.admin, **rebound) == 503


def test_the_code_of_the_terminal_works_once(dev: Console) -> None:
    store = dev.service.app.store
    first = dev.service.runner.run(new_console_code(store, ANN))
    code = dev.service.runner.run(new_console_code(store, ANN))
    assert dev.send("code", {"code": first}).status == 400, "another one was made"
    for wrong in ("", "x", code[:-1], 7, None):
        assert dev.send("code", {"code": wrong}).status == 400
    answer = dev.send("code", {"code": code}).json()
    assert dev.get("model", answer["accessToken"]).json()["viewer"]["id"] == ANN
    assert dev.send("code", {"code": code}).status == 400


def test_viewing_as_someone_makes_tokens_in_development_alone(console: Console, dev: Console) -> None:
    as_staff = dev.send("as", {"role": "staff", "user": ANN}, dev.admin).json()
    seen = dev.get("model", as_staff["accessToken"]).json()
    assert (seen["viewer"]["id"], seen["roles"], seen["admin"]) == (ANN, ["staff"], False)
    assert dev.send("as", {"role": "anonymous"}, dev.admin).json()["accessToken"] is None
    assert dev.send("as", {"role": "nobody"}, dev.admin).status == 422
    assert dev.send("as", {"role": "admin"}, as_staff["accessToken"]).status == 403
    for path in DEV:
        assert console.send(path, {"role": "staff", "code": "x"}, console.admin).status == 404


def test_users_are_listed_and_created_without_rules_in_development_alone(console: Console, dev: Console) -> None:
    assert console.get("people", console.admin).status == 404
    found = dev.get("people", dev.admin).json()
    assert found["resource"]["name"] == "User" and {"id": ANN, "label": "Ann"} in found["people"]
    made = dev.send("person", {"values": {"name": "Nora", "email": "nora@example.org"}}, dev.admin)
    assert made.status == 200, made.body
    assert {"id": made.json()["id"], "label": "Nora"} in dev.get("people", dev.admin).json()["people"]
    assert dev.service.get(f"/users/{made.json()['id']}", token=dev.admin).json()["name"] == "Nora"
    for wrong in ({}, {"values": 7}, {"values": {"name": ""}}, {"values": {"nothing": 1}}):
        assert dev.send("person", wrong, dev.admin).status == 422
    for token, status in ((None, 401), (dev.service.token(ANN, "staff"), 403)):
        assert dev.get("people", token).status == status
        assert dev.send("person", {"values": {}}, token).status == status
    assert dev.service.send("DELETE", f"/users/{made.json()['id']}", token=dev.admin).status == 204


def test_why_a_list_shows_nothing(dev: Console) -> None:
    told = dev.send("why", {"resource": "Order", "verb": "read", "as": "signed_in"}, dev.admin).json()
    text = " ".join(told["lines"])
    assert "orders: 7 match, and this viewer sees 0" in text and "customer.id = viewer.id" in " ".join(
        " ".join(rule["lines"]) for rule in told["rules"]
    )


@cases(
    "path",
    [
        "/console/../config.py",
        "/console/assets/../../config.py",
        "/console/%2e%2e/config.py",
        "/console/..%2fconfig.py",
        "/console/assets/%2e%2e%2findex.html",
        "/console//etc/passwd.txt",
        "/console/index.html",
        "/console/assets/nothing.js",
        "/console/api/nothing",
        "/console/api/",
        "/console/api/admin/",
        "/console/api/admin/nothing",
        "/console/api/admin/accounts/a/b",
        "/consoles",
        "/consolation/",
    ],
)
def test_there_is_nothing_elsewhere(console: Console, path: str) -> None:
    assert console.service.get(path, token=console.admin, headers=HERE).status == 404


def test_where_it_is_off_there_is_no_such_path(console: Console, off: Service) -> None:
    unknown = off.get("/nothing")
    for path in ("/console", "/console/", "/console/data", "/console/api/boot", "/console/assets/x.js"):
        answer = off.get(path, headers=HERE)
        assert (answer.status, answer.body, answer.headers) == (404, unknown.body, unknown.headers)
    assert off.send("POST", "/console/api/twin", headers=HERE).status == 404
    assert "console" not in off.get("/").json()


@cases("body", [b"", b"[]", b"7", b"{", b'{"query": 7}', b'{"url": "users"}', b'{"url": "/users", "method": "TRACE"}'])
def test_a_body_that_is_no_request_is_refused(console: Console, body: bytes) -> None:
    head = {**HERE, "content-type": "application/json"}
    answer = console.service.send("POST", "/console/api/twin", headers=head, body=body)
    assert answer.status in (400, 422)


def test_bodies_are_bounded_and_no_form_can_send_one(console: Console) -> None:
    assert console.send("twin", {"query": "x" * 300_000}).status == 413
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert console.send("twin", QUERY, **{"content-type": kind}).status == 415
    deep = {"query": "{" + "a{" * 5_000}
    assert console.send("twin", deep).json()["refused"]["code"] in ("TOO_DEEP", "GRAPHQL_PARSE_FAILED", "TOO_COMPLEX")


def test_a_token_is_in_no_address(dev: Console) -> None:
    """The page is the same with any query, and no answer redirects with one."""
    page = dev.service.get("/console/?code=x&state=y&access_token=z")
    assert page.status == 200 and b"access_token" not in page.body
    moved = dev.service.get("/console?code=x")
    assert (moved.status, moved.headers["location"]) == (303, "/console/")
