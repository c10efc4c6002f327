"""oauth4webapi: from the metadata of the API (RFC 9728) to its issuer, an ID token and userinfo."""

from __future__ import annotations

from tests.fit.scenario import Scenarios, Tool
from tests.fit.signing_in import EMAIL, sign_in
from tests.support.running import NewDatabase

TOOL = Tool("oauth4webapi", "OpenID and OAuth clients", npm=("oauth4webapi",))


def test_oauth4webapi(new_sqlite: NewDatabase, scenario: Scenarios) -> None:
    found = sign_in(new_sqlite)["oauth4webapi"]
    with scenario("sign in"):
        assert found["profile"]["sub"]
    with scenario("userinfo"):
        assert found["profile"]["email"] == EMAIL
    with scenario("JWT access token"):
        assert found["accessToken"] is None
    with scenario("ID token refused as access token"):
        assert found["idToken"]
