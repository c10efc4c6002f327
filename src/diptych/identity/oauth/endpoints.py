"""Ending a token (RFC 7009), and asking whether one holds (RFC 7662)."""

from __future__ import annotations

from typing import Any

from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint

from diptych.errors import Refusal
from diptych.identity.oauth.core import Core
from diptych.identity.oauth.ledger import is_usable
from diptych.identity.oauth.parties import OAuthToken
from diptych.identity.oauth.wire import OAuthRequest
from diptych.identity.tokens import AUDIENCE


class _Endpoint:
    server: Core

    def check_params(self, request: OAuthRequest, client: Any) -> None:
        """There is a token; a hint that means nothing to us is passed over."""
        if "token" not in request.form:
            raise InvalidRequestError("Missing 'token' in request.")

    def query_token(self, token_string: str, token_type_hint: str | None) -> OAuthToken | None:
        """A token of ours, of either kind, whatever the client takes it for."""
        try:
            claims = self.server.tokens.verify(token_string)
        except Refusal:
            found = self.server.wait(self.server.ledger.refresh(token_string))
            if found is None:
                return None
            refresh, grant = found
            return OAuthToken(grant.client_id, grant.scope, is_usable(refresh), None, refresh, grant)
        active = not self.server.ledger.revoked.ends(claims)
        return OAuthToken(claims.get("client_id") or "", claims.get("scope") or "", active, claims)


class Revocation(_Endpoint, RevocationEndpoint):  # type: ignore[misc]
    """A client may end its own tokens, of either kind; one of another client is refused."""

    CLIENT_AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]  # noqa: RUF012

    def revoke_token(self, token: OAuthToken, request: Any) -> None:
        """A refresh token ends with all that came of its grant."""
        ledger = self.server.ledger
        if token.grant is not None:
            self.server.wait(ledger.end_grant(token.grant.id))
        elif token.claims is not None and token.active:
            self.server.wait(ledger.end_token(token.claims.get("jti"), token.claims.expires))


class Introspection(_Endpoint, IntrospectionEndpoint):  # type: ignore[misc]
    """Clients that have a secret may ask: they are services that take our access tokens. A refresh token is for nobody
    but its client, so nobody else is told of it."""

    CLIENT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]  # noqa: RUF012

    def check_permission(self, token: OAuthToken, client: Any, request: Any) -> bool:
        return token.refresh is None or token.check_client(client)

    def introspect_token(self, token: OAuthToken) -> dict[str, Any]:
        told: dict[str, Any] = {"active": True, "client_id": token.client_id, "scope": token.scope}
        if token.claims is None:
            return {**told, "token_type": "refresh_token", "exp": token.refresh.expires_at if token.refresh else 0}
        names = ("sub", "jti", "iat", "exp", "roles")
        found = {name: token.claims.get(name) for name in names if token.claims.get(name) is not None}
        issuer = self.server.tokens.issuer
        return {**told, **found, "token_type": "Bearer", "iss": issuer, "aud": AUDIENCE}
