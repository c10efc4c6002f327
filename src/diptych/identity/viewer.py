"""Authentication: from the Authorization header to a Caller. It runs on every request, before the body is read.

A verified token is cached until it expires or is revoked; a request without one is anonymous. What is cached is a
Caller: the viewer with the signature that plans and schemas are keyed by. If a model has a viewer class of its own, its
code runs on every request, so that changes of a viewer take effect at once.

`caller` answers without waiting. Where it returns None, `find` looks further: for an API key in the store, for a new
signing key of ours, and for the keys of another issuer.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.fair.caller import short_name
from diptych.identity.api_keys import is_api_key, look_up
from diptych.identity.issuers.trusted import Issuers
from diptych.identity.revocation_list import Name, RevocationList, keys_of
from diptych.identity.tokens import COMMAND_LINE, Tokens, claimed_issuer, client_of, kid_of, token_keys
from diptych.lru import LRUCache, footprint
from diptych.model.declare.roles import Claims, Viewer
from diptych.model.model import Model
from diptych.model.signature import Signature

log = logging.getLogger("diptych")
_KEPT, _KEPT_BYTES = 10_000, 32 << 20
_PAUSES = 20
"""The sweep for revoked callers takes at most one part in this many of the time."""
_SCHEME = b"Bearer "
_CALLER = 1_600
"""Bytes of a caller, besides its claims."""


class Caller(Struct, frozen=True, eq=False):
    """An authenticated viewer with what is derived from its token."""

    viewer: Viewer
    signature: Signature
    expires: float = float("inf")
    name: str = ""
    """Owner of what is stored under a caller's name: the user, or else the token; "" if anonymous."""
    fairness_key: str = ""
    """Key by which resources are shared fairly: the user, or else the client, or else the token."""
    claims: Claims | None = None
    revocable: frozenset[Name] = frozenset()
    """Names by which its token can be revoked."""
    sent: bytes | None = None
    """The normalised Authorization header that authenticated it; the key of the cache."""

    def has_viewer_of(self, other: Caller) -> bool:
        """Is the viewer the same, with the same roles and values?"""
        return self is other or (self.viewer == other.viewer and self.signature == other.signature)


class InvalidToken(Refusal):
    """The token of a request is malformed, expired or revoked."""

    def __init__(self) -> None:
        super().__init__(Code.UNAUTHENTICATED, "The token is not valid or has expired.")


def _bearer(authorization: bytes) -> str:
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not token.isascii():
        raise InvalidToken
    return token.strip().decode("ascii")


def _normal(token: str) -> bytes:
    """The normal form of the header for a token, which is the key of the cache."""
    return _SCHEME + token.encode("ascii")


def _fairness_key(name: str, viewer: Viewer, claims: Claims) -> str:
    """The key by which resources are shared. Without a user one can get any number of tokens, so then it is the account
    or client that gets them; tokens made by hand have nothing else to tell them apart."""
    owner = claims.get("account") or client_of(claims)
    return name if viewer.id is not None or owner in (None, COMMAND_LINE) else f"client:{owner}"


