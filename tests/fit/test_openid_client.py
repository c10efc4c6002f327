"""openid-client: default discovery, PKCE, state, nonce, userinfo, silent sign-in, refresh, and a device."""

from __future__ import annotations

from diptych.demo.data import FIRST_USER_ID
from tests.fit.scenario import Scenarios, Tool
from tests.fit.signing_in import EMAIL, sign_in
from tests.support.running import NewDatabase

TOOL = Tool("openid-client", "OpenID and OAuth clients", npm=("openid-client",))


def test_openid_client(new_sqlite: NewDatabase, scenario: Scenarios) -> None:
    found = sign_in(new_sqlite)
    public, confidential = found["openidClient"]["app"], found["openidClient"]["backend"]
    with scenario("sign in"):
        assert public["sub"] == confidential["sub"] == FIRST_USER_ID
    with scenario("userinfo"):
        assert public["profile"]["email"] == EMAIL and public["profile"]["name"]
    with scenario("read"):
        assert public["resource"] == 200
    with scenario("prompt=none"):
        assert public["silent"] == FIRST_USER_ID
    with scenario("code injection refused"):
        assert (public["injectedCode"], public["wrongNonce"]) == ("invalid_grant", "OAUTH_JWT_CLAIM_COMPARISON_FAILED")
    with scenario("device"):
        assert found["device"]["sub"] == FIRST_USER_ID
