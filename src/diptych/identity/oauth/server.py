"""The authorization server: Authlib's core, on the records of the store.

Each of its answers is made by the core in a thread (`OAuth.token`, `revoke`, `introspect`, `asked`, `decide`), which
waits for the event loop wherever it needs a record. Threads are few: callers take turns, and the statements run in
their names (`identity/turn.py`). Only code with PKCE (S256), refresh tokens that rotate, and client
credentials are offered; RFC 9700 holds without a setting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from authlib.oauth2.rfc6749 import OAuth2Error

from diptych.identity.oauth.core import Core
from diptych.identity.oauth.endpoints import Introspection, Revocation
from diptych.identity.oauth.grants import ClientCredentials, CodeGrant, Proof, RefreshGrant
from diptych.identity.oauth.ledger import Ledger
from diptych.identity.oauth.wire import Answered, Bridge, Malformed, OAuthRequest
from diptych.identity.records import Account, Client
from diptych.identity.tokens import Tokens
from diptych.identity.turn import Workers
from diptych.model.model import Model

T = TypeVar("T")
Pairs = Sequence[tuple[str, str]]
Headers = Mapping[str, str]
_THREADS, _WAITING = 4, 2_048
_BUSY = "The authorization server has too much to do; try again."
logging.getLogger("authlib").setLevel(logging.INFO)  # below, it tells every token


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a client that a person is to decide about."""

    client: Client
    scope: tuple[str, ...]
    redirect: str


class OAuth:
    """The authorization server of one service, for the event loop."""

    def __init__(self, ledger: Ledger, tokens: Tokens, model: Model) -> None:
        self.ledger = ledger
        self.tokens = tokens
        self.model = model
        self._workers = Workers(_THREADS, _WAITING, "diptych-oauth", _BUSY)

    def stop(self) -> None:
        self._workers.stop()

    async def token(self, headers: Headers, form: Pairs) -> Answered:
        """The token endpoint."""
        return await self._answer(headers, form, lambda core, request: core.create_token_response(request))

    async def revoke(self, headers: Headers, form: Pairs) -> Answered:
        """RFC 7009."""
        return await self._endpoint("revocation", headers, form)

    async def introspect(self, headers: Headers, form: Pairs) -> Answered:
        """RFC 7662."""
        return await self._endpoint("introspection", headers, form)

    async def _endpoint(self, name: str, headers: Headers, form: Pairs) -> Answered:
        return await self._answer(headers, form, lambda core, request: core.create_endpoint_response(name, request))

    async def _answer(
        self, headers: Headers, form: Pairs, work: Callable[[Core, OAuthRequest], Answered]
    ) -> Answered:
        try:
            request = OAuthRequest("POST", headers, form)
        except Malformed as error:
            return malformed(str(error))
        return await self._in_thread(lambda core: work(core, request))

    # the authorization endpoint

    async def asked(self, query: Pairs, issuer: str) -> Asked | Answered:
        """What a client asks a person for; or the answer, if it asks in a wrong way.

        An answer leads back to the client only if that is known and the address is one of its own.
        """
        try:
            request = OAuthRequest("GET", {}, query)
        except Malformed as error:
            return malformed(str(error))

        def work(core: Core) -> Asked | Answered:
            try:
                grant = core.get_consent_grant(request)
            except OAuth2Error as error:
                answer: Answered = core.handle_error_response(request, error)
                return _signed(answer, request, issuer)
            return Asked(request.client.record, tuple(request.scope.split()), grant.redirect_uri)

        return await self._in_thread(work)

    async def decide(self, query: Pairs, account: Account | None, issuer: str) -> Answered:
        """The answer to a client: a code that stands for what the account allows, or that it allows nothing."""
        request = OAuthRequest("POST", {}, query)

        def work(core: Core) -> Answered:
            try:
                grant = core.get_consent_grant(request)
            except OAuth2Error as error:
                answer: Answered = core.handle_error_response(request, error)
                return _signed(answer, request, issuer)
            answer = core.create_authorization_response(request, grant_user=account, grant=grant)
            return _signed(answer, request, issuer)

        return await self._in_thread(work)

    async def _in_thread(self, work: Callable[[Core], T]) -> T:
        core = self._core()
        return await self._workers.call(lambda: work(core))

    def _core(self) -> Core:
        core = Core(self.ledger, self.tokens, self.model, Bridge())
        core.register_grant(CodeGrant, [Proof(required=True)])
        core.register_grant(RefreshGrant)
        core.register_grant(ClientCredentials)
        core.register_endpoint(Revocation)
        core.register_endpoint(Introspection)
        return core


def malformed(description: str) -> Answered:
    """RFC 6749, §5.2."""
    return Answered(400, {"error": "invalid_request", "error_description": description})


def _signed(answer: Answered, request: OAuthRequest, issuer: str) -> Answered:
    """Say who answers (RFC 9207), behind the address as the client wrote it: the core writes its query anew."""
    if answer.location is not None:
        address = request.args["redirect_uri"]
        own, whole = (parse_qsl(urlsplit(uri).query, keep_blank_values=True) for uri in (address, answer.location))
        told = urlencode([*whole[len(own) :], ("iss", issuer)])
        answer.location = f"{address}{'&' if '?' in address else '?'}{told}"
    return answer


def metadata(issuer: str, scopes: Sequence[str]) -> dict[str, Any]:
    """What clients need to know (RFC 8414)."""
    methods = ["none", "client_secret_basic", "client_secret_post"]
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "introspection_endpoint": f"{issuer}/oauth/introspect",
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "scopes_supported": list(scopes),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "introspection_endpoint_auth_methods_supported": methods[1:],
        "authorization_response_iss_parameter_supported": True,
    }
