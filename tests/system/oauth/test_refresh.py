"""Refresh tokens: each is used once; one that comes again ends all that came of its grant."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.identity.oauth import grant_store as grant_store
from diptych.identity.records import ACCOUNTS, CLIENTS, CODES, REFRESHES, REVOCATIONS, hashed, unix_time
from tests.system.oauth.flow import forms
from tests.system.oauth.stage import Stage
from tests.system.oauth.test_codes import refused


def test_a_refresh_token_gives_another(stage: Stage) -> None:
    for app in (stage.app, stage.backend):
        first = stage.tokens(app, scope="read")
        answer = app.refresh(first["refresh_token"])
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        second = answer.json()
        assert second["scope"] == "read"
        assert second["refresh_token"] != first["refresh_token"]
        assert stage.holds(first["access_token"]) and stage.holds(second["access_token"])
        assert app.refresh(second["refresh_token"]).status == 200


def test_a_used_refresh_token_ends_the_family(stage: Stage) -> None:
    first, other = stage.tokens(), stage.tokens()
    second = stage.app.refresh(first["refresh_token"]).json()
    third = stage.app.refresh(second["refresh_token"]).json()
    refused(stage.app.refresh(first["refresh_token"]), "invalid_grant")
    for token in (first, second, third):
        assert not stage.holds(token["access_token"])
        refused(stage.app.refresh(token["refresh_token"]), "invalid_grant")
    assert stage.holds(other["access_token"])
    assert stage.app.refresh(other["refresh_token"]).status == 200


def test_the_end_of_a_family_is_written_once(stage: Stage) -> None:
    """However often a stolen token or code comes again: else whoever has one could fill the store."""
    store, code = stage.service.app.store, stage.browser.decide(stage.app)["code"]
    token = stage.app.exchange(code).json()["refresh_token"]
    stage.app.refresh(token)
    before = len(stage.run(REVOCATIONS.all(store, "id")))
    for _ in range(5):
        refused(stage.app.refresh(token), "invalid_grant")
        refused(stage.app.exchange(code), "invalid_grant")
    assert len(stage.run(REVOCATIONS.all(store, "id"))) == before + 1


def test_refresh_without_client_authentication(stage: Stage) -> None:
    """A client with a secret proves it, however it got the token."""
    token = stage.tokens(stage.backend)["refresh_token"]
    form = {"grant_type": "refresh_token", "refresh_token": token}
    refused(stage.backend.form("/oauth/token", form), "invalid_client", 401)
    refused(stage.backend.form("/oauth/token", {**form, "client_id": stage.backend.id}), "invalid_client", 401)
    wrong = {**form, "client_id": stage.backend.id, "client_secret": "wrong"}
    refused(stage.backend.form("/oauth/token", wrong), "invalid_client", 401)
    assert stage.backend.refresh(token).status == 200, "it was not used up"


def test_refresh_of_another_client(stage: Stage) -> None:
    token = stage.tokens()["refresh_token"]
    for other in (stage.add_app(), stage.backend):
        refused(other.refresh(token), "invalid_grant")
    assert stage.app.refresh(token).status == 200, "it was not used up"


@pytest.mark.parametrize("change", ["disable", "remove"])
def test_refresh_for_a_disabled_or_removed_account(stage: Stage, change: str) -> None:
    account = stage.add_account()
    tokens = stage.tokens(browser=stage.signed_in(account))
    stage.run(getattr(stage.accounts, change)(account.email))
    refused(stage.app.refresh(tokens["refresh_token"]), "invalid_grant")
    assert not stage.holds(tokens["access_token"])


def test_an_account_that_someone_disabled_in_the_database(stage: Stage) -> None:
    """Where nothing was revoked with it, nothing new is given even so."""
    account, store = stage.add_account(), stage.service.app.store
    browser = stage.signed_in(account)
    tokens, code = stage.tokens(browser=browser), browser.decide(stage.app)["code"]
    stage.run(store.write(lambda: ACCOUNTS.change(store.dialect, {"id": account.id}, disabled_at=unix_time())))
    refused(stage.app.refresh(tokens["refresh_token"]), "invalid_grant")
    refused(stage.app.exchange(code), "invalid_grant")
    assert list(forms(browser.authorize(stage.app))) == ["login"]


def test_an_account_that_is_enabled_again_has_none_of_its_tokens_back(stage: Stage) -> None:
    account = stage.add_account()
    tokens = stage.tokens(browser=stage.signed_in(account))
    stage.run(stage.accounts.disable(account.email))
    stage.run(stage.accounts.enable(account.email))
    refused(stage.app.refresh(tokens["refresh_token"]), "invalid_grant")
    assert not stage.holds(tokens["access_token"])


def test_refresh_for_a_removed_client(stage: Stage) -> None:
    app = stage.add_app()
    tokens = stage.tokens(app)
    (client,) = [each for each in stage.run(stage.clients.all()) if each.id == app.id]
    stage.run(stage.clients.remove(client.name))
    refused(app.refresh(tokens["refresh_token"]), "invalid_client", 401)
    assert not stage.holds(tokens["access_token"])


def test_roles_changed_end_tokens_and_grants(stage: Stage) -> None:
    account = stage.add_account("staff")
    tokens = stage.tokens(browser=stage.signed_in(account))
    stage.run(stage.accounts.set_roles(account.email, ["admin"]))
    assert not stage.holds(tokens["access_token"])
    refused(stage.app.refresh(tokens["refresh_token"]), "invalid_grant")


@pytest.mark.parametrize("wanted", ["read write", "write", "users:read posts:read", "everything"])
def test_scope_widening_at_refresh(stage: Stage, wanted: str) -> None:
    token = stage.tokens(scope="users:read")["refresh_token"]
    refused(stage.app.refresh(token, scope=wanted), "invalid_scope")
    assert stage.app.refresh(token).status == 200, "it was not used up"


def test_a_scope_that_was_narrowed_at_refresh_can_be_had_again_but_no_more(stage: Stage) -> None:
    first = stage.tokens(scope="read write")
    second = stage.app.refresh(first["refresh_token"], scope="read").json()
    assert second["scope"] == "read"
    third = stage.app.refresh(second["refresh_token"], scope="read write").json()
    assert third["scope"] == "read write", "RFC 6749, §6: what the person allowed is the measure"


def test_an_expired_refresh_token(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    token = stage.tokens()["refresh_token"]
    monkeypatch.setattr(grant_store, "unix_time", lambda: unix_time() + grant_store.REFRESH_LIFETIME)
    refused(stage.app.refresh(token), "invalid_grant")


def test_no_refresh_outlives_the_grant(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    token = stage.tokens()["refresh_token"]
    late = unix_time() + grant_store.GRANT_LIFETIME - 60
    store = stage.service.app.store
    same = {"hash": hashed(token)}
    stage.run(store.write(lambda: REFRESHES.change(store.dialect, same, expires_at=late + 3600)))
    with monkeypatch.context() as later:
        later.setattr(grant_store, "unix_time", lambda: late)
        token = stage.app.refresh(token).json()["refresh_token"]
    with monkeypatch.context() as later:
        later.setattr(grant_store, "unix_time", lambda: late + 60)
        refused(stage.app.refresh(token), "invalid_grant")


@pytest.mark.parametrize("token", [None, "x", "0" * 43, "' OR 1=1 --", "a.b.c"])
def test_what_is_no_refresh_token(stage: Stage, token: Any) -> None:
    refused(stage.app.refresh(token), "invalid_request" if token is None else "invalid_grant")
    refused(stage.app.refresh(stage.tokens()["access_token"]), "invalid_grant")


def test_nothing_that_could_be_used_is_kept_in_the_store(stage: Stage) -> None:
    """Codes, refresh tokens and secrets of clients are kept as hashes."""
    code = stage.browser.decide(stage.backend)["code"]
    found = stage.backend.exchange(code).json()
    store, secret = stage.service.app.store, stage.backend.secret
    kept = repr([stage.run(records.all(store, records.columns[0])) for records in (CODES, REFRESHES, CLIENTS)])
    assert hashed(code) in kept and hashed(found["refresh_token"]) in kept
    for text in (code, found["refresh_token"], found["access_token"], secret):
        assert text is not None and text not in kept
