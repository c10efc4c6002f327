"""Signs a user in by Authlib's client of OAuth, with the metadata of OpenID."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.support.running import Client
from tests.system.oauth.flow import Browser

NONCE = "n"
_VERIFIER = "v" * 48


@dataclass(frozen=True)
class Found:
    """The claims of the ID token, userinfo, and the status of `/viewer`, before and after a refresh of the tokens."""

    claims: dict[str, Any]
    info: dict[str, Any]
    viewer: int
    refreshed: int


def sign_in_by_authlib(service: Client, issuer: str, given: Mapping[str, Any]) -> Found:
    """Sign in for the client `given["backend"]` at a service whose issuer is reached at another address."""
    metadata = service.get("/.well-known/openid-configuration").json()
    token_url, info_url = (metadata[f"{name}_endpoint"].replace(issuer, service.url) for name in ("token", "userinfo"))
    backend, viewer_url = given["backend"], f"{service.url}/viewer"
    with OAuth2Session(
        backend["id"],
        backend["secret"],
        scope="openid profile email read",
        redirect_uri=given["redirect"],
        code_challenge_method="S256",
    ) as client:
        asked = {"code_verifier": _VERIFIER, "nonce": NONCE}
        url, state = client.create_authorization_url(metadata["authorization_endpoint"], **asked)
        answered = _allow(Browser(service.request, {"origin": issuer}), url.partition("?")[2], given)
        token = client.fetch_token(token_url, authorization_response=answered, code_verifier=_VERIFIER, state=state)
        keys = KeySet.import_key_set(service.get("/.well-known/jwks.json").json())
        allowed = metadata["id_token_signing_alg_values_supported"]
        claims = jwt.decode(token["id_token"], keys, algorithms=allowed).claims
        info, viewer = client.get(info_url).json(), client.get(viewer_url).status_code
        client.refresh_token(token_url)
        return Found(claims, info, viewer, client.get(viewer_url).status_code)


def _allow(browser: Browser, query: str, given: Mapping[str, Any]) -> str:
    """Where the browser is led back to, after its user has signed in and allowed what was asked."""
    page = browser.get(f"/oauth/authorize?{query}")
    browser.submit(page, "login", email=given["email"], password=given["password"])
    answer = browser.submit(browser.get(f"/oauth/authorize?{query}"), "authorize", decision="allow")
    return str(answer.headers["location"])
