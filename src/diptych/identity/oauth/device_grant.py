"""The device flow for clients that are allowed it (RFC 8628): they get a device code, and poll until a user decides."""

from __future__ import annotations

from typing import Any

from authlib.oauth2.rfc6749 import (
    AccessDeniedError,
    InvalidGrantError,
    InvalidRequestError,
    InvalidScopeError,
    OAuth2Error,
    UnauthorizedClientError,
)
from authlib.oauth2.rfc8628 import DEVICE_CODE_GRANT_TYPE, DeviceCodeGrant
from authlib.oauth2.rfc8628.errors import AuthorizationPendingError, ExpiredTokenError, SlowDownError

from diptych.identity.oauth.authlib_adapter import OAuthRequest, OAuthResponse
from diptych.identity.oauth.core import Core
from diptych.identity.oauth.device_codes import CODE_LIFETIME, INTERVAL, DeviceCodes, Verdict
from diptych.identity.oauth.grant_store import new_grant, new_refresh
from diptych.identity.oauth.openid import SignIn
from diptych.identity.oauth.resource import check_resource
from diptych.identity.records import DeviceCode, new_secret
from diptych.identity.scopes import OPENID

_METHODS = ["none", "client_secret_basic", "client_secret_post"]
_NO_STORE = {"Cache-Control": "no-store"}
_ERRORS: dict[Verdict, type[OAuth2Error]] = {
    "unknown": InvalidGrantError,
    "expired": ExpiredTokenError,
    "slow_down": SlowDownError,
    "pending": AuthorizationPendingError,
    "denied": AccessDeniedError,
}


def start_device(core: Core, request: OAuthRequest, address: str) -> OAuthResponse:
    """The device authorization endpoint: a code to poll with, and one for the user to type.

    There is no `verification_uri_complete`: a link that types the code is what phishing needs.
    """
    try:
        client = core.authenticate_client(request, _METHODS)
        _check_client(client)
        check_resource(request.form, core.issuer)
        core.validate_requested_scope(request.form.get("scope"))
        scope = client.get_allowed_scope(request.form.get("scope"))
        if scope is None:
            raise InvalidScopeError()
    except OAuth2Error as error:
        return core.handle_error_response(request, error)
    codes = core.wait(DeviceCodes(core.grant_store.store).add(client.client_id, scope, address))
    if codes is None:
        return OAuthResponse(429, {"error": "slow_down", "error_description": "Too many devices wait; try later."})
    device, user = codes
    body = {
        "device_code": device,
        "user_code": user,
        "verification_uri": f"{core.issuer}/oauth/device",
        "expires_in": CODE_LIFETIME,
        "interval": INTERVAL,
    }
    return OAuthResponse(200, body, dict(_NO_STORE))


def _check_client(client: Any) -> None:
    if not client.check_grant_type(DEVICE_CODE_GRANT_TYPE):
        raise UnauthorizedClientError("The client was not added with the device flow.")


class DeviceGrant(DeviceCodeGrant):
    """The grant of a device code."""

    TOKEN_ENDPOINT_AUTH_METHODS = _METHODS
    server: Core

    def validate_token_request(self) -> None:
        client = self.authenticate_token_endpoint_client()
        _check_client(client)
        device = self.request.form.get("device_code")
        if not device:
            raise InvalidRequestError("Missing 'device_code' in request.")
        self.codes = DeviceCodes(self.server.grant_store.store)
        found = self.server.wait(self.codes.poll(device, client.client_id))
        if not isinstance(found, DeviceCode):
            raise _ERRORS[found]()
        account = self.server.wait(self.server.grant_store.account(found.account_id or ""))
        if account is None:
            raise InvalidGrantError()
        self.code, self.request.client, self.request.user = found, client, account

    def create_token_response(self) -> tuple[int, dict[str, Any], list[tuple[str, str]]]:
        client, account, code = self.request.client.record, self.request.user, self.code
        grant, refresh = new_grant(account, client, code.scope), new_secret()
        token = {**self.server.access_token(client, account, code.scope, grant.id), "refresh_token": refresh}
        if OPENID in code.scope.split():
            token = self.server.with_id_token(token, client, account, SignIn(code.auth_time or 0))
        if not self.server.wait(self.codes.exchange(code, grant, new_refresh(refresh, grant))):
            raise InvalidGrantError()
        return 200, token, self.TOKEN_RESPONSE_HEADER
