"""The documents that describe the service to OAuth and OpenID clients, and the userinfo endpoint.

Userinfo is asked with an access token of the scope `openid`, as the API is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from diptych.api.reply import JSON_TYPE, Header, Reply
from diptych.errors import Code, Refusal
from diptych.identity.oauth.grant_store import GrantStore
from diptych.identity.oauth.metadata import resource_metadata, server_metadata
from diptych.identity.scopes import OPENID
from diptych.identity.viewer import Context
from diptych.serve.endpoint.oauth_paths import KEYS, RESOURCE
from diptych.serve.endpoint.user_claims import UserClaims
from diptych.serve.http.request import Request

_PUBLIC: tuple[Header, ...] = ((b"content-type", JSON_TYPE), (b"cache-control", b"public, max-age=300"))
_FRESH: tuple[Header, ...] = ((b"content-type", JSON_TYPE), (b"cache-control", b"no-cache"))
"""Of the keys: a new one signs within a second, and who meets it asks for it again, past what a proxy has kept."""
_PRIVATE: tuple[Header, ...] = ((b"content-type", JSON_TYPE), (b"cache-control", b"no-store"))
_NARROW = b'Bearer error="insufficient_scope", scope="openid"'


class OpenidEndpoint:
    """Discovery documents and userinfo."""

    def __init__(self, context: Context, grant_store: GrantStore, user_claims: UserClaims, *, registers: bool) -> None:
        self._context = context
        self._model = context.model
        self._grant_store = grant_store
        self._user_claims = user_claims
        self._registers = registers

    async def document(self, path: str, issuer: str) -> Reply:
        """The document of a well-known path."""
        if path == KEYS:
            with suppress(Refusal):  # while the database does not answer, those that are known
                await self._context.load_keys()  # another node may sign with a key that this one has not seen yet
            return Reply(200, _FRESH, msgspec.json.encode(self._context.tokens.public()))
        scopes = sorted(self._model.scopes)
        body: dict[str, Any]
        if path == RESOURCE:
            body = resource_metadata(issuer, self._model.title, scopes, self._context.issuers.names)
        else:
            body = server_metadata(issuer, scopes, registers=self._registers)
        return Reply(200, _PUBLIC, msgspec.json.encode(body))

    async def userinfo(self, request: Request) -> Reply:
        """The claims about the user of an access token (OpenID Connect Core, §5.3)."""
        sent = request.headers.get(b"authorization")
        if sent is None:
            raise Refusal(Code.UNAUTHENTICATED, "Send an access token of the scope openid.")
        caller = self._context.caller(sent) or await self._context.find(sent)
        claims, scopes = caller.claims, caller.viewer.scopes
        account = None if claims is None else await self._grant_store.account(claims.get("account") or "")
        if claims is None or account is None or scopes is None or OPENID not in scopes:
            body = {"error": "insufficient_scope", "error_description": "The token has not the scope openid."}
            return Reply(403, (*_PRIVATE, (b"www-authenticate", _NARROW)), msgspec.json.encode(body))
        user = {"sub": claims.get("sub"), **await self._user_claims.of(account, scopes)}
        return Reply(200, _PRIVATE, msgspec.json.encode(user))
