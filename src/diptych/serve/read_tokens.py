"""Read tokens: what a client has written or seen, so that any node may answer its next read from a replica.

    Prefer: read-token               →    Read-Token: JfU2…       covers all that this request has written or seen
    Read-Token: JfU2…, 0aBc…         →    Read-Token: 9sWq…       is answered by a server that has all of that

A token is a change cursor (`ask/change_cursor.py`), valid on every node; the cursors of a stream will do too. Requests
without one see all that was committed before they began, so a client may forget its tokens at any time. A node without
replicas gives tokens with writes only: for a read it would have to ask for the newest position.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from diptych.api.reply import Header, Reply
from diptych.api.rest.precondition import preferences
from diptych.ask.change_cursor import FeedPosition, ForeignFeed
from diptych.db.freshness import FRESHNESS, Freshness, SeenPosition, newest
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.live.service import LiveService
from diptych.serve.http.request import Request

Route = Callable[[Request, Caller], Coroutine[Any, Any, Reply]]
Refuse = Callable[[Request, Refusal], Reply]
_HEADER = b"read-token"
_MOST = 16
"""Tokens that one request may carry."""


def routed(route: Route, store: Store, live: LiveService, refuse: Refuse) -> Route:
    """The same routes, with read tokens where the database may have replicas."""
    return ReadTokens(route, store, live, refuse) if store.numbers else route


class ReadTokens:
    """Routes requests, and gives those that carry read tokens, or prefer them, new ones."""

    def __init__(self, route: Route, store: Store, live: LiveService, refuse: Refuse) -> None:
        self._route = route
        self._store = store
        self._live = live
        self._refuse = refuse

    def __call__(self, request: Request, caller: Caller) -> Coroutine[Any, Any, Reply]:
        headers = request.headers
        if _HEADER in headers or (b"prefer" in headers and "read-token" in preferences(headers[b"prefer"])):
            return self._tracked(request, caller)
        if FRESHNESS.get() is not None:  # of the request before on this connection
            FRESHNESS.set(None)
        return self._route(request, caller)

    async def _tracked(self, request: Request, caller: Caller) -> Reply:
        freshness = Freshness(self._required(request.headers.get(_HEADER)))
        FRESHNESS.set(freshness)
        try:
            reply = await self._route(request, caller)
        except Refusal as refusal:  # it may tell what the client has not seen yet
            if refusal.code is Code.UNAVAILABLE:
                raise
            reply = self._refuse(request, refusal)
        if reply.stream is not None or (not self._store.replicas and freshness.is_covered):
            return reply  # a node without replicas has read the newest state, whose position nobody has asked for
        with suppress(Refusal):  # without a token, the next request sees everything
            covered = freshness.covers or newest(await self._store.head())
            token: Header = (_HEADER, self._live.tail.change_cursors.seal(FeedPosition(*covered)).encode())
            return Reply(reply.status, (*reply.headers, token), reply.body)
        return reply

    def _required(self, sent: bytes | None) -> SeenPosition | None:
        """The newest position of the tokens that were sent; None if one of them is of another database."""
        if sent is None:
            return None
        texts = [text.strip() for text in sent.decode("latin-1").split(",")]
        if len(texts) > _MOST:
            raise Refusal(Code.BAD_REQUEST, f"Read-Token has more than {_MOST} tokens.")
        try:
            positions = [self._live.tail.change_cursors.open(text) for text in texts]
        except ForeignFeed:
            return None
        except ValueError:
            raise Refusal(Code.BAD_REQUEST, "Read-Token must be what a response had in that header.") from None
        return SeenPosition(*max(positions))
