"""`GET /posts/changes`: the changes of a collection, as an event stream or as a page of the change log."""

from __future__ import annotations

import hashlib

from diptych.api.ask_builder import DEFAULT_SIZE
from diptych.api.media import negotiate
from diptych.api.query_string import bad_parameter
from diptych.api.reply import JSON_TYPE, PRIVATE, Header, Reply, method_reply, not_acceptable
from diptych.api.rest.query import Query, read_query
from diptych.api.rest.target import Target, operation_name
from diptych.api.understand import understand_changes
from diptych.ask.slots import SIZE
from diptych.engine.known import KnownRequests
from diptych.engine.watch import PreparedWatch
from diptych.errors import Code
from diptych.identity.viewer import Caller
from diptych.live.log_page import LogPage
from diptych.live.service import LiveService
from diptych.serve.endpoint.cost_header import cost_of_changes, with_cost
from diptych.serve.endpoint.deprecation_headers import with_deprecations
from diptych.serve.http.request import Request, last_event, not_modified, variant
from diptych.serve.stream.sse import STREAM, sse_reply

_OFFERS = ("application/json", STREAM)


class RestChangeLog:
    """The change endpoints of all resources of one service."""

    def __init__(self, live: LiveService) -> None:
        self.live = live
        engine = live.watch_engine.engine
        self._known: KnownRequests[PreparedWatch] = KnownRequests(engine, "query strings of changes followed")

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        if (reply := method_reply(request.method, ("GET", "HEAD", "OPTIONS"))) is not None:
            return reply
        media = negotiate(request.headers.get(b"accept", b""), _OFFERS)
        if media is None:
            raise not_acceptable(*_OFFERS)
        query = read_query(request.query, target)
        if media == STREAM:
            if "first" in query.parameters:
                raise bad_parameter("first", "a stream has no page size")
            prepared, last = self.recognise(target, query, caller), last_event(request)
            reply = await sse_reply(
                lambda sink: self.live.subscribe(prepared, query.inputs, caller, sink, last),
                None,
                head=request.method == "HEAD",
            )
            return self._noted(request, reply, prepared, query, caller)
        size = self._size(query)
        prepared = self.recognise(target, query, caller)
        reply = _page(request, await self.live.log(prepared, query.inputs, caller, size))
        return self._noted(request, reply, prepared, query, caller, size)

    def _noted(
        self, request: Request, reply: Reply, prepared: PreparedWatch, query: Query, caller: Caller, many: int = 1
    ) -> Reply:
        """The reply, with the cost of `many` changes if the client prefers it, and what is deprecated in it."""
        engine = self.live.watch_engine.engine
        limits = engine.limits
        reply = with_deprecations(reply, engine.usage, [(prepared, query.inputs)], caller)
        return with_cost(request, reply, lambda: cost_of_changes(prepared, query.inputs, limits, many))

    def recognise(self, target: Target, query: Query, caller: Caller) -> PreparedWatch:
        """The prepared request of a target and a query string, from the cache or made anew."""
        key = (target.resource, query.shape, caller.signature)
        known = self._known.get(key)
        if known is None:
            with self._known.planning():
                known = self._prepare(target, query, caller)
            self._known.keep(key, known, shape=query.shape)
        return known

    def _prepare(self, target: Target, query: Query, caller: Caller) -> PreparedWatch:
        engine = self.live.watch_engine.engine
        name = operation_name("GET", target, engine.model)
        measures = query.measure(name, caller.viewer, engine.checks)  # syntax errors come before those of the role
        view = engine.model.view(caller.signature)
        return self.live.watch_engine.prepare(understand_changes(target, query, view), view, Code.BAD_REQUEST, measures)

    def _size(self, query: Query) -> int:
        most = self.live.watch_engine.engine.limits.page
        text = query.parameters.get("first")
        try:
            size = DEFAULT_SIZE if text is None else SIZE.parse_text(text)
        except ValueError as error:
            raise bad_parameter("first", str(error)) from None
        if size > most:
            raise bad_parameter("first", f"expected a page size of at most {most}, got {size}")
        return int(size)


def _page(request: Request, page: LogPage) -> Reply:
    """A page of the change log. Its entity tag leaves out the cursors, which differ with every request."""
    following = b"null" if page.next is None else b'"%b"' % page.next.encode()
    body = b'{"data":[%b],"page":{"next":%b,"last":"%b"}}' % (b",".join(page.changes), following, page.last.encode())
    digest = hashlib.sha256(b"\n".join((*page.bare, b"more" * (page.next is not None)))).hexdigest()[:24]
    mark = variant(request, b'"%b"' % digest.encode(), len(body))
    head: tuple[Header, ...] = (*PRIVATE, (b"etag", b"W/" + mark), (b"change-cursor", page.last.encode()))
    if not_modified(request.headers.get(b"if-none-match"), mark):
        return Reply(304, head)
    return Reply(200, ((b"content-type", JSON_TYPE), *head), body)