class Context:
    """Authenticates requests by their Authorization header."""

    def __init__(self, model: Model, tokens: Tokens, store: Store, issuers: Issuers | None = None) -> None:
        self.model = model
        self.tokens = tokens
        self.store = store
        self.issuers = issuers or Issuers(())
        self.revoked = RevocationList(store, self._revoke, self.load_keys)
        self.anonymous = Caller(model.anonymous, model.signature(model.anonymous))
        self._cache: LRUCache[Caller] = LRUCache("tokens and their callers", _KEPT, _KEPT_BYTES)
        self._loaded_at = 0.0
        self._looking: asyncio.Task[None] | None = None
        """The look for new signing keys that is under way."""
        self._revoked_names: set[Name] = set()
        """Names that were revoked since the last sweep."""
        self._sweeping: asyncio.TimerHandle | None = None
        self._next_sweep = 0.0
        self._has_own_viewer = model.viewer_type is not Viewer
        self.on_revoked: Callable[[], None] | None = None
        """Called after revocations, for streams that outlive a request."""

    def caller(self, authorization: bytes | None) -> Caller | None:
        """The caller of a request; InvalidToken if its token is not valid; None if `find` must look further."""
        if authorization is None:
            return self.anonymous
        caller = self._cache.get(authorization)
        if caller is None:
            return self._not_cached(authorization)
        if caller.expires <= time.time() or (
            self._revoked_names and not self._revoked_names.isdisjoint(caller.revocable)
        ):
            self._cache.drop(authorization)
            return self._not_cached(authorization)
        return self._reviewed(caller) if self._has_own_viewer else caller

    def _not_cached(self, authorization: bytes) -> Caller | None:
        """The caller of a header that is not cached; it may be another spelling of one that is."""
        token = _bearer(authorization)
        normal = _normal(token)
        if normal != authorization:
            return self.caller(normal)
        return None if self._needs_lookup(token) else self._admit(token, self._verified(token))

    async def find(self, authorization: bytes) -> Caller:
        """The caller of a token that needs the store or another issuer."""
        token = _bearer(authorization)
        if is_api_key(token):
            claims = await look_up(self.store, token)
        elif self.issuers.knows(claimed_issuer(token)):
            claims = await self.issuers.verify(token)
        else:
            await self.find_key(token)
            claims = self._verified(token)
        if claims is None:
            raise InvalidToken
        return self._admit(token, claims)

    async def verify_again(self, caller: Caller) -> None:
        """Raise InvalidToken if the token of a caller is no longer valid, or its viewer is not the same as before."""
        sent = caller.sent
        if sent is not None and not caller.has_viewer_of(self.caller(sent) or await self.find(sent)):
            raise InvalidToken

    def _needs_lookup(self, token: str) -> bool:
        return is_api_key(token) or self.issuers.knows(claimed_issuer(token)) or self._may_have_new_key(token)

    def _may_have_new_key(self, token: str) -> bool:
        """May it be signed with a key of ours that this process has not loaded yet?"""
        try:
            is_unknown = not self.tokens.has(kid_of(token))
        except ValueError:
            return False
        return is_unknown and (self._looking is not None or time.monotonic() > self._loaded_at + 1)

    async def find_key(self, token: str) -> None:
        """Load the signing keys if a token may be signed with one that another process has made. All who meet it at
        once wait for one look."""
        if not self._may_have_new_key(token):
            return
        if self._looking is None:
            self._loaded_at = time.monotonic()
            self._looking = asyncio.create_task(self.load_keys())
            self._looking.add_done_callback(self._looked)
        await asyncio.shield(self._looking)

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._looking = None
        if not task.cancelled():
            task.exception()  # those who waited have it; perhaps nobody does any more

    async def load_keys(self) -> None:
        """Load the signing keys. If they have changed, drop all cached callers, so that tokens are verified again."""
        if self.tokens.replace(await token_keys(self.store)):
            self._cache.clear()

    def _verified(self, token: str) -> Claims:
        try:
            return self.tokens.verify(token)
        except Refusal:
            raise InvalidToken from None

    def _revoke(self, names: Collection[Name]) -> None:
        """Revoke callers at once; their cache entries are swept a little later, together."""
        self._revoked_names.update(names)
        if self._sweeping is None:
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(max(0.0, self._next_sweep - loop.time()), self._sweep)

    def _sweep(self) -> None:
        """Drop revoked callers. This looks at every entry, so sweeps are spaced out."""
        begun = time.perf_counter()
        names, self._revoked_names, self._sweeping = self._revoked_names, set(), None
        for sent in [sent for sent, caller in self._cache.items() if not names.isdisjoint(caller.revocable)]:
            self._cache.drop(sent)
        if self.on_revoked is not None:
            self.on_revoked()
        self._next_sweep = asyncio.get_running_loop().time() + _PAUSES * (time.perf_counter() - begun)

    def _admit(self, token: str, claims: Claims) -> Caller:
        """Cache and return the caller of a verified token, unless it is revoked."""
        if self.revoked.is_revoked(claims):
            raise InvalidToken
        viewer = self._viewer(claims)
        sent = _normal(token)
        name = viewer.id or "token:" + hashlib.sha256(sent).hexdigest()
        signature = self.model.signature(viewer)
        fairness_key = short_name(_fairness_key(name, viewer, claims))
        caller = Caller(viewer, signature, claims.expires, name, fairness_key, claims, frozenset(keys_of(claims)), sent)
        plain = (sent, claims.subject, claims.roles, claims.scopes, claims.all, viewer.roles, dict(viewer.all_known()))
        self._cache.put(sent, caller, _CALLER + footprint(plain))
        return caller

    def _viewer(self, claims: Claims) -> Viewer:
        try:
            viewer = self.model.viewer_of(claims)
        except ValueError as error:
            log.warning("the viewer of a token has a value that its class does not take: %s", error)
            raise InvalidToken from None
        if viewer is None:
            raise InvalidToken
        return viewer

    def _reviewed(self, caller: Caller) -> Caller:
        """The same caller, with the viewer that the model's own code returns now."""
        assert caller.claims is not None
        viewer = self._viewer(caller.claims)
        if viewer == caller.viewer:
            return caller
        name = viewer.id or caller.name
        return replace(caller, viewer=viewer, signature=self.model.signature(viewer), name=name)
