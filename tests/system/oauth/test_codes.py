"""Authorization codes: one use, by one client, to one address, with one verifier, for a minute."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.identity.oauth import grant_store as grant_store
from diptych.identity.records import unix_time
from tests.support.cases import cases
from tests.system.oauth.flow import VERIFIER, Heard, challenge_of
from tests.system.oauth.stage import HERE, Stage


def refused(answer: Heard, error: str, status: int = 400) -> None:
    """An error of RFC 6749, §5.2, and nothing that could be kept or used."""
    assert (answer.status, answer.json()["error"]) == (status, error), answer.body
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.headers["cache-control"] == "no-store"


def test_a_code_becomes_tokens(stage: Stage) -> None:
    back = stage.browser.decide(stage.app, scope="read")
    assert set(back) == {"code", "state", "iss"}
    assert back["state"] == "a state"
    answer = stage.app.exchange(back["code"])
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    found = answer.json()
    assert set(found) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (found["token_type"], found["expires_in"], found["scope"]) == ("Bearer", 900, "read")
    assert stage.holds(found["access_token"])


def test_mix_up_is_prevented_by_the_name_of_the_issuer(stage: Stage) -> None:
    """RFC 9207: with a code and with an error."""
    assert stage.browser.decide(stage.app)["iss"] == HERE
    denied = stage.browser.decide(stage.app, "deny")
    assert (denied["error"], denied["iss"], denied["state"]) == ("access_denied", HERE, "a state")
    led_back = stage.browser.authorize(stage.app, scope="everything")
    assert led_back.status == 303
    assert "error=invalid_scope" in led_back.headers["location"]
    assert "iss=https%3A%2F%2Fapi.example.org" in led_back.headers["location"]


# PKCE


@cases(
    "changed",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge": None},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge": VERIFIER, "code_challenge_method": "plain"},
        {"code_challenge_method": "s256"},
        {"code_challenge_method": "S512"},
        {"code_challenge": "short"},
        {"code_challenge": "ü" * 43},
    ],
    ids=str,
)
def test_pkce_downgrade_by_the_challenge(stage: Stage, changed: dict[str, Any]) -> None:
    """No challenge, or one that is no SHA-256, is refused before anyone is asked, for clients of both kinds."""
    for app in (stage.app, stage.backend):
        answer = stage.browser.authorize(app, **changed)
        assert b"<form" not in answer.body
        assert answer.status == 400 or "error=invalid_request" in answer.headers["location"]


@pytest.mark.parametrize(
    ("verifier", "error"),
    [
        (None, "invalid_request"),
        (challenge_of(VERIFIER), "invalid_grant"),
        (VERIFIER + "0", "invalid_grant"),
        (VERIFIER.upper(), "invalid_grant"),
        ("short", "invalid_request"),
        (VERIFIER + "\n", "invalid_request"),
        ("0" * 129, "invalid_request"),
    ],
)
def test_pkce_downgrade_by_the_verifier(stage: Stage, verifier: str | None, error: str) -> None:
    for app in (stage.app, stage.backend):
        code = stage.browser.decide(app)["code"]
        refused(app.exchange(code, code_verifier=verifier), error)


def test_a_challenge_at_the_token_endpoint_changes_nothing(stage: Stage) -> None:
    other = "another-verifier-of-43-characters-or-more-01234"
    code = stage.browser.decide(stage.app)["code"]
    given = {"code_challenge": challenge_of(other), "code_challenge_method": "S256"}
    refused(stage.app.exchange(code, code_verifier=other, **given), "invalid_grant")


# whose code it is


def test_code_reuse_ends_the_tokens_of_the_first_use(stage: Stage) -> None:
    code = stage.browser.decide(stage.app)["code"]
    first = stage.app.exchange(code).json()
    other = stage.tokens()
    assert stage.holds(first["access_token"])
    refused(stage.app.exchange(code), "invalid_grant")
    assert not stage.holds(first["access_token"])
    refused(stage.app.refresh(first["refresh_token"]), "invalid_grant")
    assert stage.holds(other["access_token"])


def test_code_reuse_after_a_refresh_ends_the_new_tokens_too(stage: Stage) -> None:
    code = stage.browser.decide(stage.app)["code"]
    second = stage.app.refresh(stage.app.exchange(code).json()["refresh_token"]).json()
    refused(stage.app.exchange(code), "invalid_grant")
    assert not stage.holds(second["access_token"])
    refused(stage.app.refresh(second["refresh_token"]), "invalid_grant")


def test_code_of_another_client(stage: Stage) -> None:
    code = stage.browser.decide(stage.app)["code"]
    refused(stage.add_app().exchange(code), "invalid_grant")
    refused(stage.backend.exchange(code), "invalid_grant")
    assert stage.app.exchange(code).status == 200, "those who may not have it have not used it up"


@pytest.mark.parametrize("redirect", [None, "https://app.example/back/", "https://app.example/other"])
def test_code_with_another_redirect_uri(stage: Stage, redirect: str | None) -> None:
    code = stage.browser.decide(stage.app)["code"]
    refused(stage.app.exchange(code, redirect_uri=redirect), "invalid_grant")


def test_a_loopback_code_goes_to_the_port_that_was_asked_for(stage: Stage) -> None:
    app = stage.add_app("http://127.0.0.1/back")
    port = "http://127.0.0.1:52001/back"
    code = stage.browser.decide(app, redirect_uri=port)["code"]
    refused(app.exchange(code, redirect_uri="http://127.0.0.1:52002/back"), "invalid_grant")
    assert app.exchange(code, redirect_uri=port).status == 200


def test_an_expired_code(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    code = stage.browser.decide(stage.app)["code"]
    monkeypatch.setattr(grant_store, "unix_time", lambda: unix_time() + grant_store.CODE_LIFETIME)
    refused(stage.app.exchange(code), "invalid_grant")


@pytest.mark.parametrize("change", ["disable", "remove", "set_roles", "set_password"])
def test_a_code_ends_with_what_it_was_given_by(stage: Stage, change: str) -> None:
    account = stage.add_account()
    code = stage.signed_in(account).decide(stage.app)["code"]
    more = {"set_roles": (("staff",),), "set_password": ("another horse",)}.get(change, ())
    stage.run(getattr(stage.accounts, change)(account.email, *more))
    refused(stage.app.exchange(code), "invalid_grant")


def test_a_code_that_nobody_gave(stage: Stage) -> None:
    for code in ("x", "0" * 48, "' OR 1=1 --", "../../etc/passwd", "a b"):
        refused(stage.app.exchange(code), "invalid_grant")
    refused(stage.app.exchange(None), "invalid_request")


def test_scopes_are_those_that_were_allowed(stage: Stage) -> None:
    narrow = stage.add_app(scopes=("users:read",))
    assert stage.tokens(narrow)["scope"] == "users:read"
    assert "error=invalid_scope" in stage.browser.authorize(narrow, scope="read").headers["location"]
    assert "error=invalid_scope" in stage.browser.authorize(stage.app, scope="posts:destroy").headers["location"]
    code = stage.browser.decide(stage.app, scope="users:read")["code"]
    assert stage.app.exchange(code, scope="read write").json()["scope"] == "users:read"
