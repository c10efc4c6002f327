"""Auth.js (@auth/core): a provider of the type oidc with issuer, id and secret, by its default checks and by all."""

from __future__ import annotations

from tests.fit.scenario import Scenarios, Tool
from tests.fit.signing_in import EMAIL, sign_in
from tests.support.running import NewDatabase

TOOL = Tool("Auth.js", "OpenID and OAuth clients", npm=("@auth/core",))


def test_auth_js(new_sqlite: NewDatabase, scenario: Scenarios) -> None:
    found = sign_in(new_sqlite)
    with scenario("sign in"):
        assert found["authJs"]["user"]["email"] == found["authJsDefault"]["user"]["email"] == EMAIL
        assert found["authJs"]["asked"] == ["code_challenge", "state", "nonce"]
    with scenario("profile in the session"):
        assert found["authJs"]["user"]["name"]
