"""Clients, codes and tokens in the interfaces of Authlib's core."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin
from authlib.oauth2.rfc8628 import DEVICE_CODE_GRANT_TYPE

from diptych.identity.records import AuthorizationCode, ClientDetails, ClientRecord, Grant, RefreshToken, hashed
from diptych.identity.redirects import matches_redirect
from diptych.identity.scopes import IDENTITY_SCOPES, without_covered
from diptych.model.declare.roles import Claims

DEFAULT_SCOPES = ("read", "write")
"""Scopes of a client that has no limit and requests none."""
_LONGEST_SCOPE = 5_000
"""Characters of the scopes in a token, which has 8 KiB at most."""


class OAuthClient(ClientMixin):
    """A client: its redirect URIs, scopes, authentication method and grant types."""

    def __init__(self, record: ClientRecord, details: ClientDetails | None = None) -> None:
        self.record = record
        self.details = details
        self.client_id = record.id

    def get_client_id(self) -> str:
        return self.record.id

    def get_default_redirect_uri(self) -> None:
        """None: every request must name its redirect URI."""

    def get_allowed_scope(self, scope: str | None) -> str | None:
        """The scopes that a request gets; None if it requests more than the client may have, or than a token holds."""
        allowed = self.record.scopes or DEFAULT_SCOPES
        requested = dict.fromkeys((scope or "").split() or allowed)
        if self.record.scopes and not requested.keys() <= set(allowed):
            return None
        return " ".join(requested) if len(" ".join(without_covered(requested))) <= _LONGEST_SCOPE else None

    def get_own_scope(self, scope: str | None) -> str | None:
        """The scopes that a client gets for itself: those of identity are for users."""
        if set((scope or "").split()) & set(IDENTITY_SCOPES):
            return None
        words = (self.get_allowed_scope(scope) or "").split()
        return " ".join(word for word in words if word not in IDENTITY_SCOPES) or None

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return any(matches_redirect(registered, redirect_uri) for registered in self.record.redirects)

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(self.record.secret or "", hashed(client_secret))

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """A client that has a secret must authenticate with it, at every endpoint."""
        return (method == "none") == (self.record.secret is None)

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code" and bool(self.record.redirects)

    def check_grant_type(self, grant_type: str) -> bool:
        has_devices = self.details is not None and bool(self.details.device)
        match grant_type:
            case "client_credentials":
                return self.record.secret is not None and not self.is_registered
            case "authorization_code":
                return bool(self.record.redirects)
            case "refresh_token":
                return bool(self.record.redirects) or has_devices
        return grant_type == DEVICE_CODE_GRANT_TYPE and has_devices

    @property
    def is_registered(self) -> bool:
        """Did it register itself?"""
        return self.details is not None and self.details.expires_at is not None


class OAuthCode(AuthorizationCodeMixin):
    """An authorization code."""

    code_challenge_method = "S256"

    def __init__(self, record: AuthorizationCode) -> None:
        self.record = record
        self.code_challenge = record.challenge

    def get_redirect_uri(self) -> str:
        return self.record.redirect

    def get_scope(self) -> str:
        return self.record.scope


@dataclass
class OAuthToken(TokenMixin):
    """A token that a client presents: an access token of ours, or a refresh token."""

    client_id: str
    scope: str
    active: bool
    claims: Claims | None = None
    refresh: RefreshToken | None = None
    grant: Grant | None = None

    def check_client(self, client: Any) -> bool:
        return bool(client.client_id == self.client_id)

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return not self.active

    def is_revoked(self) -> bool:
        return not self.active
