"""The documents that describe the service to OAuth and OpenID clients, and the userinfo endpoint.

Userinfo is asked with an access token of the scope `openid`, as the API is. What it tells of the user's own row is read
under the rules of the model, as the user: a field that the user may not read is left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from diptych.api.reply import JSON_TYPE, Header, Reply
from diptych.api.rest.translate import Target
from diptych.errors import Code, Refusal
from diptych.identity.oauth.grant_store import GrantStore
from diptych.identity.oauth.metadata import resource_metadata, server_metadata
from diptych.identity.oauth.openid import email_claims, profile_claims
from diptych.identity.scopes import EMAIL, OPENID, PROFILE
from diptych.identity.viewer import Caller, Context
from diptych.model.declare.roles import Claims
from diptych.serve.endpoint.oauth_paths import KEYS, RESOURCE
from diptych.serve.http.request import Request

ReadRow = Callable[[Target, Caller], Awaitable[bytes]]
"""Reads one row of the model as a caller may read it."""
_PUBLIC: tuple[Header, ...] = ((b"content-type", JSON_TYPE), (b"cache-control", b"public, max-age=300"))
_PRIVATE: tuple[Header, ...] = ((b"content-type", JSON_TYPE), (b"cache-control", b"no-store"))
_NARROW = b'Bearer error="insufficient_scope", scope="openid"'


class OpenidEndpoint:
    """Discovery documents and userinfo."""

    def __init__(self, context: Context, grant_store: GrantStore, read_row: ReadRow) -> None:
        self._context = context
        self._model = context.model
        self._grant_store = grant_store
        self._read_row = read_row

    def document(self, path: str, issuer: str) -> Reply:
        """The document of a well-known path."""
        scopes = sorted(self._model.scopes)
        if path == KEYS:
            body: dict[str, Any] = self._context.tokens.public()
        elif path == RESOURCE:
            body = resource_metadata(issuer, self._model.title, scopes, self._context.issuers.names)
        else:
            body = server_metadata(issuer, scopes)
        return Reply(200, _PUBLIC, msgspec.json.encode(body))

    async def userinfo(self, request: Request) -> Reply:
        """The claims about the user of an access token (OpenID Connect Core, §5.3)."""
        sent = request.headers.get(b"authorization")
        if sent is None:
            raise Refusal(Code.UNAUTHENTICATED, "Send an access token of the scope openid.")
        caller = self._context.caller(sent) or await self._context.find(sent)
        claims = caller.claims
        if claims is None or claims.scopes is None or OPENID not in claims.scopes or not claims.get("account"):
            body = {"error": "insufficient_scope", "error_description": "The token has not the scope openid."}
            return Reply(403, (*_PRIVATE, (b"www-authenticate", _NARROW)), msgspec.json.encode(body))
        return Reply(200, _PRIVATE, msgspec.json.encode(await self._claims(claims, claims.scopes, caller)))

    async def _claims(self, claims: Claims, scopes: frozenset[str], caller: Caller) -> dict[str, Any]:
        found: dict[str, Any] = {"sub": claims.get("sub")}
        if PROFILE in scopes:
            found |= await self._profile(caller)
        if EMAIL in scopes:
            account = await self._grant_store.account(claims.get("account"))
            found |= {} if account is None else email_claims(account)
        return found

    async def _profile(self, caller: Caller) -> dict[str, Any]:
        """What the row of the user tells, read as the user without the limits of the token's scopes."""
        resource, reader = self._model.user, self._context.without_scopes(caller)
        if resource is None or reader is None or reader.viewer.id is None:
            return {}
        try:
            row = await self._read_row(Target(resource.name, reader.viewer.id), reader)
        except Refusal as refusal:
            if refusal.code in (Code.NOT_FOUND, Code.FORBIDDEN, Code.UNAUTHENTICATED):
                return {}
            raise
        return profile_claims(row, resource)
