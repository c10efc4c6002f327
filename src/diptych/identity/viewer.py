"""The context step: who asks? It runs on every request, before the body is read.

A token is verified once and kept until it expires or is revoked; a request without one is anonymous. What is kept is
a Caller: the viewer with the signature by which plans and schemas are found. Where a model has viewers of its own,
its code is asked on every request, so that what it learns of a viewer meanwhile holds at once.

`caller` answers at once for all that needs no look elsewhere; `find` looks: for an API key in the store, for a key of
our own that is new, and for the keys of another issuer.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from diptych.asking import short_name
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.api_keys import is_api_key, look_up
from diptych.identity.issuers.trusted import Issuers
from diptych.identity.keys import key_rows
from diptych.identity.revoked import Name, Revoked, keys_of
from diptych.identity.tokens import COMMAND_LINE, Tokens, issuer_of, kid_of
from diptych.lru import LRUCache, footprint
from diptych.model.model import Model
from diptych.model.roles import Claims, Viewer
from diptych.model.view import Signature

log = logging.getLogger("diptych")
_KEPT, _KEPT_BYTES = 10_000, 32 << 20
_PAUSES = 20
"""Callers who have ended are looked for in so small a part of all time."""
_SCHEME = b"Bearer "
_CALLER = 1_600
"""Bytes of a caller, besides its claims."""


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """A viewer, ready to be served."""

    viewer: Viewer
    signature: Signature
    expires: float = float("inf")
    name: str = ""
    """Who it is, for what is kept under a caller's name: the user, or else the token. Nobody has none."""
    asker: str = ""
    """Under which name it takes its turn among others: the user, or else the client, or else the token."""
    claims: Claims | None = None
    revocable: frozenset[Name] = frozenset()
    """By what its token can be revoked."""
    sent: bytes | None = None
    """The Authorization header that proved it, in its one normal form; by it, it can be asked for again."""


class InvalidToken(Refusal):
    """A token was sent, and it is bad, expired or revoked."""

    def __init__(self) -> None:
        super().__init__(Code.UNAUTHENTICATED, "The token is not valid or has expired.")


def _bearer(authorization: bytes) -> str:
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not token.isascii():
        raise InvalidToken
    return token.strip().decode("ascii")


def _normal(token: str) -> bytes:
    """The one header that stands for a token, however it was written."""
    return _SCHEME + token.encode("ascii")


def _asker(name: str, viewer: Viewer, claims: Claims) -> str:
    """Under which name a caller takes its turn. Who has no user can get any number of tokens, so that is whoever gets
    them; those that were made by hand have nothing else to tell them apart."""
    found = claims.get("account") or claims.get("client_id")
    return name if viewer.id is not None or found in (None, COMMAND_LINE) else f"client:{found}"


class Context:
    """Tells who asks from the Authorization header."""

    def __init__(self, model: Model, tokens: Tokens, store: Store, issuers: Issuers | None = None) -> None:
        self.model = model
        self.tokens = tokens
        self.store = store
        self.issuers = issuers or Issuers(())
        self.revoked = Revoked(store, self._end, self._look_for_keys)
        self.anonymous = Caller(model.anonymous, model.signature(model.anonymous))
        self._known: LRUCache[Caller] = LRUCache("tokens and their callers", _KEPT, _KEPT_BYTES)
        self._looked = 0.0
        self._ended: set[Name] = set()
        """What was revoked since callers were looked at."""
        self._sweeping: asyncio.TimerHandle | None = None
        self._next_sweep = 0.0
        self._asks_model = model.viewer_type is not Viewer
        self.when_ended: Callable[[], None] | None = None
        """Called when callers have ended, for whoever serves some of them for longer than a request."""

    def caller(self, authorization: bytes | None) -> Caller | None:
        """The caller of a request; InvalidToken if there is a token and it does not hold; None if `find` must tell."""
        if authorization is None:
            return self.anonymous
        found = self._known.get(authorization)
        if found is None:
            return self._unknown(authorization)
        if found.expires <= time.time() or (self._ended and not self._ended.isdisjoint(found.revocable)):
            self._known.drop(authorization)
            return self._unknown(authorization)
        return self._asked_again(found) if self._asks_model else found

    def _unknown(self, authorization: bytes) -> Caller | None:
        """The caller of a header that is none of those kept: it may be another form of one of them."""
        token = _bearer(authorization)
        normal = _normal(token)
        if normal != authorization:
            return self.caller(normal)
        return None if self._is_elsewhere(token) else self._welcome(token, self._verified(token))

    async def find(self, authorization: bytes) -> Caller:
        """The caller whom only a look elsewhere can tell."""
        token = _bearer(authorization)
        if is_api_key(token):
            found = await look_up(self.store, token)
        elif self.issuers.knows(issuer_of(token)):
            found = await self.issuers.verify(token)
        else:
            self._looked = time.monotonic()
            await self._look_for_keys()
            found = self._verified(token)
        if found is None:
            raise InvalidToken
        return self._welcome(token, found)

    def _is_elsewhere(self, token: str) -> bool:
        return is_api_key(token) or self.issuers.knows(issuer_of(token)) or self._may_be_new(token)

    def _may_be_new(self, token: str) -> bool:
        """May a key of our own have signed it that this process has not seen yet?"""
        try:
            return not self.tokens.has(kid_of(token)) and time.monotonic() > self._looked + 1
        except ValueError:
            return False

    async def _look_for_keys(self) -> None:
        """Take the keys of the store. Where they are others than before, every token is verified anew."""
        if self.tokens.replace(await key_rows(self.store)):
            self._known.clear()

    def _verified(self, token: str) -> Claims:
        try:
            return self.tokens.verify(token)
        except Refusal:
            raise InvalidToken from None

    def _end(self, names: Collection[Name]) -> None:
        """Callers whose token was revoked end at once; what is kept of them is dropped soon, together."""
        self._ended.update(names)
        if self._sweeping is None:
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(max(0.0, self._next_sweep - loop.time()), self._sweep)

    def _sweep(self) -> None:
        """Drop the callers who have ended. That looks at every one, so it takes a small part of the loop's time."""
        begun = time.perf_counter()
        names, self._ended, self._sweeping = self._ended, set(), None
        for sent in [sent for sent, each in self._known.items() if not names.isdisjoint(each.revocable)]:
            self._known.drop(sent)
        if self.when_ended is not None:
            self.when_ended()
        self._next_sweep = asyncio.get_running_loop().time() + _PAUSES * (time.perf_counter() - begun)

    def _welcome(self, token: str, claims: Claims) -> Caller:
        """The caller of a token that is proven, unless it was revoked."""
        if self.revoked.ends(claims):
            raise InvalidToken
        viewer = self._viewer(claims)
        sent = _normal(token)
        name = viewer.id or "token:" + hashlib.sha256(sent).hexdigest()
        signature = self.model.signature(viewer)
        asker = short_name(_asker(name, viewer, claims))
        caller = Caller(viewer, signature, claims.expires, name, asker, claims, frozenset(keys_of(claims)), sent)
        plain = (sent, claims.subject, claims.roles, claims.scopes, claims.all, viewer.roles, dict(viewer.all_known()))
        self._known.put(sent, caller, _CALLER + footprint(plain))
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

    def _asked_again(self, found: Caller) -> Caller:
        """The same caller, as the model's own code sees it now."""
        assert found.claims is not None
        viewer = self._viewer(found.claims)
        if viewer == found.viewer:
            return found
        name = viewer.id or found.name
        return replace(found, viewer=viewer, signature=self.model.signature(viewer), name=name)
