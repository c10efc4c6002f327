"""What the OpenAPI document tells of tokens: how tools get them, which scopes operations need, and what the routes of
the authorization server take and give.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlencode

import jsonschema_rs
import pytest
import schemathesis

from diptych.api.openapi.document import build_openapi
from diptych.demo.model import model as default
from diptych.model.model import Model
from diptych.serve.endpoint.oauth_paths import PATHS
from tests.contract.http import data
from tests.support.documents import (
    METHODS,
    MODELS,
    ROLES,
    Document,
    document_of,
    every_role,
    find,
    operations,
    validator,
    view_of,
)
from tests.support.in_process import in_process
from tests.support.written_out import written_out
from tests.system.oauth.flow import FORM, PASSWORD, VERIFIER, Browser, Heard
from tests.system.oauth.stage import HERE, Stage, staged

SOMEONE = "00000000-0000-7000-8000-000000000000"

# the schemes


def test_tools_are_told_where_to_get_tokens() -> None:
    document = build_openapi(view_of(default, "admin"), server=HERE, issuer=HERE)
    flows = document["components"]["securitySchemes"]["oauth2"]["flows"]
    person, program = flows["authorizationCode"], flows["clientCredentials"]
    assert person["authorizationUrl"] == f"{HERE}/oauth/authorize"
    assert person["tokenUrl"] == person["refreshUrl"] == program["tokenUrl"] == f"{HERE}/oauth/token"
    assert person["scopes"] == program["scopes"]
    assert person["scopes"]["read"] == "See everything that you may see."
    assert person["scopes"]["posts:write"] == "Change posts."


def test_a_service_tells_its_own_address(runner: asyncio.Runner) -> None:
    with in_process(default, "sqlite:///:memory:", runner) as service:
        found = service.get("/openapi.json", headers={"host": "127.0.0.1:1234"}).json()
        flows = found["components"]["securitySchemes"]["oauth2"]["flows"]
        assert flows["clientCredentials"]["tokenUrl"] == "http://127.0.0.1:1234/oauth/token"
        stranger = service.get("/openapi.json", headers={"host": "evil.example"}).body
        assert b"evil" not in stranger


@every_role
def test_scopes_are_those_that_the_role_could_use(name: str, role: str) -> None:
    document = document_of(name, role)
    scopes = set(document["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]["scopes"])
    assert {"read", "write"} <= scopes <= MODELS[name].scopes
    needed = {
        scope
        for _, _, operation in operations(document)
        for each in operation.get("security", ())
        for scope in each.get("oauth2", ())
    }
    assert needed - {"read", "write"} == scopes - {"read", "write"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "role"), [each for each in ROLES if each[1] != "anonymous"])
def test_a_token_with_the_scopes_of_an_operation_can_use_it(name: str, role: str) -> None:
    """And without one that is about the path itself, it cannot. Others may be needed for some of the rows only."""
    model = MODELS[name]
    for path, method, operation in operations(document_of(name, role)):
        named = (each["oauth2"] for each in operation.get("security", ()) if "oauth2" in each)
        for needed in map(frozenset, filter(None, named)):
            own = {scope for scope in needed if ":" not in scope or scope.partition(":")[0] == path.split("/")[1]}
            assert own
            for scopes in (needed, *(needed - {scope} for scope in own)):
                found = narrowed(model, role, scopes)
                assert (method in found.get(path, {})) == (scopes == needed), (path, method, scopes)


@functools.cache
def narrowed(model: Model, role: str, scopes: frozenset[str]) -> Document:
    """The paths in the document of a role whose token has these scopes."""
    viewer = model.viewer(frozenset({role} - {"signed_in"}), SOMEONE, scopes)
    return cast(Document, written_out(build_openapi(model.view(model.signature(viewer))))["paths"])


# the routes


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def stage(runner: asyncio.Runner) -> Iterator[Stage]:
    with staged("sqlite:///:memory:", runner) as found:
        yield found


def test_every_route_of_the_authorization_server_is_there_with_its_methods() -> None:
    document = document_of("default", "admin")
    for path, methods in PATHS.items():
        assert {method.upper() for method in METHODS if method in document["paths"][path]} == {*methods, "OPTIONS"}


def check(document: Document, method: str, path: str, answer: Heard) -> int:
    """Is the answer as the document says?"""
    said = document["paths"][path][method.lower()]["responses"][str(answer.status)]
    said = find(document, said["$ref"]) if "$ref" in said else said
    for header, part in said.get("headers", {}).items():
        required = (find(document, part["$ref"]) if "$ref" in part else part)["required"]
        assert header.lower() in answer.headers or not required, header
    if answer.body and method != "HEAD":
        kind = answer.headers["content-type"].partition(";")[0]
        schema = said["content"][kind]["schema"]
        validator(document, schema).validate(answer.body.decode() if kind == "text/html" else answer.json())
    else:
        assert "content" not in said
    return answer.status


def test_the_document_of_a_service_is_valid(stage: Stage) -> None:
    document = stage.service.get("/openapi.json").json()
    schemathesis.openapi.from_dict(document).validate()


def test_documents_and_options_are_as_the_document_says(stage: Stage) -> None:
    document = document_of("default", "anonymous")
    for path, methods in PATHS.items():
        assert check(document, "OPTIONS", path, stage.service.send("OPTIONS", path)) == 204
        if "GET" in methods and path.startswith("/.well-known/"):
            for method in ("GET", "HEAD"):
                assert check(document, method, path, stage.service.send(method, path)) == 200


def test_pages_are_as_the_document_says(stage: Stage) -> None:
    document, browser, email = document_of("default", "anonymous"), Browser(stage.send), stage.add_account().email
    authorize, login = "/oauth/authorize", "/oauth/login"
    page = browser.authorize(stage.app)
    assert check(document, "GET", authorize, page) == 200
    assert check(document, "HEAD", authorize, stage.service.send("HEAD", f"{authorize}?{stage.app.asks()}")) == 200
    assert check(document, "GET", authorize, browser.authorize(stage.app, client_id="nobody")) == 400
    assert check(document, "GET", authorize, browser.authorize(stage.app, code_challenge_method="plain")) == 303
    assert check(document, "POST", login, browser.post(login, {})) == 403
    assert check(document, "POST", "/oauth/logout", browser.post("/oauth/logout", {})) == 403
    for _ in range(5):
        assert (
            check(document, "POST", login, browser.submit(page, "login", email="x@example.org", password="wrong"))
            == 400
        )
    assert check(document, "POST", login, browser.submit(page, "login", email="x@example.org", password="wrong")) == 429
    assert check(document, "POST", login, browser.submit(page, "login", email=email, password=PASSWORD)) == 303
    page = browser.authorize(stage.app)
    assert check(document, "POST", authorize, browser.submit(page, "authorize", decision="allow")) == 303
    assert check(document, "POST", "/oauth/logout", browser.submit(page, "logout")) == 303


def test_what_clients_send_and_get_is_as_the_document_says(stage: Stage) -> None:
    document, app = document_of("default", "anonymous"), stage.backend

    def ask(path: str, form: dict[str, str], fits: bool = True, secret: str = app.secret or "") -> Any:
        schema = document["paths"][path]["post"]["requestBody"]["content"][FORM]["schema"]
        sent = {**form, "client_id": app.id, "client_secret": secret}
        assert jsonschema_rs.is_valid(schema, sent) == fits
        answer = stage.send("POST", path, {"content-type": FORM}, urlencode(sent).encode())
        seen.add((path, check(document, "POST", path, answer)))
        return answer.json()

    seen: set[tuple[str, int]] = set()
    code = stage.browser.decide(app)["code"]
    exchange = {"grant_type": "authorization_code", "code": code, "redirect_uri": app.redirect}
    tokens = ask("/oauth/token", {**exchange, "code_verifier": VERIFIER})
    tokens = ask("/oauth/token", {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]})
    own = ask("/oauth/token", {"grant_type": "client_credentials", "scope": "read"})
    ask("/oauth/token", {"grant_type": "password"}, fits=False)
    ask("/oauth/token", {"grant_type": "client_credentials"}, secret="wrong")
    for token in (own["access_token"], tokens["access_token"], tokens["refresh_token"]):
        assert ask("/oauth/introspect", {"token": token})["active"] is True
        ask("/oauth/revoke", {"token": token, "token_type_hint": "access_token"})
        assert ask("/oauth/introspect", {"token": token}) == {"active": False}
    for path in ("/oauth/introspect", "/oauth/revoke"):
        ask(path, {}, fits=False)
        ask(path, {"token": "x"}, secret="wrong")
    assert seen == {
        (path, status) for path in PATHS if path[7:] in ("token", "introspect", "revoke") for status in (200, 400, 401)
    }


def test_a_service_without_an_address_says_so_as_the_document_says(runner: asyncio.Runner) -> None:
    document = document_of("default", "anonymous")
    with in_process(default, "sqlite:///:memory:", runner, data.ROWS) as service:
        for path, methods in PATHS.items():
            for method in methods:
                answer = service.send(method, path, headers={"host": "evil.example", "content-type": FORM})
                assert check(document, method, path, answer) == 503
