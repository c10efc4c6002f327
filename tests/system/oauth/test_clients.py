"""Clients at the endpoints for clients: who they are, in one way; what they may end, and ask."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from tests.contract.http.data import ANN
from tests.support.cases import cases
from tests.support.in_process import Answer, Service, in_process
from tests.support.many_resources import many
from tests.system.oauth.flow import FORM, Heard, basic, encoded
from tests.system.oauth.stage import HERE, Stage
from tests.system.oauth.test_codes import refused

ENDPOINTS = ("/oauth/token", "/oauth/revoke", "/oauth/introspect")
OWN = {"grant_type": "client_credentials"}


def unproven(answer: Heard) -> None:
    refused(answer, "invalid_client", 401)
    assert answer.headers["www-authenticate"].startswith("Basic ")


# client credentials


def test_a_client_gets_a_token_for_itself_by_header_and_by_form(stage: Stage) -> None:
    secret = {"client_id": stage.backend.id, "client_secret": stage.backend.secret}
    by_header, by_form = (
        stage.backend.proven("/oauth/token", **OWN),
        stage.backend.form("/oauth/token", {**OWN, **secret}),
    )
    for answer in (by_header, by_form):
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        assert set(answer.json()) == {"access_token", "token_type", "expires_in", "scope"}, "and none to refresh"
        token = answer.json()["access_token"]
        told = stage.backend.introspect(token).json()
        assert (told["client_id"], told["roles"], told["sub"]) == (stage.backend.id, ["staff"], stage.backend.id)
        assert stage.service.handler.context.tokens.verify(token).subject is None, "it is nobody of the model"
        assert stage.holds(token)


def test_a_client_gets_no_scope_that_it_has_not(stage: Stage) -> None:
    narrow = stage.add_app(confidential=True, scopes=("users:read",))
    assert narrow.proven("/oauth/token", **OWN).json()["scope"] == "users:read"
    refused(narrow.proven("/oauth/token", **OWN, scope="users:read write"), "invalid_scope")
    refused(stage.backend.proven("/oauth/token", **OWN, scope="everything"), "invalid_scope")


def test_a_token_with_all_scopes_of_a_large_model_is_valid(runner: asyncio.Runner) -> None:
    """Clients request what the metadata list; a token has 8 KiB at most."""
    with in_process(many(250), "sqlite:///:memory:", runner, base_url=HERE) as service:
        stage = Stage(service)
        scopes = service.get("/.well-known/oauth-protected-resource").json()["scopes_supported"]
        assert len(" ".join(scopes)) > 5_000
        given = stage.backend.proven("/oauth/token", **OWN, scope=" ".join(scopes)).json()
        assert given["scope"].split() == scopes
        told = stage.backend.introspect(given["access_token"]).json()
        assert (told["active"], told["scope"]) == (True, "read write")
        path = next(scope for scope in scopes if ":" in scope).partition(":")[0]
        assert service.get(f"/{path}?first=1", token=given["access_token"]).status == 200
        single = " ".join(scope for scope in scopes if ":" in scope)
        refused(stage.backend.proven("/oauth/token", **OWN, scope=single), "invalid_scope")
        mixed = stage.backend.proven("/oauth/token", **OWN, scope=f"{path}:write {path}:read read").json()
        assert stage.backend.introspect(mixed["access_token"]).json()["scope"] == f"read {path}:write"


def test_a_public_client_gets_no_token_for_itself(stage: Stage) -> None:
    unproven(stage.app.proven("/oauth/token", **OWN))
    unproven(stage.app.proven("/oauth/token", **OWN, client_secret="guess"))
    unproven(stage.app.form("/oauth/token", OWN, authorization=basic(stage.app.id, "guess")))


def test_a_removed_client_has_no_token(stage: Stage) -> None:
    app = stage.add_app(confidential=True)
    token = app.proven("/oauth/token", **OWN).json()["access_token"]
    (client,) = [each for each in stage.run(stage.clients.all()) if each.id == app.id]
    assert stage.holds(token)
    stage.run(stage.clients.remove(client.name))
    assert not stage.holds(token)
    unproven(app.proven("/oauth/token", **OWN))


@pytest.mark.parametrize(
    "kind", ["password", "implicit", "urn:ietf:params:oauth:grant-type:jwt-bearer", "ü", '"', None]
)
def test_there_are_no_other_grants(stage: Stage, kind: str | None) -> None:
    answer = stage.backend.proven("/oauth/token", grant_type=kind, username="ann@example.org", password="correct horse")
    refused(answer, "unsupported_grant_type" if kind is not None and kind[0] in "piu" else "invalid_request")


# authentication


def _basic(raw: bytes) -> str:
    return "Basic " + base64.b64encode(raw).decode()


BAD_HEADERS: dict[str, str] = {
    "no credentials": "Basic",
    "empty credentials": "Basic ",
    "no base64": "Basic !!!",
    "base64 of another alphabet": "Basic __--",
    "base64 without its end": "Basic YTpi" + "Y",
    "no UTF-8": _basic(b"\xff\xfe:x"),
    "no ASCII": "Basic é",
    "no colon": _basic(b"abc"),
    "nothing but a colon": _basic(b":"),
    "a NUL": _basic(b"a\0b:c"),
    "an escaped NUL": _basic(b"a%00b:c"),
    "a bad escape": _basic(b"%zz:%"),
    "no such client": _basic(b"nobody:secret"),
    "another scheme": "Digest abc",
    "a bearer token": "Bearer abc",
    "nothing": "",
    "spaces": "   ",
    "two of them": "Basic YTpi, Basic YTpi",
    "a very long one": "Basic " + "A" * 50_000,
}


@cases("name", BAD_HEADERS)
@cases("path", ENDPOINTS)
def test_a_malformed_basic_header(stage: Stage, path: str, name: str) -> None:
    unproven(stage.backend.form(path, {**OWN, "token": "x"}, authorization=BAD_HEADERS[name]))
    public = {"client_id": stage.app.id, "grant_type": "refresh_token", "refresh_token": "x", "token": "x"}
    unproven(stage.app.form(path, public, authorization=BAD_HEADERS[name]))


def test_a_secret_that_is_wrong(stage: Stage) -> None:
    backend, right = stage.backend, stage.backend.secret or ""
    other = stage.add_app(confidential=True).secret or ""
    for secret in ("", "x", right[:-1], right + "x", right.swapcase(), other):
        for path in ENDPOINTS:
            form = {**OWN, "token": "x"}
            unproven(backend.form(path, form, authorization=basic(backend.id, secret)))
            unproven(backend.form(path, {**form, "client_id": backend.id, "client_secret": secret}))
    unproven(backend.form("/oauth/token", OWN, authorization=basic(backend.id, right + "\0")))


def test_a_client_proves_itself_in_one_way(stage: Stage) -> None:
    """RFC 6749, §2.3: no more than one method in a request."""
    backend = stage.backend
    header = basic(backend.id, backend.secret or "")
    assert backend.form("/oauth/token", {**OWN, "client_id": backend.id}, authorization=header).status == 200
    unproven(backend.form("/oauth/token", {**OWN, "client_id": stage.app.id}, authorization=header))
    unproven(backend.form("/oauth/token", {**OWN, "client_secret": backend.secret}, authorization=header))
    both = {**OWN, "client_id": backend.id, "client_secret": backend.secret}
    unproven(backend.form("/oauth/token", both, authorization=header))


def test_a_client_secret_in_the_query_is_refused(stage: Stage) -> None:
    query = encoded({"client_id": stage.backend.id, "client_secret": stage.backend.secret})
    for path in ENDPOINTS:
        unproven(stage.backend.form(f"{path}?{query}", {**OWN, "token": "x"}))
        whole = stage.send("POST", f"{path}?{query}&{encoded(OWN)}", {"content-type": FORM})
        assert whole.status in (400, 401)


def test_nothing_is_had_by_get(stage: Stage) -> None:
    query = encoded({**OWN, "client_id": stage.backend.id, "client_secret": stage.backend.secret})
    for path in ENDPOINTS:
        answer = stage.send("GET", f"{path}?{query}", {})
        assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")


# what is sent


@cases("path", ENDPOINTS)
@cases("name", ["grant_type", "client_id", "client_secret", "token", "unheard_of"])
def test_duplicate_parameters(stage: Stage, path: str, name: str) -> None:
    form = {
        **OWN,
        "client_id": stage.backend.id,
        "client_secret": stage.backend.secret,
        "token": "x",
        "unheard_of": "x",
    }
    refused(stage.backend.form(path, {**form, name: [form[name], form[name]]}), "invalid_request")


@cases("path", ENDPOINTS)
@cases("kind", [None, "", "application/json", "text/plain", "multipart/form-data; boundary=x", "x" * 5000])
def test_wrong_content_types(stage: Stage, path: str, kind: str | None) -> None:
    form = {**OWN, "client_id": stage.backend.id, "client_secret": stage.backend.secret, "token": "x"}
    headers = {} if kind is None else {"content-type": kind}
    refused(stage.send("POST", path, headers, encoded(form).encode()), "invalid_request")
    right = {"content-type": "Application/X-WWW-Form-Urlencoded ; charset=UTF-8"}
    assert stage.send("POST", path, right, encoded(form).encode()).status == 200


@pytest.mark.parametrize("path", ENDPOINTS)
def test_huge_forms(stage: Stage, path: str) -> None:
    for form in ({"token": "x" * 70_000}, {f"name{number}": "x" for number in range(60)}):
        answer = stage.backend.form(
            path, {**OWN, **form}, authorization=basic(stage.backend.id, stage.backend.secret or "")
        )
        refused(answer, "invalid_request")


# introspection (RFC 7662)


def test_a_service_asks_about_a_token(stage: Stage) -> None:
    found = stage.tokens(scope="read")
    access = stage.backend.introspect(found["access_token"])
    assert access.headers["cache-control"] == "no-store"
    told = access.json()
    assert (told["active"], told["client_id"], told["scope"]) == (True, stage.app.id, "read")
    assert (told["sub"], told["iss"], told["token_type"]) == (ANN, HERE, "Bearer")
    assert told["exp"] - told["iat"] == pytest.approx(900, abs=1)


def test_a_client_asks_about_refresh_tokens_of_its_own_alone(stage: Stage) -> None:
    found = stage.tokens(stage.backend, scope="read")
    told = stage.backend.introspect(found["refresh_token"], token_type_hint="access_token").json()
    assert (told["active"], told["client_id"], told["scope"]) == (True, stage.backend.id, "read")
    other = stage.add_app(confidential=True)
    assert other.introspect(found["refresh_token"]).json() == {"active": False}
    assert stage.backend.introspect(stage.tokens()["refresh_token"]).json() == {"active": False}
    assert other.introspect(found["access_token"]).json()["active"] is True


def test_a_client_ends_tokens_of_its_own_alone(stage: Stage) -> None:
    found, other = stage.tokens(), stage.add_app(confidential=True)
    for kind in ("refresh_token", "access_token"):
        refused(other.revoke(found[kind]), "invalid_grant")
    assert stage.holds(found["access_token"])
    assert stage.app.refresh(found["refresh_token"]).status == 200


@pytest.mark.parametrize("token", ["x", "a.b.c", "0" * 43, "dk_0123456789abcdef_" + "0" * 43])
def test_of_what_is_no_token_nothing_is_told(stage: Stage, token: str) -> None:
    answer = stage.backend.introspect(token)
    assert (answer.status, answer.json()) == (200, {"active": False})


def test_asking_about_a_used_refresh_token_ends_nothing(stage: Stage) -> None:
    first = stage.tokens(stage.backend)
    second = stage.backend.refresh(first["refresh_token"]).json()
    assert stage.backend.introspect(first["refresh_token"]).json() == {"active": False}
    assert stage.holds(second["access_token"])


def test_introspection_by_a_public_client(stage: Stage) -> None:
    token = stage.tokens()["access_token"]
    unproven(stage.app.introspect(token))
    unproven(stage.app.form("/oauth/introspect", {"token": token}))
    unproven(stage.app.form("/oauth/introspect", {"token": token}, authorization=f"Bearer {token}"))


# revocation (RFC 7009)


def test_an_access_token_is_revoked_by_itself(stage: Stage) -> None:
    first = stage.tokens()
    second = stage.app.refresh(first["refresh_token"]).json()
    assert stage.holds(first["access_token"])
    assert stage.app.revoke(first["access_token"]).status == 200
    assert not stage.holds(first["access_token"])
    assert stage.backend.introspect(first["access_token"]).json() == {"active": False}
    assert stage.holds(second["access_token"])
    assert stage.app.refresh(second["refresh_token"]).status == 200


def test_a_refresh_token_is_revoked_with_its_grant(stage: Stage) -> None:
    found = stage.tokens(stage.backend)
    assert stage.backend.revoke(found["refresh_token"], token_type_hint="access_token").status == 200
    assert not stage.holds(found["access_token"])
    assert stage.backend.introspect(found["refresh_token"]).json() == {"active": False}
    refused(stage.backend.refresh(found["refresh_token"]), "invalid_grant")


def test_a_token_of_a_client_by_itself_is_revoked(stage: Stage) -> None:
    one, other = (stage.backend.proven("/oauth/token", **OWN).json()["access_token"] for _ in range(2))
    assert stage.backend.revoke(one).status == 200
    assert (stage.holds(one), stage.holds(other)) == (False, True)


def test_revocation_of_another_clients_token(stage: Stage) -> None:
    found = stage.tokens()
    for other in (stage.add_app(), stage.backend):
        for token in (found["access_token"], found["refresh_token"]):
            refused(other.revoke(token), "invalid_grant")
    unproven(stage.backend.form("/oauth/revoke", {"token": found["access_token"]}))
    unproven(stage.backend.form("/oauth/revoke", {"token": found["access_token"], "client_id": stage.backend.id}))
    assert stage.holds(found["access_token"])
    used = stage.app.refresh(found["refresh_token"]).json()
    refused(stage.backend.revoke(found["refresh_token"]), "invalid_grant")
    assert stage.holds(used["access_token"])


@pytest.mark.parametrize("changed", [{}, {"token_type_hint": "refresh_token"}, {"token_type_hint": "pony"}], ids=str)
def test_what_is_no_token_is_revoked_already(stage: Stage, changed: dict[str, Any]) -> None:
    """RFC 7009, §2.2: the client's purpose is reached."""
    for token in ("x", "a.b.c"):
        assert stage.app.revoke(token, **changed).status == 200
    refused(stage.app.proven("/oauth/revoke", **changed), "invalid_request")
    refused(stage.backend.proven("/oauth/introspect", **changed), "invalid_request")


