"""OpenID Connect: discovery, ID tokens, userinfo, and how a client wants its user to be asked.

As an attacker would: one kind of token in place of the other, scopes that reach further, another audience.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urljoin

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from diptych import Diptych
from diptych.api.reply import Reply
from diptych.config import Config
from diptych.demo.model import model
from diptych.serve.http.direct import CompleteRequest
from tests.contract.http.data import ANN
from tests.support.cases import cases
from tests.support.in_process import in_process
from tests.support.running import NewDatabase
from tests.system.oauth.flow import App, Browser, Heard, forms
from tests.system.oauth.people import model as people
from tests.system.oauth.stage import HERE, Stage, staged

ALL = "openid profile email"
CONFIGURATION, METADATA = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"


@pytest.fixture(scope="module")
def asked(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[tuple[Stage, dict[str, Any]]]:
    """A stage, and what a client got for all scopes of identity."""
    with staged(new_database(), runner) as stage:
        yield stage, stage.tokens(stage.backend, scope=f"{ALL} read", nonce="n-1")


def verified(stage: Stage, token: str) -> Any:
    """The claims of an ID token, verified by the published keys."""
    keys = KeySet.import_key_set(stage.service.get("/.well-known/jwks.json").json())
    return jwt.decode(token, keys, algorithms=["ES256"])


def userinfo(stage: Stage, token: str, method: str = "GET") -> Heard:
    return stage.send(method, "/oauth/userinfo", {"authorization": f"Bearer {token}"})


# discovery


def test_the_configuration_is_found_as_openid_and_as_oauth_say(light: Stage) -> None:
    found = light.service.get(CONFIGURATION).json()
    assert found == light.service.get(METADATA).json()
    assert found["issuer"] == HERE and found["userinfo_endpoint"] == f"{HERE}/oauth/userinfo"
    assert found["id_token_signing_alg_values_supported"] == ["ES256"]
    assert (found["subject_types_supported"], found["response_types_supported"]) == (["public"], ["code"])
    assert {*ALL.split(), "read", "posts:write"} <= set(found["scopes_supported"])
    assert found["request_uri_parameter_supported"] is False


def test_the_api_tells_who_issues_its_tokens(light: Stage) -> None:
    """RFC 9728."""
    found = light.service.get(RESOURCE).json()
    assert (found["resource"], found["authorization_servers"]) == (HERE, [HERE])
    assert "read" in found["scopes_supported"] and "openid" not in found["scopes_supported"]


def test_a_challenge_names_the_document(new_sqlite: NewDatabase, runner: asyncio.Runner) -> None:
    """In both styles, with a wrong token and without one."""

    async def ask(app: Diptych, path: str, headers: dict[bytes, bytes]) -> dict[bytes, bytes]:
        await app.start()
        reply = app.respond(CompleteRequest("GET", path.encode(), headers, None))
        return dict((reply if isinstance(reply, Reply) else await reply).headers)

    document = f'resource_metadata="{HERE}{RESOURCE}"'
    for base_url, host, told in ((HERE, b"x", True), ("", b"evil.example", False)):
        app = Diptych(model, config=Config(database=new_sqlite(), base_url=base_url))
        wrong = {b"host": host, b"authorization": b"Bearer x"}
        asked = [
            ("/orders", {b"host": host}, ""),
            ("/users", wrong, 'error="invalid_token", '),
            ("/graphql", wrong, ""),
        ]
        for path, headers, before in asked:
            found = runner.run(ask(app, path, headers))[b"www-authenticate"].decode()
            assert found.endswith(document) == told and "evil" not in found
            assert found.startswith(f"Bearer {before}" if told else "Bearer")
        runner.run(app.stop())
    app = Diptych(model, config=Config(database=new_sqlite(), base_url="https://Bücher.example/größe"))
    found = runner.run(ask(app, "/orders", {}))[b"www-authenticate"].decode("ascii")
    assert found == f'Bearer resource_metadata="https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe{RESOURCE}"'
    runner.run(app.stop())


# ID tokens


def test_an_id_token_says_who_signed_in_and_when(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, tokens = asked
    token = verified(stage, tokens["id_token"])
    assert token.header["typ"] == "JWT"
    claims, digest = token.claims, hashlib.sha256(tokens["access_token"].encode()).digest()
    assert (claims["iss"], claims["aud"], claims["sub"], claims["nonce"]) == (HERE, stage.backend.id, ANN, "n-1")
    assert claims["at_hash"] == base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")
    assert all(type(claims[name]) is int for name in ("iat", "exp", "auth_time"))
    assert claims["auth_time"] <= claims["iat"] <= time.time() < claims["exp"]
    assert (claims["name"], "email" in claims) == ("Ann", True), "as userinfo, for clients that do not ask it"
    assert "roles" not in claims and "scope" not in claims


def test_without_the_scope_there_is_none_and_without_a_nonce_none_is_told(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    assert "id_token" not in stage.tokens(scope="read", nonce="n-2")
    claims = verified(stage, stage.tokens(scope="openid")["id_token"]).claims
    assert set(claims) == {"iss", "sub", "aud", "exp", "iat", "auth_time", "amr", "at_hash"}


def test_no_token_is_taken_for_one_of_another_kind(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, tokens = asked
    assert not stage.holds(tokens["id_token"])
    assert userinfo(stage, tokens["id_token"]).status == 401
    assert stage.backend.introspect(tokens["id_token"]).json() == {"active": False}
    assert stage.holds(tokens["access_token"])
    assert stage.service.handler.oauth.oauth.hinted(tokens["access_token"]) is None
    assert stage.service.handler.oauth.oauth.hinted(tokens["id_token"]) == ANN


def test_scopes_of_identity_open_nothing_in_the_api(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    token = stage.tokens(scope=ALL)["access_token"]
    answer = stage.service.get("/users?first=1", token=token)
    assert (answer.status, answer.code) == (403, "FORBIDDEN")


def test_clients_that_want_access_offline_get_what_all_get(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    tokens = stage.tokens(scope="openid offline_access")
    assert stage.app.refresh(tokens["refresh_token"]).status == 200
    assert stage.service.get("/users?first=1", token=tokens["access_token"]).status == 403


def test_a_refresh_keeps_to_the_scopes_that_were_allowed(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    tokens = stage.tokens(scope="openid")
    assert stage.app.refresh(tokens["refresh_token"], scope="openid email").json()["error"] == "invalid_scope"
    again = stage.app.refresh(tokens["refresh_token"]).json()
    assert (again["scope"], userinfo(stage, again["access_token"]).json()) == ("openid", {"sub": ANN})


def test_a_client_gets_no_identity_for_itself_nor_beyond_its_limit(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    own = stage.backend.proven("/oauth/token", grant_type="client_credentials", scope="openid")
    assert (own.status, own.json()["error"]) == (400, "invalid_scope")
    wide = stage.add_app(confidential=True, scopes=("openid", "email", "read"))
    assert wide.proven("/oauth/token", grant_type="client_credentials").json()["scope"] == "read"
    narrow = stage.add_app(scopes=("read",))
    answer = stage.browser.authorize(narrow, scope="openid read")
    assert "error=invalid_scope" in answer.headers["location"]


# userinfo


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_userinfo_tells_what_the_scopes_allow(asked: tuple[Stage, dict[str, Any]], method: str) -> None:
    stage, tokens = asked
    answer = userinfo(stage, tokens["access_token"], method)
    found = answer.json()
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    assert found["sub"] == ANN == verified(stage, tokens["id_token"]).claims["sub"]
    assert found["email"].endswith("@example.org") and found["email_verified"] is False
    assert (found["name"], type(found["updated_at"])) == ("Ann", int)
    assert set(found) == {"sub", "name", "updated_at", "email", "email_verified"}
    only = stage.tokens(scope="openid email")["access_token"]
    assert set(userinfo(stage, only, method).json()) == {"sub", "email", "email_verified"}


def test_userinfo_tells_nothing_of_a_row_that_is_not_there(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    for user in ("not-an-id", "00000000-0000-7000-8000-00000000dead"):
        browser = stage.signed_in(stage.add_account(user=user))
        token = stage.tokens(browser=browser, scope="openid profile")["access_token"]
        assert userinfo(stage, token).json() == {"sub": user}


def test_claims_are_fields_with_their_names_that_the_user_may_read(
    runner: asyncio.Runner, new_sqlite: NewDatabase
) -> None:
    row = {"given_name": "Ann", "family_name": "Lee", "picture": "https://x.example/a.png", "birthdate": "1990"}
    with in_process(people, new_sqlite(), runner, base_url=HERE) as service:
        stage = Stage(service)
        id = "01900000-0000-7000-8000-000000000009"
        columns = ", ".join(row)
        service.execute(
            f"INSERT INTO {people.resources['Person'].table} (id, {columns}) VALUES ('{id}', {', '.join(map(repr, row.values()))})"
        )
        for roles, more in (((), {}), (("boss",), {"family_name": "Lee"})):
            browser = stage.signed_in(stage.add_account(*roles, user=id))
            found = userinfo(stage, stage.tokens(browser=browser, scope="openid profile")["access_token"]).json()
            del found["updated_at"]
            expected = {"sub": id, "given_name": "Ann", "preferred_username": "Ann", "picture": row["picture"]}
            assert found == {**expected, **more}


def test_userinfo_is_for_tokens_of_users_with_the_scope(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    wide, own = stage.service.token(ANN, "admin"), stage.service.token(ANN, "admin", scopes=["openid"])
    for token in (wide, own, stage.tokens(scope="read")["access_token"]):
        answer = userinfo(stage, token)
        assert (answer.status, answer.json()["error"]) == (403, "insufficient_scope")
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert stage.send("GET", "/oauth/userinfo", {}).status == 401
    assert 'error="invalid_token"' in userinfo(stage, "nonsense").headers["www-authenticate"]


def test_userinfo_ends_with_the_token(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    account = stage.add_account()
    token = stage.tokens(browser=stage.signed_in(account), scope="openid")["access_token"]
    assert userinfo(stage, token).status == 200
    stage.run(stage.accounts.disable(account.email))
    assert userinfo(stage, token).status == 401


# prompts


def silent(browser: Browser, app: App, **changed: Any) -> dict[str, str]:
    """What a client is led back with that wants no page to be shown."""
    answer = browser.authorize(app, prompt="none", **changed)
    assert answer.status == 303 and answer.headers["location"].startswith(app.redirect + "?")
    pairs = (pair.split("=") for pair in answer.headers["location"].partition("?")[2].split("&"))
    return {name: value for name, value in pairs}


def test_without_a_page_a_client_gets_what_was_allowed_before(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    app = stage.add_app()
    assert silent(Browser(stage.send), app)["error"] == "login_required"
    assert silent(stage.browser, app, scope="openid")["error"] == "consent_required"
    tokens = stage.tokens(app, scope="openid read")
    back = silent(stage.browser, app, scope="openid", nonce="n-3")
    assert set(back) == {"code", "state", "iss"}
    again = app.exchange(back["code"]).json()
    assert verified(stage, again["id_token"]).claims["nonce"] == "n-3"
    assert silent(stage.browser, app, scope="openid write")["error"] == "consent_required", "more than was allowed"
    assert silent(stage.browser, app, scope="openid", max_age="0")["error"] == "login_required"
    app.revoke(tokens["refresh_token"])
    app.revoke(again["refresh_token"])
    assert silent(stage.browser, app, scope="openid")["error"] == "consent_required", "it was taken back"


def test_no_app_on_the_device_gets_anything_without_a_page(asked: tuple[Stage, dict[str, Any]]) -> None:
    """Any program there can listen at the same address, and pretend to be the client."""
    stage, _ = asked
    app = stage.add_app("http://127.0.0.1/back")
    stage.tokens(app, scope="openid")
    assert silent(stage.browser, app, scope="openid")["error"] == "consent_required"


def test_without_a_page_another_user_is_not_taken_for_the_one_that_is_meant(
    asked: tuple[Stage, dict[str, Any]],
) -> None:
    stage, tokens = asked
    mine, other = tokens["id_token"], stage.signed_in(stage.add_account(user="someone-else"))
    stage.tokens(stage.backend, other, scope="openid")
    for browser, hint, found in ((stage.browser, mine, "code"), (other, mine, "error"), (other, "nonsense", "error")):
        assert found in silent(browser, stage.backend, scope="openid", id_token_hint=hint)


def test_a_client_can_want_its_user_to_sign_in_again(asked: tuple[Stage, dict[str, Any]]) -> None:
    stage, _ = asked
    account = stage.add_account()
    browser = stage.signed_in(account)
    for wish in ({"prompt": "login"}, {"max_age": "0"}, {"prompt": "login consent", "max_age": "0"}):
        page = browser.authorize(stage.app, scope="openid", **wish)
        assert "login" in forms(page) and "authorize" not in forms(page), wish
        page = browser.sign_in(stage.app, account.email, scope="openid", **wish)
        answer = browser.submit(page, "authorize", decision="allow")
        code = dict(pair.split("=") for pair in answer.headers["location"].partition("?")[2].split("&"))["code"]
        claims = verified(stage, stage.app.exchange(code).json()["id_token"]).claims
        assert time.time() - claims["auth_time"] < 10
    assert "authorize" in forms(browser.authorize(stage.app, scope="openid", max_age="3600"))
    for prompt in ("consent", "select_account", "consent select_account"):
        assert "authorize" in forms(browser.authorize(stage.app, scope="openid", prompt=prompt))


def test_consent_on_an_old_page_is_not_taken_for_a_new_sign_in(asked: tuple[Stage, dict[str, Any]]) -> None:
    """Someone sends the form of a consent page with another request in it."""
    stage, _ = asked
    page = stage.browser.authorize(stage.app, scope="openid")
    fields = forms(page)["authorize"]
    fields["request"] = stage.app.asks(scope="openid", prompt="login")
    answer = stage.browser.post("/oauth/authorize", {**fields, "decision": "allow"})
    assert (answer.status, "login" in forms(answer)) == (200, True)


def test_a_client_may_send_its_user_by_a_form(light: Stage) -> None:
    """Which comes from another site, so without cookies: it leads on to the page, and decides nothing."""
    asked = dict(parse_qsl(light.app.asks(scope="openid", nonce="n-1", state="a&b=é")))
    answer = light.app.form("/oauth/authorize", {**asked, "decision": "allow"}, origin="https://app.example")
    assert (answer.status, answer.headers["location"].partition("?")[0]) == (303, "authorize")
    page = light.browser.get(urljoin("/oauth/authorize", answer.headers["location"]))
    back = light.browser.submit(page, "authorize", decision="allow").headers["location"]
    assert dict(parse_qsl(back.partition("?")[2]))["state"] == "a&b=é"
    object = light.app.form("/oauth/authorize", {**asked, "request": "a.b.c"}).headers["location"]
    assert "error=request_not_supported" in light.browser.get(f"/oauth/{object}").headers["location"]


def test_the_address_that_a_client_hints_at_is_filled_in(light: Stage) -> None:
    page = Browser(light.send).authorize(light.app, scope="openid", login_hint='a"b@example.org')
    assert b'value="a&quot;b@example.org"' in page.body


@cases(
    ("changed", "error"),
    [
        ({"prompt": "none login"}, "invalid_request"),
        ({"prompt": "create"}, "invalid_request"),
        ({"max_age": "-1"}, "invalid_request"),
        ({"max_age": "1e3"}, "invalid_request"),
        ({"nonce": "n" * 513}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"request": "eyJ"}, "request_not_supported"),
        ({"request_uri": "https://evil.example/"}, "request_uri_not_supported"),
        ({"registration": "{}"}, "registration_not_supported"),
        ({"response_type": "id_token"}, "unsupported_response_type"),
        ({"response_type": "code id_token"}, "unsupported_response_type"),
        ({"resource": "https://other.example.org"}, "invalid_target"),
        ({"resource": f"{HERE}.evil.example"}, "invalid_target"),
    ],
)
def test_what_is_not_supported_is_told_to_the_client(light: Stage, changed: dict[str, str], error: str) -> None:
    answer = light.browser.authorize(light.app, scope="openid", **changed)
    assert answer.status == 303
    assert answer.headers["location"].startswith(f"{light.app.redirect}?error={error}&")
    assert "state=a+state" in answer.headers["location"]


# resource indicators


def test_a_token_is_for_this_service_and_no_other_can_be_named(light: Stage) -> None:
    """RFC 8707."""
    back = light.browser.decide(light.app, resource=HERE)
    assert light.app.exchange(back["code"], resource="https://other.example.org").json()["error"] == "invalid_target"
    tokens = light.app.exchange(back["code"], resource=f"{HERE}/").json()
    told = light.backend.introspect(tokens["access_token"]).json()
    assert (told["iss"], told["aud"]) == (HERE, [HERE, "diptych"])
    own = light.backend.proven("/oauth/token", grant_type="client_credentials", resource="https://evil.example")
    assert (own.status, own.json()["error"]) == (400, "invalid_target")
    assert light.app.refresh(tokens["refresh_token"], resource="urn:x").json()["error"] == "invalid_target"
    assert light.app.refresh(tokens["refresh_token"], resource=HERE).status == 200


def test_a_service_whose_address_is_not_in_ascii_is_named_either_way(runner: asyncio.Runner) -> None:
    address = "https://Bücher.example/größe"
    with staged("sqlite:///:memory:", runner, base_url=address) as stage:
        assert stage.service.get(RESOURCE).json()["resource"] == address
        for name in (address, "https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe/"):
            own = stage.backend.proven("/oauth/token", grant_type="client_credentials", resource=name)
            assert own.status == 200, own.body
        other = stage.backend.proven("/oauth/token", grant_type="client_credentials", resource="https://x.example")
        assert (other.status, other.json()["error"]) == (400, "invalid_target")
        led = stage.browser.authorize(stage.app, resource="https://x.example").headers["location"]
        assert "error=invalid_target" in led
