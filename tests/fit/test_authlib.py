"""Authlib: its client of OAuth, with the metadata of OpenID, PKCE, an ID token, userinfo and a refresh."""

from __future__ import annotations

from diptych.demo.data import FIRST_USER_ID
from tests.fit.scenario import Scenarios, Tool
from tests.fit.signing_in import EMAIL, HERE, with_account
from tests.support.running import NewDatabase
from tests.system.oauth.authlib_client import NONCE, sign_in_by_authlib

TOOL = Tool("Authlib", "OpenID and OAuth clients", pypi=("authlib",))


def test_authlib(new_sqlite: NewDatabase, scenario: Scenarios) -> None:
    with with_account(new_sqlite) as (service, given):
        found = sign_in_by_authlib(service, HERE, given)
    with scenario("sign in"):
        assert (found.claims["sub"], found.claims["nonce"]) == (FIRST_USER_ID, NONCE)
    with scenario("userinfo"):
        assert found.info["email"] == EMAIL and found.info["name"]
    with scenario("read"):
        assert found.viewer == 200
    with scenario("refresh"):
        assert found.refreshed == 200
