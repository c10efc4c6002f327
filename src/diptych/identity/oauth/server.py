"""The authorization server: Authlib's core on the records of the store, for the event loop.

The core runs in a thread for each request, and waits for the event loop wherever it needs a record. Threads are few and
shared fairly by callers; statements run in the caller's name (`identity/workers.py`). Offered are authorization codes
with PKCE (S256), rotating refresh tokens and client credentials; RFC 9700 holds without a setting.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from authlib.oauth2.rfc6749 import OAuth2Error
from msgspec import Struct

from diptych.errors import Refusal
from diptych.identity.login_sessions import SignedIn
from diptych.identity.oauth.authlib_adapter import Bridge, Malformed, OAuthRequest, OAuthResponse
from diptych.identity.oauth.console_client import CONSOLE_CLIENT
from diptych.identity.oauth.core import Core
from diptych.identity.oauth.device_grant import DeviceGrant, start_device
from diptych.identity.oauth.endpoints import OAuthIntrospection, OAuthRevocation
from diptych.identity.oauth.grant_store import GrantStore
from diptych.identity.oauth.grants import ClientCredentials, CodeGrant, Proof, RefreshGrant
from diptych.identity.oauth.openid import TellUser
from diptych.identity.oauth.prompts import Prompt, read_prompt
from diptych.identity.oauth.resource import check_resource
from diptych.identity.records import ClientRecord
from diptych.identity.tokens import Tokens
from diptych.identity.workers import Workers
from diptych.model.model import Model

T = TypeVar("T")
Pairs = Sequence[tuple[str, str]]
Headers = Mapping[str, str]
_THREADS, _WAITING = 4, 2_048
_BUSY = "The authorization server is busy; try again."
logging.getLogger("authlib").setLevel(logging.INFO)  # at DEBUG it logs every token


class AuthorizationRequest(Struct, frozen=True):
    """A validated authorization request, before the consent of the account."""

    client: ClientRecord
    scope: tuple[str, ...]
    redirect: str
    prompt: Prompt
    is_registered: bool = False
    """Did the client register itself?"""

    @property
    def is_own(self) -> bool:
        """Is the client the console of this service, which is no other party?"""
        return self.client.id == CONSOLE_CLIENT


class OAuth:
    """The authorization server of one service."""

    def __init__(
        self,
        grant_store: GrantStore,
        tokens: Tokens,
        model: Model,
        user_claims: TellUser,
        find_key: Callable[[str], Awaitable[None]],
        *,
        console: bool = False,
    ) -> None:
        self.grant_store = grant_store
        self.tokens = tokens
        self.model = model
        self._user_claims = user_claims
        self._find_key = find_key
        self._console = console
        self._workers = Workers(_THREADS, _WAITING, "diptych-oauth", _BUSY)

    def stop(self) -> None:
        self._workers.stop()

    async def token(self, headers: Headers, form: Pairs, issuer: str) -> OAuthResponse:
        """The token endpoint."""
        return await self._respond(headers, form, issuer, lambda core, request: core.create_token_response(request))

    async def revoke(self, headers: Headers, form: Pairs, issuer: str) -> OAuthResponse:
        """The revocation endpoint (RFC 7009)."""
        return await self._endpoint("revocation", headers, form, issuer)

    async def introspect(self, headers: Headers, form: Pairs, issuer: str) -> OAuthResponse:
        """The introspection endpoint (RFC 7662)."""
        return await self._endpoint("introspection", headers, form, issuer)

    async def start_device(self, headers: Headers, form: Pairs, issuer: str, address: str) -> OAuthResponse:
        """The device authorization endpoint (RFC 8628)."""
        return await self._respond(headers, form, issuer, lambda core, request: start_device(core, request, address))

    async def _endpoint(self, name: str, headers: Headers, form: Pairs, issuer: str) -> OAuthResponse:
        def work(core: Core, request: OAuthRequest) -> OAuthResponse:
            answer: OAuthResponse = core.create_endpoint_response(name, request)
            return answer

        await self._find_key(dict(form).get("token", ""))
        return await self._respond(headers, form, issuer, work)

    async def _respond(
        self, headers: Headers, form: Pairs, issuer: str, work: Callable[[Core, OAuthRequest], OAuthResponse]
    ) -> OAuthResponse:
        try:
            request = OAuthRequest("POST", headers, form)
        except Malformed as error:
            return malformed(str(error))
        return await self._in_thread(issuer, lambda core: work(core, request))

    def hinted(self, id_token: str) -> str | None:
        """The user of an ID token of ours, which may have expired; None if it is not ours."""
        return self._of_hint(id_token, "sub")

    def hinted_client(self, id_token: str) -> str | None:
        """The client of an ID token of ours, which may have expired; None if it is not ours."""
        return self._of_hint(id_token, "aud")

    def _of_hint(self, id_token: str, claim: str) -> str | None:
        try:
            value = self.tokens.verify_id_token(id_token).get(claim)
        except Refusal:
            return None
        return value if isinstance(value, str) else None

    # the authorization endpoint

    async def validate(self, query: Pairs, issuer: str) -> AuthorizationRequest | OAuthResponse:
        """Validate the query of the authorization endpoint; an OAuthResponse if it is wrong.

        Such a response redirects to the client only if the client is known and the redirect URI is registered.
        """
        try:
            request = OAuthRequest("GET", {}, query)
        except Malformed as error:
            return malformed(str(error))

        def work(core: Core) -> AuthorizationRequest | OAuthResponse:
            try:
                grant = core.get_consent_grant(request)
            except OAuth2Error as error:
                return _error(core, request, error)
            try:
                check_resource(request.args, issuer)
                prompt = read_prompt(request.args)
            except OAuth2Error as error:
                return _error(core, request, error, grant.redirect_uri)
            client, scope = request.client, tuple(request.scope.split())
            return AuthorizationRequest(client.record, scope, grant.redirect_uri, prompt, client.is_registered)

        return await self._in_thread(issuer, work)

    async def decide(self, query: Pairs, consents: SignedIn | OAuth2Error | None, issuer: str) -> OAuthResponse:
        """The response to an authorization request: a code if a user consents, else an error."""
        request = OAuthRequest("POST", {}, query)

        def work(core: Core) -> OAuthResponse:
            try:
                grant = core.get_consent_grant(request)
            except OAuth2Error as error:
                return _error(core, request, error)
            if isinstance(consents, OAuth2Error):
                return _error(core, request, consents, grant.redirect_uri)
            user = None
            if consents is not None:
                user, request.auth_time, request.methods = consents.account, consents.since, consents.methods
            answer: OAuthResponse = core.create_authorization_response(request, grant_user=user, grant=grant)
            return _with_issuer(answer, request, issuer)

        return await self._in_thread(issuer, work)

    async def _in_thread(self, issuer: str, work: Callable[[Core], T]) -> T:
        core = self._core(issuer)
        return await self._workers.call(lambda: work(core))

    def _core(self, issuer: str) -> Core:
        core = Core(
            self.grant_store, self.tokens, self.model, Bridge(), issuer, self._user_claims, console=self._console
        )
        core.register_grant(CodeGrant, [Proof(required=True)])
        core.register_grant(RefreshGrant)
        core.register_grant(ClientCredentials)
        core.register_grant(DeviceGrant)
        core.register_endpoint(OAuthRevocation)
        core.register_endpoint(OAuthIntrospection)
        return core


def malformed(description: str) -> OAuthResponse:
    """An `invalid_request` response (RFC 6749, §5.2)."""
    return OAuthResponse(400, {"error": "invalid_request", "error_description": description})


def _error(core: Core, request: OAuthRequest, error: OAuth2Error, redirect: str | None = None) -> OAuthResponse:
    """The response to a wrong authorization request: a redirect if its redirect URI is known to be the client's."""
    if redirect is not None:
        error.redirect_uri, error.state = redirect, request.args.get("state")
    answer: OAuthResponse = core.handle_error_response(request, error)
    return _with_issuer(answer, request, core.issuer)


def _with_issuer(answer: OAuthResponse, request: OAuthRequest, issuer: str) -> OAuthResponse:
    """Add the issuer (RFC 9207) to a redirect, behind the URI as the client wrote it: the core rewrites its query."""
    if answer.location is not None:
        address = request.args["redirect_uri"]
        own, whole = (parse_qsl(urlsplit(uri).query, keep_blank_values=True) for uri in (address, answer.location))
        parameters = urlencode([*whole[len(own) :], ("iss", issuer)])
        answer.location = f"{address}{'&' if '?' in address else '?'}{parameters}"
    return answer
