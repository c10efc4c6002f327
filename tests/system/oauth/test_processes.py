"""What one process ends, every other ends within a second; and no restart begins anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from diptych.identity.keys import rotate_key
from diptych.identity.records import REVOCATIONS
from diptych.identity.revocation_list import RevocationList, revocation
from diptych.model.declare.roles import Claims
from tests.support.running import Client, NewDatabase, served
from tests.system.oauth.conftest import Shared
from tests.system.oauth.stage import HERE, Stage, staged
from tests.system.oauth.test_codes import refused

SOON = 3.0
"""Seconds, of which a machine that is busy may need more than one."""


def takes(service: Client, token: str) -> bool:
    """Does a process take a token, in both styles?"""
    signed_in = service.signed_in(token)
    return {signed_in.get("/users?first=1").status, signed_in.post("/graphql", {"query": "{ __typename }"}).status} == {
        200
    }


def signs_by(service: Client) -> str:
    """The name of the key by which a process signs."""
    return str(service.get("/.well-known/jwks.json").json()["keys"][0]["kid"])


def soon(is_so: Callable[[], bool]) -> bool:
    """Does it become so, before long?"""
    until = time.monotonic() + SOON
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_a_token_that_one_process_revokes_ends_at_the_other(shared: Shared) -> None:
    stage, (one, other) = shared
    for kind in ("access_token", "refresh_token"):
        found = stage.tokens()
        token = found["access_token"]
        assert takes(one, token) and takes(other, token)
        assert stage.app.at(one.request).revoke(found[kind]).status == 200
        assert not takes(one, token), "on the next request"
        assert soon(lambda token=token: not takes(other, token))  # type: ignore[misc]  # mypy infers no type of its default


def test_a_token_that_is_used_again_at_one_process_ends_its_family_at_the_other(shared: Shared) -> None:
    stage, (one, other) = shared
    first = stage.tokens()
    second = stage.app.at(one.request).refresh(first["refresh_token"]).json()
    assert takes(other, second["access_token"])
    refused(stage.app.at(other.request).refresh(first["refresh_token"]), "invalid_grant")
    assert not takes(other, second["access_token"]), "on the next request"
    assert soon(lambda: not takes(one, second["access_token"]))
    refused(stage.app.at(one.request).refresh(second["refresh_token"]), "invalid_grant")


@pytest.mark.parametrize("change", ["disable", "remove", "set_roles"])
def test_a_change_of_an_account_ends_its_tokens_everywhere(shared: Shared, change: str) -> None:
    stage, services = shared
    account = stage.add_account("staff")
    token = stage.tokens(browser=stage.signed_in(account))["access_token"]
    assert all(takes(service, token) for service in services)
    stage.run(getattr(stage.accounts, change)(account.email, *([["admin"]] if change == "set_roles" else [])))
    assert soon(lambda: not any(takes(service, token) for service in services))


def test_a_new_key_is_taken_everywhere(shared: Shared) -> None:
    stage, (one, other) = shared
    old = stage.tokens()
    kid = stage.run(rotate_key(stage.service.app.store))
    assert soon(lambda: {signs_by(one), signs_by(other)} == {kid})
    new = stage.app.at(one.request).refresh(old["refresh_token"]).json()
    assert takes(one, old["access_token"]) and takes(other, old["access_token"])
    assert takes(one, new["access_token"]) and takes(other, new["access_token"])


def test_rotation_state_is_not_lost_by_a_restart(new_database: NewDatabase, runner: asyncio.Runner) -> None:
    database = new_database()
    with staged(database, runner) as stage:
        first, revoked_one, good = stage.tokens(), stage.tokens(), stage.tokens()
        app = stage.app
    with served(database, "--base-url", HERE) as service:
        second = app.at(service.request).refresh(first["refresh_token"]).json()
        assert app.at(service.request).revoke(revoked_one["access_token"]).status == 200
        assert takes(service, second["access_token"])
    with served(database, "--base-url", HERE) as service:
        assert takes(service, second["access_token"])
        assert not takes(service, revoked_one["access_token"]), "what was revoked stays so"
        refused(app.at(service.request).refresh(first["refresh_token"]), "invalid_grant")
        assert not takes(service, second["access_token"])
        refused(app.at(service.request).refresh(second["refresh_token"]), "invalid_grant")
        assert takes(service, good["access_token"])
        assert app.at(service.request).refresh(good["refresh_token"]).status == 200


def test_a_process_that_could_not_look_for_long_misses_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins where it looked last, not a fixed time ago."""
    store = stage.service.app.store
    away, clock = RevocationList(store), time.time()
    ended = [revocation("token", "one"), revocation("token", "two")]
    stage.run(store.write(lambda: REVOCATIONS.add(store.dialect, ended[0])))
    stage.run(away.poll())
    stage.run(store.write(lambda: REVOCATIONS.add(store.dialect, ended[1])))
    monkeypatch.setattr(time, "time", lambda: clock + 600)
    stage.run(away.poll())
    for name in ("one", "two"):
        assert away.is_revoked(Claims(None, frozenset(), None, int(clock) + 900, {"jti": name}))
