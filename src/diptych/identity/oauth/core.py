"""Authlib's authorization server on the records of the store: clients, error texts, access tokens."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Sequence
from typing import Any, TypeVar

from authlib.oauth2.rfc6749 import AuthorizationServer, OAuth2Error

from diptych.identity.oauth.authentication import authenticate
from diptych.identity.oauth.authlib_adapter import Bridge, OAuthRequest, OAuthResponse
from diptych.identity.oauth.authlib_models import OAuthClient
from diptych.identity.oauth.console_client import CONSOLE_CLIENT, ConsoleClient
from diptych.identity.oauth.grant_store import GrantStore
from diptych.identity.oauth.openid import SignIn, TellUser, id_token, subject_of
from diptych.identity.oauth.resource import check_resource
from diptych.identity.records import Account, ClientRecord
from diptych.identity.scopes import IDENTITY_SCOPES, without_covered
from diptych.identity.tokens import TOKEN_LIFETIME, Tokens
from diptych.model.model import Model

T = TypeVar("T")
_DESCRIPTIONS = {
    "invalid_grant": "The code or refresh token is not valid, or not for this client.",
    "unsupported_grant_type": "Supported are authorization_code, refresh_token, client_credentials and device_code.",
    "unsupported_response_type": "Supported is code.",
}
"""Descriptions of errors for which Authlib has none."""
_MISSING = {"unsupported_grant_type": "grant_type", "unsupported_response_type": "response_type"}
"""Errors that mean a missing parameter when it is absent."""


class Core(AuthorizationServer):
    """Authlib's server; one for each request, since it holds the bridge into the event loop of that request."""

    def __init__(
        self,
        grant_store: GrantStore,
        tokens: Tokens,
        model: Model,
        bridge: Bridge,
        issuer: str,
        user_claims: TellUser,
        *,
        console: bool = False,
    ) -> None:
        super().__init__(scopes_supported=[*IDENTITY_SCOPES, *sorted(model.scopes)])
        self.grant_store = grant_store
        self.tokens = tokens
        self.model = model
        self.issuer = issuer
        self._user_claims = user_claims
        self._bridge = bridge
        self._console = console

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._bridge.run(work)

    def query_client(self, client_id: str) -> OAuthClient | None:
        if client_id == CONSOLE_CLIENT:
            return ConsoleClient(self.issuer) if self._console else None
        found = self.wait(self.grant_store.client(client_id)) if len(client_id) <= 200 else None
        return OAuthClient(*found) if found else None

    def authenticate_client(
        self, request: OAuthRequest, methods: Collection[str], endpoint: str = "token"
    ) -> OAuthClient:
        return authenticate(request, self.query_client, methods)

    def create_oauth2_request(self, request: OAuthRequest) -> OAuthRequest:
        return request

    def send_signal(self, name: str, *args: Any, **more: Any) -> None:
        """Signals are not used."""

    def handle_response(self, status: int, body: Any, headers: Sequence[tuple[str, str]]) -> OAuthResponse:
        return OAuthResponse(status, body, dict(headers))

    def handle_error_response(self, request: OAuthRequest, error: OAuth2Error) -> OAuthResponse:
        name = _MISSING.get(error.error)
        if name and not request.payload.data.get(name):
            error.error, error.description = "invalid_request", f"Missing '{name}' in request."
        error.description = error.description or _DESCRIPTIONS.get(error.error, "The request is not valid.")
        answer: OAuthResponse = super().handle_error_response(request, error)
        return answer

    def create_token_response(self, request: OAuthRequest) -> OAuthResponse:
        try:
            check_resource(request.form, self.issuer)
        except OAuth2Error as error:
            return self.handle_error_response(request, error)
        answer: OAuthResponse = super().create_token_response(request)
        return answer

    def access_token(
        self, client: ClientRecord, account: Account | None, scope: str, grant: str, auth_time: int | None = None
    ) -> dict[str, Any]:
        """A new access token, as a response of the token endpoint. `auth_time` is when its user signed in."""
        more: dict[str, Any] = {"client_id": client.id, "grant": grant}
        if auth_time is not None:
            more["auth_time"] = auth_time
        if account is not None:
            more["account"] = account.id
        subject, roles = (subject_of(account), account.roles) if account else (client.id, client.roles)
        token = self.tokens.make(subject, roles, without_covered(scope.split()), TOKEN_LIFETIME, more, self.issuer)
        return {"token_type": "Bearer", "access_token": token, "expires_in": TOKEN_LIFETIME, "scope": scope}

    def with_id_token(
        self, token: dict[str, Any], client: ClientRecord, account: Account, sign_in: SignIn
    ) -> dict[str, Any]:
        """The response with an ID token that is bound to its access token."""
        claims = self.wait(self._user_claims(account, token["scope"].split()))
        signed = id_token(self.tokens, self.issuer, client.id, account, token["access_token"], sign_in, claims)
        return {**token, "id_token": signed}
