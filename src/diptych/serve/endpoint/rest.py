"""The REST endpoints: routing by path, and reads.

The cache key of a read is the target of its path, the role, and the shape of its query string.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from diptych.api.json import read_json
from diptych.api.media import content_type, negotiate
from diptych.api.reply import JSON_TYPE, PRIVATE, Header, Reply, method_reply, not_acceptable, tag, tag_of_one
from diptych.api.rest.page import link_header, page_body
from diptych.api.rest.query_body import in_body, read_query_body
from diptych.api.rest.target import Target, find_target, operation_name
from diptych.api.rest.translate import Query, read_query
from diptych.api.understand import understand_read
from diptych.ask.nodes import Field, Follow, Page, Read
from diptych.engine.call import CallEngine
from diptych.engine.known import KnownRequests
from diptych.engine.read import Engine, PreparedRead
from diptych.engine.write import WriteEngine
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.live.service import LiveService
from diptych.model.defs import ResourceDef
from diptych.model.viewer_object import VIEWER
from diptych.serve.endpoint.cost_header import cost_of_parts, with_cost
from diptych.serve.endpoint.rest_batch import RestBatch
from diptych.serve.endpoint.rest_calls import RestCalls
from diptych.serve.endpoint.rest_changes import RestChangeLog
from diptych.serve.endpoint.rest_writes import RestWrites, accept_patch
from diptych.serve.http.request import Request, cursor_headers, may_keep, not_modified, variant, wants_cursor

_READING = ("GET", "HEAD", "OPTIONS")
_LISTING = (*_READING, "QUERY")
_BATCH = ("POST", "OPTIONS")
_TYPE: Header = (b"content-type", JSON_TYPE)


@dataclass(frozen=True, slots=True, eq=False)
class KnownRead:
    """A prepared read that needs only its values; `page` is set for a list, `versioned` for one row with a version."""

    ask: Read
    prepared: PreparedRead
    page: Page | None
    versioned: bool

    @property
    def size(self) -> int:
        return self.prepared.size


_VERBS = {("POST", False): "create", ("PUT", True): "update", ("PATCH", True): "update", ("DELETE", True): "delete"}
"""The rule verb of a method, on the collection or on one row."""


class RestEndpoint:
    """The REST resources of one service."""

    def __init__(self, engine: Engine, write_engine: WriteEngine, live: LiveService, *, max_body: int) -> None:
        self.engine = engine
        self.max_body = max_body
        self.live = live
        self.feed = RestChangeLog(live)
        self.calls = RestCalls(CallEngine(write_engine), max_body=max_body)
        self.changes = RestWrites(write_engine, self.read, max_body=max_body)
        self.batch = RestBatch(self.changes, self.calls, self.methods)
        self._known: KnownRequests[KnownRead] = KnownRequests(engine, "query strings of reads")
        resources = engine.model.resources.items()
        self._methods = {(name, False): _collection(resource) for name, resource in resources}
        self._methods[VIEWER, False] = _READING
        self._methods |= {(name, True): _member(resource) for name, resource in resources}

    def target(self, path: str) -> Target | None:
        return find_target(path, self.engine.model)

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        if target.call:
            return await self.calls.handle(request, caller, target)
        if target.changes:
            return await self.feed.handle(request, caller, target)
        if request.method not in ("GET", "HEAD") or target.batch:
            methods = self.methods(target)
            if request.method == "OPTIONS" or request.method not in methods:
                hint = _missing_rule(request.method, target)
                more = (*accept_patch(methods), *accept_query(methods))
                reply = method_reply(request.method, methods, *more, hint=hint)
                if reply is not None:
                    return reply
        if negotiate(request.headers.get(b"accept", b""), ("application/json",)) is None:
            raise not_acceptable("application/json")
        if request.method == "QUERY":
            try:
                return await self._answered(request, caller, target, await self._sent_query(request, target))
            except Refusal as refusal:
                raise in_body(refusal) from None
        if request.method not in ("GET", "HEAD"):
            return await self.changes.handle(request, caller, target)
        return await self._answered(request, caller, target, read_query(request.query, target))

    async def _sent_query(self, request: Request, target: Target) -> Query:
        """The parameters in the body of a QUERY request."""
        if content_type(request.headers.get(b"content-type", b"")) != ("application/json", "utf-8"):
            raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the query as application/json in UTF-8.")
        body = read_json(await request.body(self.max_body))
        if request.query:
            raise Refusal(Code.BAD_REQUEST, "Send all parameters in the body.")
        return read_query_body(body, target)

    async def _answered(self, request: Request, caller: Caller, target: Target, query: Query) -> Reply:
        prefers = b"prefer" in request.headers
        with_change_cursor = prefers and wants_cursor(request)
        known = self._recognise(target, query, caller, with_change_cursor)
        if with_change_cursor:
            await self.live.tail.settle()
        answer, *position = await self.engine.answer(known.prepared, query.inputs, caller.viewer)
        if answer is None:
            raise row_not_found()
        more = cursor_headers(self.live.cursor(position[0])) if with_change_cursor else ()
        reply = (
            self._page(request, query, known, answer, more)
            if known.page
            else _answer(request, known, answer, tag_of_one(answer, known.versioned), more)
        )
        if not prefers:
            return reply
        return with_cost(request, reply, lambda: cost_of_parts([(known.prepared, query.inputs)], self.engine.limits))

    def methods(self, target: Target) -> tuple[str, ...]:
        """The methods of a path, for any role."""
        if target.call:
            return self.calls.methods(target)
        if target.batch:
            return _BATCH
        if target.relation:
            return _LISTING
        return _READING if target.changes else self._methods[target.resource, target.id is not None]

    async def read(self, target: Target, caller: Caller) -> bytes:
        """One row, as in the response to GET."""
        query = read_query("", target)
        known = self._recognise(target, query, caller)
        (answer,) = await self.engine.answer(known.prepared, query.inputs, caller.viewer)
        if answer is None:
            raise row_not_found()
        return answer

    def _recognise(self, target: Target, query: Query, caller: Caller, with_change_cursor: bool = False) -> KnownRead:
        key = (target.resource, target.id is None, target.relation, query.shape, caller.signature, with_change_cursor)
        known = self._known.get(key)
        if known is None:
            with self._known.planning():
                known = self._prepare(target, query, caller, with_change_cursor)
            self._known.keep(key, known, shape=query.shape)
        return known

    def _prepare(self, target: Target, query: Query, caller: Caller, with_change_cursor: bool) -> KnownRead:
        name = operation_name("GET", target, self.engine.model)
        measures = query.measure(name, caller.viewer, self.engine.checks)  # syntax errors come before those of the role
        view = self.engine.model.view(caller.signature)
        wish = understand_read(target, query, view)
        (ask,) = wish.asks
        inner = ask.pick[0].read if target.relation and isinstance(ask.pick[0], Follow) else ask
        prepared = self.engine.prepare(
            wish, view, Code.BAD_REQUEST, query.inputs, measures, with_change_cursor=with_change_cursor
        )
        return KnownRead(ask, prepared, inner.page, ask.take == "one" and Field("version", "version") in ask.pick)

    @staticmethod
    def _page(request: Request, query: Query, known: KnownRead, answer: bytes, more: tuple[Header, ...]) -> Reply:
        if known.ask.take == "one":  # a relation: {"postsConnection":{…}}
            answer = answer[answer.index(b":") + 1 : -1]
        size = _size(known, query.inputs)
        body, following, previous = page_body(answer, size)
        if request.method == "QUERY":  # its pages have no URLs
            return _answer(request, known, body, tag(body), more)
        links = link_header(request.root + request.path, request.query, size, following, previous)
        return _answer(request, known, body, tag(body), (*links, *more))


def accept_query(methods: Sequence[str]) -> tuple[Header, ...]:
    """The `Accept-Query` header (RFC 10008), if QUERY is allowed."""
    return ((b"accept-query", b"application/json"),) if "QUERY" in methods else ()


def _missing_rule(method: str, target: Target) -> str:
    """Why a path does not have a method: a rule could allow it, and there is none."""
    is_row = not target.relation and not target.batch and target.resource != VIEWER
    verb = _VERBS.get((method, target.id is not None)) if is_row else None
    return f" No rule of the model lets anyone {verb} a row of {target.resource}." if verb else ""


def _collection(resource: ResourceDef) -> tuple[str, ...]:
    return (*_LISTING, "POST") if resource.offers("create") else _LISTING


def _member(resource: ResourceDef) -> tuple[str, ...]:
    update = ("PUT", "PATCH") if resource.offers("update") else ()
    return (*_READING, *update, *(("DELETE",) if resource.offers("delete") else ()))


def _size(known: KnownRead, inputs: dict[str, Any]) -> int:
    assert known.page is not None
    return int(known.prepared.binder.sources[known.page.size.index].fetch(inputs))


def _answer(request: Request, known: KnownRead, body: bytes, mark: bytes, more: tuple[Header, ...]) -> Reply:
    age = known.prepared.max_age if request.method != "QUERY" else 0
    mark = variant(request, mark, len(body))
    head = (*(may_keep(request, age) if age else PRIVATE), (b"etag", mark), *more)
    if not_modified(request.headers.get(b"if-none-match"), mark):
        return Reply(304, head)
    return Reply(200, (_TYPE, *head), body)


def row_not_found() -> Refusal:
    """The refusal for a row that does not exist, or that the viewer may not see: both look the same."""
    return Refusal(Code.NOT_FOUND, "There is nothing here.")
