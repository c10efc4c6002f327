"""The changes of a collection: `GET /posts/changes`, as a stream or as a page of the log."""

from __future__ import annotations

import hashlib

from diptych.api.draft import DEFAULT_SIZE
from diptych.api.media import negotiate
from diptych.api.reply import JSON, NO_STORE, PRIVATE, Header, Reply, problem
from diptych.api.rest.query import bad
from diptych.api.rest.translate import Query, Target, check_target, operation_name, read_query, translate_changes
from diptych.ask.slots import SIZE
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.live.live import Live, Page
from diptych.lru import LRUCache, footprint
from diptych.serve.cost import cost_of_changes, wants_cost, with_cost
from diptych.serve.http import Request, last_event, not_modified
from diptych.serve.sse import STREAM, sse_reply
from diptych.watch import ReadyWatch

_METHODS = ("GET", "HEAD", "OPTIONS")
_ALLOW: Header = (b"allow", ", ".join(_METHODS).encode())
_OFFERS = ("application/json", STREAM)


class RestFeed:
    """The changes of all resources of one service."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self._known: LRUCache[ReadyWatch] = live.watcher.engine.cache("query strings of changes followed")

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        if request.method not in _METHODS:
            return problem(Refusal(Code.METHOD_NOT_ALLOWED, f"Use {', '.join(_METHODS)}."), (_ALLOW,))
        if request.method == "OPTIONS":
            return Reply(204, (_ALLOW, *NO_STORE))
        media = negotiate(request.headers.get(b"accept", b""), _OFFERS)
        if media is None:
            return problem(Refusal(Code.NOT_ACCEPTABLE, f"This answers {' or '.join(_OFFERS)}."))
        query = read_query(request.query, target)
        if media == STREAM:
            if "first" in query.parameters:
                raise bad("first", "a stream has no end, and takes no page size")
            ready, last = self._recognise(target, query, caller), last_event(request)
            reply = await sse_reply(
                lambda sink: self.live.subscribe(ready, query.inputs, caller, sink, last), None,
                head=request.method == "HEAD",
            )
            return self._told(request, reply, ready, query)
        size = self._size(query)
        ready = self._recognise(target, query, caller)
        reply = _page(request, await self.live.log(ready, query.inputs, caller, size))
        return self._told(request, reply, ready, query, size)

    def _told(self, request: Request, reply: Reply, ready: ReadyWatch, query: Query, many: int = 1) -> Reply:
        """The reply, with the cost of so many changes if that is wanted."""
        if not wants_cost(request):
            return reply
        return with_cost(reply, cost_of_changes(ready, query.inputs, self.live.watcher.engine.limits, many))

    def _recognise(self, target: Target, query: Query, caller: Caller) -> ReadyWatch:
        key = (target.resource, query.shape, caller.signature)
        known = self._known.get(key)
        if known is None:
            with self.live.watcher.engine.meter.planning():
                known = self._prepare(target, query, caller)
            self._known.put(key, known, known.size + footprint(query.shape))
        return known

    def _prepare(self, target: Target, query: Query, caller: Caller) -> ReadyWatch:
        engine = self.live.watcher.engine
        name = operation_name("GET", target, engine.model)
        asked = query.asked(name, caller.viewer, engine.checks)  # faults of grammar come before those of the role
        view = engine.model.view(caller.signature)
        check_target(target, view)
        return self.live.watcher.ready(translate_changes(target, query, view), view, Code.BAD_REQUEST, asked)

    def _size(self, query: Query) -> int:
        most = self.live.watcher.engine.limits.page
        given = query.parameters.get("first")
        try:
            size = DEFAULT_SIZE if given is None else SIZE.parse_text(given)
        except ValueError as error:
            raise bad("first", str(error)) from None
        if size > most:
            raise bad("first", f"expected a page size of at most {most}, got {size}")
        return int(size)


def _page(request: Request, page: Page) -> Reply:
    """A page of the log. Its tag is of what it tells and whether there is more; cursors are never the same twice."""
    following = b"null" if page.next is None else b'"%b"' % page.next.encode()
    body = b'{"data":[%b],"page":{"next":%b,"last":"%b"}}' % (b",".join(page.changes), following, page.last.encode())
    digest = hashlib.sha256(b"\n".join((*page.told, b"more" * (page.next is not None)))).hexdigest()[:24]
    mark = b'"%b"' % digest.encode()
    head: tuple[Header, ...] = (*PRIVATE, (b"etag", b"W/" + mark), (b"change-cursor", page.last.encode()))
    if not_modified(request.headers.get(b"if-none-match"), mark):
        return Reply(304, head)
    return Reply(200, ((b"content-type", JSON), *head), body)