# what anyone may know


def test_metadata(stage: Stage) -> None:
    """RFC 8414: everything that it names is there."""
    found = stage.send("GET", "/.well-known/oauth-authorization-server", {}).json()
    assert found["issuer"] == HERE
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["response_types_supported"] == ["code"]
    assert found["authorization_response_iss_parameter_supported"] is True
    for name in (
        "authorization_endpoint",
        "token_endpoint",
        "revocation_endpoint",
        "introspection_endpoint",
        "jwks_uri",
    ):
        assert found[name].startswith(HERE)
        answer: Answer = stage.send("OPTIONS", found[name].removeprefix(HERE), {})
        assert answer.status == 204, name


@cases(
    "host",
    [
        "evil.example",
        "127.0.0.1@evil.example",
        "127.0.0.1:80@evil.example",
        "localhost.evil.example",
        "127.0.0.1:80/x",
        "127.0.0.1:x",
        "[::1]evil",
        "[::1]:80@evil.example",
        "",
        "127.0.0.1#",
        "127.0.0.1:80:80",
        "127.0.0.1\\evil",
    ],
)
def test_a_name_that_is_not_of_this_machine_is_not_believed(local: Service, host: str) -> None:
    """Without `base_url`: else whoever sends a Host could poison what others are told of us."""
    for path in ("/.well-known/oauth-authorization-server", "/oauth/authorize", "/.well-known/jwks.json"):
        answer = local.get(path, headers={"host": host})
        assert answer.status == 503
        assert b"evil" not in answer.body


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "localhost:65535", "[::1]", "[::1]:8000"])
def test_names_of_this_machine_are_believed(local: Service, host: str) -> None:
    answer = local.get("/.well-known/oauth-authorization-server", headers={"host": host})
    assert answer.json()["issuer"] == f"http://{host}"
