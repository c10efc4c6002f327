"""Token revocation (RFC 7009) and introspection (RFC 7662)."""

from __future__ import annotations

from typing import Any, ClassVar

from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint

from diptych.errors import Refusal
from diptych.identity.oauth.authlib_adapter import OAuthRequest
from diptych.identity.oauth.authlib_models import OAuthToken
from diptych.identity.oauth.core import Core
from diptych.identity.oauth.grant_store import is_usable


class _Endpoint:
    server: Core

    def check_params(self, request: OAuthRequest, client: Any) -> None:
        """Require a token; an unknown hint is ignored."""
        if "token" not in request.form:
            raise InvalidRequestError("Missing 'token' in request.")

    def query_token(self, token_string: str, token_type_hint: str | None) -> OAuthToken | None:
        """A token of ours, of either kind, whatever the hint says."""
        try:
            claims = self.server.tokens.verify(token_string)
        except Refusal:
            pair = self.server.wait(self.server.grant_store.refresh(token_string))
            if pair is None:
                return None
            refresh, grant = pair
            return OAuthToken(grant.client_id, grant.scope, is_usable(refresh), None, refresh, grant)
        active = not self.server.grant_store.revoked.is_revoked(claims)
        return OAuthToken(claims.get("client_id") or "", claims.get("scope") or "", active, claims)


class OAuthRevocation(_Endpoint, RevocationEndpoint):
    """The revocation endpoint: a client may revoke its own tokens, of either kind, and no others."""

    CLIENT_AUTH_METHODS: ClassVar = ["none", "client_secret_basic", "client_secret_post"]

    def revoke_token(self, token: OAuthToken, request: Any) -> None:
        """Revoke a token; a refresh token is revoked with all tokens of its grant."""
        grant_store = self.server.grant_store
        if token.grant is not None:
            self.server.wait(grant_store.end_grant(token.grant.id))
        elif token.claims is not None and token.active:
            self.server.wait(grant_store.end_token(token.claims.get("jti"), token.claims.expires))


class OAuthIntrospection(_Endpoint, IntrospectionEndpoint):
    """The introspection endpoint, for confidential clients: services that accept our access tokens. A refresh token is
    shown to its own client only."""

    CLIENT_AUTH_METHODS: ClassVar = ["client_secret_basic", "client_secret_post"]

    def check_permission(self, token: OAuthToken, client: Any, request: Any) -> bool:
        return token.refresh is None or token.check_client(client)

    def introspect_token(self, token: OAuthToken) -> dict[str, Any]:
        common: dict[str, Any] = {"active": True, "client_id": token.client_id, "scope": token.scope}
        if token.claims is None:
            return {**common, "token_type": "refresh_token", "exp": token.refresh.expires_at if token.refresh else 0}
        names = ("sub", "jti", "iat", "exp", "roles", "iss", "aud")
        known = {name: token.claims.get(name) for name in names if token.claims.get(name) is not None}
        return {**common, **known, "token_type": "Bearer"}
