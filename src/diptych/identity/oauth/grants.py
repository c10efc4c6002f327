"""The three grant types: authorization code with PKCE, refresh token, client credentials."""

from __future__ import annotations

from typing import Any, ClassVar

from authlib.oauth2.rfc6749 import AccessDeniedError, InvalidGrantError, InvalidRequestError, InvalidScopeError, grants
from authlib.oauth2.rfc7636 import CodeChallenge

from diptych.identity.oauth.authlib_models import OAuthCode, OAuthToken
from diptych.identity.oauth.console_client import CONSOLE_CLIENT
from diptych.identity.oauth.core import Core
from diptych.identity.oauth.grant_store import is_usable, new_grant
from diptych.identity.oauth.openid import SignIn
from diptych.identity.records import CLIENTS_OWN, Account, new_secret
from diptych.identity.scopes import OPENID

_METHODS = ["none", "client_secret_basic", "client_secret_post"]


class Proof(CodeChallenge):
    """PKCE with S256, required of every client."""

    SUPPORTED_CODE_CHALLENGE_METHOD: ClassVar = ["S256"]
    CODE_CHALLENGE_METHODS: ClassVar = {"S256": CodeChallenge.CODE_CHALLENGE_METHODS["S256"]}

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        data = grant.request.payload.data
        if not data.get("code_challenge") or data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("A 'code_challenge' by the method S256 is required.")
        super().validate_code_challenge(grant, redirect_uri)


class CodeGrant(grants.AuthorizationCodeGrant):
    """The authorization code grant."""

    TOKEN_ENDPOINT_AUTH_METHODS = _METHODS
    server: Core

    def save_authorization_code(self, code: str, request: Any) -> None:
        data = request.payload.data
        redirect, sign_in = data["redirect_uri"], None
        if OPENID in request.scope.split() or request.client.client_id == CONSOLE_CLIENT:
            sign_in = SignIn(request.auth_time, data.get("nonce"), request.methods)
        is_stored = self.server.wait(
            self.server.grant_store.add_code(
                code, request.client.record, request.user, redirect, request.scope, data["code_challenge"], sign_in
            )
        )
        if not is_stored:
            raise AccessDeniedError(redirect_uri=redirect)

    def query_authorization_code(self, code: str, client: Any) -> OAuthCode | None:
        record = self.server.wait(self.server.grant_store.code(code))
        return OAuthCode(record) if record and record.client_id == client.client_id else None

    def authenticate_user(self, authorization_code: OAuthCode) -> Account | None:
        return self.server.wait(self.server.grant_store.account(authorization_code.record.account_id))

    def generate_token(self, user: Any = None, scope: Any = None, **more: Any) -> dict[str, Any]:
        client = self.request.client.record
        self.begun = new_grant(user, client, scope)
        sign_in = self.server.wait(self.server.grant_store.sign_in(self.request.authorization_code.record))
        auth_time = sign_in.auth_time if sign_in is not None and client.id == CONSOLE_CLIENT else None
        token = self.server.access_token(client, user, scope, self.begun.id, auth_time)
        token["refresh_token"] = new_secret()
        if sign_in is None or OPENID not in scope.split():
            return token
        return self.server.with_id_token(token, client, user, sign_in)

    def save_token(self, token: dict[str, Any]) -> None:
        code = self.request.authorization_code.record
        if not self.server.wait(self.server.grant_store.exchange(code, self.begun, token["refresh_token"])):
            self.server.wait(self.server.grant_store.code(self.request.form["code"]))
            raise InvalidGrantError("Invalid 'code' in request.")
        if self.request.client.is_registered:
            self.server.wait(self.server.grant_store.keep_client(self.request.client.record))

    def delete_authorization_code(self, authorization_code: OAuthCode) -> None:
        """Kept, marked as used, so that a second use is detected."""


class RefreshGrant(grants.RefreshTokenGrant):
    """The refresh token grant with rotation: a refresh token is used once, and a new one is returned."""

    TOKEN_ENDPOINT_AUTH_METHODS = _METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True
    server: Core

    def authenticate_refresh_token(self, refresh_token: str) -> OAuthToken | None:
        """A refresh token that can be used. One that was used before revokes its grant."""
        pair = self.server.wait(self.server.grant_store.refresh(refresh_token))
        if pair is None:
            return None
        refresh, grant = pair
        if refresh.used_at is not None:
            self.server.wait(self.server.grant_store.end_grant(grant.id))
        return OAuthToken(grant.client_id, grant.scope, True, None, *pair) if is_usable(refresh) else None

    def authenticate_user(self, refresh_token: OAuthToken) -> Account:
        assert refresh_token.grant is not None
        account_id = refresh_token.grant.account_id
        account = self.server.wait(self.server.grant_store.account(account_id)) if account_id else None
        if account is None:
            raise InvalidGrantError()
        return account

    def generate_token(self, user: Any = None, scope: Any = None, **more: Any) -> dict[str, Any]:
        grant = self.request.refresh_token.grant
        token = self.server.access_token(self.request.client.record, user, scope, grant.id)
        return {**token, "refresh_token": new_secret()}

    def save_token(self, token: dict[str, Any]) -> None:
        old = self.request.refresh_token
        if not self.server.wait(self.server.grant_store.rotate(old.refresh, old.grant, token["refresh_token"])):
            self.server.wait(self.server.grant_store.end_grant(old.grant.id))
            raise InvalidGrantError()

    def revoke_old_credential(self, refresh_token: OAuthToken) -> None:
        """Nothing to do: it was marked as used in the transaction that stored the new one."""


class ClientCredentials(grants.ClientCredentialsGrant):
    """The client credentials grant."""

    TOKEN_ENDPOINT_AUTH_METHODS = _METHODS[1:]
    server: Core

    def generate_token(self, user: Any = None, scope: Any = None, **more: Any) -> dict[str, Any]:
        client = self.request.client
        allowed = client.get_own_scope(scope)
        if allowed is None:
            raise InvalidScopeError()
        return self.server.access_token(client.record, None, allowed, CLIENTS_OWN + client.record.id)

    def save_token(self, token: dict[str, Any]) -> None:
        """Nothing is stored: such a token cannot be refreshed."""
