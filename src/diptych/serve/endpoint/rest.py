"""The REST endpoints: routing by path, and reads.

The cache key of a read is the target of its path, the role, and the shape of its query string.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from msgspec import Struct

from diptych.api.json import read_json
from diptych.api.links import has_links
from diptych.api.media import content_type, negotiate
from diptych.api.reply import JSON_TYPE, PRIVATE, Header, Reply, lines_of, method_reply, not_acceptable, tag, tag_of_one
from diptych.api.rest.page import ListParts, link_header, list_body, list_parts
from diptych.api.rest.query import Query, read_query
from diptych.api.rest.query_body import in_body, read_query_body
from diptych.api.rest.target import PATH_ID, Target, cancelling, find_target, operation_name
from diptych.api.understand import understand_read
from diptych.ask.nodes import Field, Follow, Page, Read
from diptych.engine.call import CallEngine
from diptych.engine.known import KnownRequests
from diptych.engine.page import PageParts
from diptych.engine.read import Engine
from diptych.engine.read_plan import ROW, PreparedRead
from diptych.engine.write import WriteEngine
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller, Context
from diptych.live.service import LiveService
from diptych.lru import LRUCache
from diptych.model.declare.resource import Verb
from diptych.model.defs import ResourceDef
from diptych.model.viewer_object import VIEWER
from diptych.serve.endpoint.cost_header import cost_of_parts, with_cost
from diptych.serve.endpoint.deprecation_headers import with_deprecations
from diptych.serve.endpoint.rest_batch import RestBatch
from diptych.serve.endpoint.rest_calls import RestCalls
from diptych.serve.endpoint.rest_changes import RestChangeLog
from diptych.serve.endpoint.rest_export import ALL, FORMATS, RestExport, formatted, media_header, wanted_format
from diptych.serve.endpoint.rest_links import METHODS as LINK_METHODS
from diptych.serve.endpoint.rest_links import RestLinks
from diptych.serve.endpoint.rest_writes import KnownCreation, RestWrites, accept_patch
from diptych.serve.http.head_traits import ACCEPTS_JSON
from diptych.serve.http.request import Request, cursor_headers, may_keep, not_modified, variant, wants_cursor

_READING = ("GET", "HEAD", "OPTIONS")
_LISTING = (*_READING, "QUERY")
_BATCH = ("POST", "OPTIONS")
_OFFERS = ("application/json", *FORMATS)
_TYPE: Header = (b"content-type", JSON_TYPE)
_LINES = lines_of((_TYPE, *PRIVATE, (b"etag", b"%b")))
"""The headers of most answers, with a place for the ETag."""


class KnownRead(Struct, frozen=True, eq=False):
    """A prepared read that needs only its values; `page` is set for a list, `versioned` for one row with a version.

    `max_age` is how many seconds a shared cache may keep the answer; 0 means never.
    """

    ask: Read
    prepared: PreparedRead
    page: Page | None
    versioned: bool
    max_age: int

    @property
    def size(self) -> int:
        return self.prepared.size


UUID_LENGTH = 36
KnownTarget = tuple[dict[str, Any], KnownRead]
"""The values of a request, and its prepared read."""
ANSWERED = (bytes, PageParts)


async def _first(answers: Awaitable[Sequence[bytes | None]]) -> bytes | None:
    """The answer to the only Ask of a request."""
    return (await answers)[0]


_VERBS = {("POST", False): "create", ("PUT", True): "update", ("PATCH", True): "update", ("DELETE", True): "delete"}
"""The rule verb of a method, on the collection or on one row."""


class RestEndpoint:
    """The REST resources of one service."""

    def __init__(
        self,
        engine: Engine,
        write_engine: WriteEngine,
        live: LiveService,
        context: Context,
        *,
        max_body: int,
        max_export: int,
    ) -> None:
        self.engine = engine
        self.max_body = max_body
        self.live = live
        self.feed = RestChangeLog(live)
        self.calls = RestCalls(CallEngine(write_engine), max_body=max_body)
        self.writes = RestWrites(write_engine, self.read, max_body=max_body)
        self.export = RestExport(self._connection, engine, context, max_export)
        self.links = RestLinks(self.writes)
        self.batch = RestBatch(self.writes, self.calls, self.links, self.methods)
        self._known: KnownRequests[KnownRead] = KnownRequests(engine, "query strings of reads")
        self._rows: LRUCache[KnownRead] = engine.cache("reads of a row by its id")
        """Those of `_known` for a path with an id and nothing else, by the path before it."""
        self._collections = {f"/{path}": Target(resource.name) for path, resource in engine.model.by_path.items()}
        """The targets of creations, by the path as it is sent."""
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
        sets = request.method == "PUT" and target.relation != ""
        if target.other is not None or (sets and has_links(target, self.engine.model)):
            return await self.links.handle(request, caller, target)
        if request.method not in ("GET", "HEAD") or target.batch or target.restore:
            methods = self.methods(target)
            if request.method == "OPTIONS" or request.method not in methods:
                hint = _missing_rule(request.method, target)
                more = (*accept_patch(methods, many=target.id is None), *accept_query(methods))
                reply = method_reply(request.method, methods, *more, hint=hint)
                if reply is not None:
                    return reply
            cancelled = cancelling(request.method, target, self.engine.model)
            if cancelled.call:
                return await self.calls.cancel(request, caller, cancelled)
        accept = request.headers.get(b"accept", b"")
        media = "application/json" if accept in ACCEPTS_JSON else _negotiated(request, accept, target)
        if request.method == "QUERY":
            try:
                return await self._answered(request, caller, target, await self._sent_query(request, target), media)
            except Refusal as refusal:
                raise in_body(refusal) from None
        if request.method not in ("GET", "HEAD"):
            return await self.writes.handle(request, caller, target)
        return await self._answered(request, caller, target, read_query(request.query, target), media)

    def known(self, request: Request, body: bytes, caller: Caller) -> KnownTarget | KnownCreation | None:
        """The prepared request of a GET or a POST, if it is a read or the creation of a row, and is known."""
        if request.method == "POST":
            created = self._collections.get(request.path)
            return None if created is None else self.writes.known_creation(request, caller, created, body)
        collection, _, last = request.path.rpartition("/")
        by_id = len(last) == UUID_LENGTH and not request.query
        if by_id and (row := self._rows.get((collection, caller.signature))) is not None and "%" not in last:
            return {PATH_ID: last}, row
        target = find_target(request.path, self.engine.model)
        if target is None or target.call or target.changes or target.batch or target.restore or target.other:
            return None
        query = read_query(request.query, target)
        known = self._known.get(self._key(target, query, caller))
        if known is None or known.prepared.uses is not None:
            return None
        if by_id and target == Target(target.resource, last) and not self._has_calls_like(target):
            self._rows.put((collection, caller.signature), known, known.size)
        return query.inputs, known

    def _has_calls_like(self, target: Target) -> bool:
        """Could the last segment of a path be a call of the collection, where another one is an id?"""
        return any(len(segment) == UUID_LENGTH for _, segment in self.engine.model.calls[target.resource])

    def run_known(
        self, request: Request, caller: Caller, found: KnownTarget | KnownCreation, media: str
    ) -> Reply | Awaitable[Reply]:
        """The reply to a known request, or an awaitable of it."""
        if isinstance(found, KnownCreation):
            return self.writes.create(request, caller, found, None)
        inputs, known = found
        if known.page:
            page = self.engine.answer_list_now(known.prepared, inputs, caller.viewer)
            if page is None or isinstance(page, ANSWERED):
                return self._shown(request, inputs, known, page)
            return self._shown_later(request, inputs, known, page)
        answers = self.engine.answer_now(known.prepared, inputs, caller.viewer)
        if isinstance(answers, ROW):
            return self._shown(request, inputs, known, answers[0])
        return self._shown_later(request, inputs, known, _first(answers))

    async def _shown_later(
        self, request: Request, inputs: dict[str, Any], known: KnownRead, answer: Awaitable[PageParts | bytes | None]
    ) -> Reply:
        return self._shown(request, inputs, known, await answer)

    def _shown(
        self, request: Request, inputs: dict[str, Any], known: KnownRead, answer: PageParts | bytes | None
    ) -> Reply:
        """The reply with what a statement returned."""
        if answer is None:
            raise row_not_found()
        if isinstance(answer, bytes) and not known.page:
            return _answer(request, known, answer, tag_of_one(answer, known.versioned), ())
        return self._page(request, inputs, known, answer, (), "application/json")

    async def _sent_query(self, request: Request, target: Target) -> Query:
        """The parameters in the body of a QUERY request."""
        if content_type(request.headers.get(b"content-type", b"")) != ("application/json", "utf-8"):
            raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the query as application/json in UTF-8.")
        body = read_json(await request.body(self.max_body))
        if request.query:
            raise Refusal(Code.BAD_REQUEST, "Send all parameters in the body.")
        return read_query_body(body, target)

    async def _answered(self, request: Request, caller: Caller, target: Target, query: Query, media: str) -> Reply:
        if media != "application/json" and query.parameters.get("first") == ALL:
            return await self.export.reply(target, query, caller, media, head=request.method == "HEAD")
        prefers = b"prefer" in request.headers
        with_change_cursor = prefers and wants_cursor(request)
        known = self.recognise(target, query, caller, with_change_cursor)
        if with_change_cursor:
            await self.live.tail.settle()
        answer: PageParts | bytes | None
        more: tuple[Header, ...] = ()
        if with_change_cursor:
            answer, position = await self.engine.answer(known.prepared, query.inputs, caller.viewer)
            more = cursor_headers(self.live.cursor(position))
        elif known.page:
            answer = await self.engine.answer_list(known.prepared, query.inputs, caller.viewer)
        else:
            (answer,) = await self.engine.answer(known.prepared, query.inputs, caller.viewer)
        if answer is None:
            raise row_not_found()
        reply = (
            _answer(request, known, answer, tag_of_one(answer, known.versioned), more)
            if isinstance(answer, bytes) and not known.page
            else self._page(request, query.inputs, known, answer, more, media)
        )
        if known.prepared.uses is not None:
            reply = with_deprecations(reply, self.engine.usage, [(known.prepared, query.inputs)], caller)
        if not prefers:
            return reply
        return with_cost(request, reply, lambda: cost_of_parts([(known.prepared, query.inputs)], self.engine.limits))

    def methods(self, target: Target) -> tuple[str, ...]:
        """The methods of a path, for any role."""
        if target.call:
            return self.calls.methods(target)
        if target.batch or target.restore:
            return _BATCH
        if target.other is not None:
            return LINK_METHODS
        if target.relation or target.numbers:
            return (*_LISTING, "PUT") if target.relation and has_links(target, self.engine.model) else _LISTING
        return _READING if target.changes else self._methods[target.resource, target.id is not None]

    async def read(self, target: Target, caller: Caller) -> bytes:
        """One row, as in the response to GET."""
        query = read_query("", target)
        known = self.recognise(target, query, caller)
        (answer,) = await self.engine.answer(known.prepared, query.inputs, caller.viewer)
        if answer is None:
            raise row_not_found()
        return answer

    def recognise(self, target: Target, query: Query, caller: Caller, with_change_cursor: bool = False) -> KnownRead:
        """The prepared request of a target and a query string, from the cache or made anew."""
        key = self._key(target, query, caller, with_change_cursor)
        known = self._known.get(key)
        if known is None:
            with self._known.planning():
                known = self._prepare(target, query, caller, with_change_cursor)
            self._known.keep(key, known, shape=query.shape)
        return known

    @staticmethod
    def _key(target: Target, query: Query, caller: Caller, with_change_cursor: bool = False) -> tuple[object, ...]:
        """Everything of a request but its values."""
        place = target.relation or (target.numbers and f"/{target.numbers}")
        return target.resource, target.id is None, place, query.shape, caller.signature, with_change_cursor

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
        versioned = ask.take == "one" and Field("version", "version") in ask.pick
        return KnownRead(ask, prepared, inner.page, versioned, prepared.max_age)

    async def _connection(self, target: Target, query: Query, caller: Caller) -> tuple[Read, PreparedRead, bytes]:
        """A page, as the database returns it, with its plan."""
        known = self.recognise(target, query, caller)
        (answer,) = await self.engine.answer(known.prepared, query.inputs, caller.viewer)
        if answer is None:
            raise row_not_found()
        return known.ask, known.prepared, answer

    def _page(
        self,
        request: Request,
        inputs: dict[str, Any],
        known: KnownRead,
        answer: PageParts | bytes,
        more: tuple[Header, ...],
        media: str,
    ) -> Reply:
        if isinstance(answer, bytes):
            if known.ask.take == "one":  # a relation: {"postsConnection":{…}}
                answer = answer[answer.index(b":") + 1 : -1]
            parts: ListParts = list_parts(answer)
        else:
            parts = answer
        size, kind = _size(known, inputs), _TYPE
        if media == "application/json":
            body = list_body(*parts, size)
        else:
            rows = b"".join((b"[", parts[0], b"]"))
            body, kind = formatted(rows, media, known.ask, self.engine.model.resources), media_header(media)
        if request.method == "QUERY":  # its pages have no URLs
            return _answer(request, known, body, tag(body), more, kind)
        links = link_header(request.root + request.path, request.query, size, parts[1], parts[2])
        return _answer(request, known, body, tag(body), (*links, *more), kind)


def _negotiated(request: Request, accept: bytes, target: Target) -> str:
    """The media type of the response; a Refusal if none of those on offer is acceptable."""
    is_list = (target.id is None or target.relation) and not target.numbers and target.resource != VIEWER
    if wanted_format(accept) and request.method in _LISTING and is_list:
        media = negotiate(accept, _OFFERS)
        if media is not None and media != "application/json":
            return media
    if negotiate(accept, ("application/json",)) is None:
        raise not_acceptable("application/json")
    return "application/json"


def accept_query(methods: Sequence[str]) -> tuple[Header, ...]:
    """The `Accept-Query` header (RFC 10008), if QUERY is allowed."""
    return ((b"accept-query", b"application/json"),) if "QUERY" in methods else ()


def _missing_rule(method: str, target: Target) -> str:
    """Why a path does not have a method: a rule could allow it, and there is none."""
    is_row = not (target.relation or target.batch or target.restore or target.numbers) and target.resource != VIEWER
    verb = _VERBS.get((method, target.id is not None)) if is_row else None
    return f" No rule of the model lets anyone {verb} a row of {target.resource}." if verb else ""


def _collection(resource: ResourceDef) -> tuple[str, ...]:
    own: tuple[tuple[Verb, str], ...] = (("create", "POST"), ("update", "PATCH"), ("delete", "DELETE"))
    return (*_LISTING, *(method for verb, method in own if resource.offers(verb)))


def _member(resource: ResourceDef) -> tuple[str, ...]:
    update = ("PUT", "PATCH") if resource.offers("update") else ()
    return (*_READING, *update, *(("DELETE",) if resource.offers("delete") or resource.is_job else ()))


def _size(known: KnownRead, inputs: dict[str, Any]) -> int:
    assert known.page is not None
    return int(known.prepared.binder.fetch[known.page.size.index](inputs))


def _answer(
    request: Request, known: KnownRead, body: bytes, mark: bytes, more: tuple[Header, ...], kind: Header = _TYPE
) -> Reply:
    if request.coding:
        mark = variant(request, mark, len(body))
    keep = may_keep(request, known.max_age) if known.max_age and request.method != "QUERY" else PRIVATE
    had = request.headers.get(b"if-none-match")
    if had is not None and not_modified(had, mark):
        return Reply(304, (*keep, (b"etag", mark), *more))
    head = (kind, *keep, (b"etag", mark), *more)
    is_usual = kind is _TYPE and keep is PRIVATE and not more
    return Reply(200, head, body, None, (head, _LINES % mark) if is_usual else None)


def row_not_found() -> Refusal:
    """The refusal for a row that does not exist, or that the viewer may not see: both look the same."""
    return Refusal(Code.NOT_FOUND, "There is nothing here.")
