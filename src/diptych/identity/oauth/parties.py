"""Clients, codes and tokens as Authlib's core asks about them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin

from diptych.identity.records import AuthorizationCode, Client, Grant, Refresh, hashed
from diptych.identity.redirects import leads_to
from diptych.model.roles import Claims

DEFAULT_SCOPES = ("read", "write")
"""What a client gets that is not narrowed and asks for nothing."""


class OAuthClient(ClientMixin):  # type: ignore[misc]
    """What a client may do."""

    def __init__(self, record: Client) -> None:
        self.record = record
        self.client_id = record.id

    def get_client_id(self) -> str:
        return self.record.id

    def get_default_redirect_uri(self) -> None:
        """None: every request names where it goes."""

    def get_allowed_scope(self, scope: str | None) -> str | None:
        """What it gets of what it asks for; None if it asks for more than it may have."""
        wanted = (scope or "").split()
        if not wanted:
            return " ".join(self.record.scopes or DEFAULT_SCOPES)
        if self.record.scopes and not set(wanted) <= set(self.record.scopes):
            return None
        return " ".join(dict.fromkeys(wanted))

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return any(leads_to(each, redirect_uri) for each in self.record.redirects)

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(self.record.secret or "", hashed(client_secret))

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """A client with a secret proves it, at every endpoint."""
        return (method == "none") == (self.record.secret is None)

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code" and bool(self.record.redirects)

    def check_grant_type(self, grant_type: str) -> bool:
        if grant_type == "client_credentials":
            return self.record.secret is not None
        return bool(self.record.redirects)


class OAuthCode(AuthorizationCodeMixin):  # type: ignore[misc]
    """A code that was given to a client."""

    code_challenge_method = "S256"

    def __init__(self, record: AuthorizationCode) -> None:
        self.record = record
        self.code_challenge = record.challenge

    def get_redirect_uri(self) -> str:
        return self.record.redirect

    def get_scope(self) -> str:
        return self.record.scope


@dataclass
class OAuthToken(TokenMixin):  # type: ignore[misc]
    """A token that a client brings back: one of ours that it used, or one that refreshes a grant."""

    client_id: str
    scope: str
    active: bool
    claims: Claims | None = None
    refresh: Refresh | None = None
    grant: Grant | None = None

    def check_client(self, client: Any) -> bool:
        return bool(client.client_id == self.client_id)

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return not self.active

    def is_revoked(self) -> bool:
        return not self.active
