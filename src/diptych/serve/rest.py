"""The resource endpoints: a path and its query in, bytes out.

Hot, a request is recognised by what its path names, the role, and the shape of its query string.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from diptych.api.media import negotiate
from diptych.api.reply import JSON, NO_STORE, PRIVATE, Header, Reply, problem, tag, tag_of_one
from diptych.api.rest.page import link, page_body
from diptych.api.rest.translate import (
    Query,
    Target,
    check_target,
    find_target,
    operation_name,
    read_query,
    translate,
)
from diptych.ask.nodes import Field, Follow, Page, Read
from diptych.calls import Calls
from diptych.engine import Engine, Ready
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.live.live import Live
from diptych.lru import LRUCache, footprint
from diptych.model.defs import ResourceDef
from diptych.serve.changes import RestChanges, accept_patch
from diptych.serve.code import RestCalls
from diptych.serve.cost import cost_of_parts, wants_cost, with_cost
from diptych.serve.feed import RestFeed
from diptych.serve.http import Request, cursor_headers, may_keep, not_modified, wants_cursor
from diptych.transact import Transactor

_READING = ("GET", "HEAD", "OPTIONS")
_TYPE: Header = (b"content-type", JSON)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A request that needs only its values; `page` is the page it answers, `versioned` if it is one resource."""

    ask: Read
    ready: Ready
    page: Page | None
    versioned: bool

_VERBS = {("POST", False): "create", ("PUT", True): "update", ("PATCH", True): "update", ("DELETE", True): "delete"}
"""The verb that a rule must allow for a method, on the collection or on one row."""


class RestEndpoint:
    """The resources of one service."""

    def __init__(self, engine: Engine, transactor: Transactor, live: Live, *, max_body: int) -> None:
        self.engine = engine
        self.live = live
        self.feed = RestFeed(live)
        self.calls = RestCalls(Calls(transactor), max_body=max_body)
        self.changes = RestChanges(transactor, self.read, max_body=max_body)
        self._known: LRUCache[Known] = engine.cache("query strings of reads")
        resources = engine.model.resources.items()
        self._methods = {(name, False): _collection(found) for name, found in resources}
        self._methods |= {(name, True): _member(found) for name, found in resources}

    def target(self, path: str) -> Target | None:
        """What a path names, if it names anything."""
        return find_target(path, self.engine.model)

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        if target.call:
            return await self.calls.handle(request, caller, target)
        if target.changes:
            return await self.feed.handle(request, caller, target)
        if request.method not in ("GET", "HEAD"):
            methods = self.methods(target)
            allow: Header = (b"allow", ", ".join(methods).encode())
            if request.method not in methods:
                return problem(_not_allowed(request.method, target, methods), (allow,))
            if request.method == "OPTIONS":
                return Reply(204, (allow, *accept_patch(methods), *NO_STORE))
        if negotiate(request.headers.get(b"accept", b""), ("application/json",)) is None:
            return problem(Refusal(Code.NOT_ACCEPTABLE, "This answers application/json."))
        if request.method not in ("GET", "HEAD"):
            return await self.changes.handle(request, caller, target)
        query = read_query(request.query, target)
        prefers = b"prefer" in request.headers
        told = prefers and wants_cursor(request)
        known = self._recognise(target, query, caller, told)
        answer, *place = await self.engine.answer(known.ready, query.inputs, caller.viewer)
        if answer is None:
            raise not_found()
        more = cursor_headers(self.live.cursor(place[0])) if told else ()
        reply = (self._page(request, query, known, answer, more) if known.page
                 else _answer(request, known, answer, tag_of_one(answer, known.versioned), more))  # fmt: skip
        if prefers and wants_cost(request):
            return with_cost(reply, cost_of_parts([(known.ready, query.inputs)], self.engine.limits))
        return reply

    def methods(self, target: Target) -> tuple[str, ...]:
        """The methods that a path has, for whatever role."""
        if target.call:
            return self.calls.methods(target)
        return _READING if target.relation or target.changes else self._methods[target.resource, target.id is not None]

    async def read(self, target: Target, caller: Caller) -> bytes:
        """One row, as GET gives it."""
        query = read_query("", target)
        known = self._recognise(target, query, caller)
        (answer,) = await self.engine.answer(known.ready, query.inputs, caller.viewer)
        if answer is None:
            raise not_found()
        return answer

    def _recognise(self, target: Target, query: Query, caller: Caller, place: bool = False) -> Known:
        key = (target.resource, target.id is None, target.relation, query.shape, caller.signature, place)
        known = self._known.get(key)
        if known is None:
            with self.engine.meter.planning():
                known = self._prepare(target, query, caller, place)
            self._known.put(key, known, known.ready.size + footprint(query.shape))
        return known

    def _prepare(self, target: Target, query: Query, caller: Caller, place: bool) -> Known:
        name = operation_name("GET", target, self.engine.model)
        asked = query.asked(name, caller.viewer, self.engine.checks)  # faults of grammar come before those of the role
        view = self.engine.model.view(caller.signature)
        check_target(target, view)
        wish = translate(target, query, view)
        (ask,) = wish.asks
        inner = ask.pick[0].read if target.relation and isinstance(ask.pick[0], Follow) else ask
        ready = self.engine.ready(
            wish.asks, wish.slots, wish.sources, view, Code.BAD_REQUEST, inputs=query.inputs, asked=asked, place=place
        )
        return Known(ask, ready, inner.page, _is_versioned(ask))

    @staticmethod
    def _page(request: Request, query: Query, known: Known, answer: bytes, more: tuple[Header, ...]) -> Reply:
        if known.ask.take == "one":  # a relation: {"postsConnection":{…}}
            answer = answer[answer.index(b":") + 1 : -1]
        size = _size(known, query.inputs)
        body, following, previous = page_body(answer, size)
        links = link(request.root + request.path, request.query, size, following, previous)
        return _answer(request, known, body, tag(body), (*links, *more))


def _not_allowed(method: str, target: Target, methods: Sequence[str]) -> Refusal:
    """A method that a path does not have; if some rule could give it, what no rule allows."""
    verb = _VERBS.get((method, target.id is not None)) if not target.relation else None
    why = f" No rule of the model lets anyone {verb} a row of {target.resource}." if verb else ""
    return Refusal(Code.METHOD_NOT_ALLOWED, f"Use {', '.join(methods)}.{why}")


def _collection(resource: ResourceDef) -> tuple[str, ...]:
    return (*_READING, "POST") if resource.offers("create") else _READING


def _member(resource: ResourceDef) -> tuple[str, ...]:
    update = ("PUT", "PATCH") if resource.offers("update") else ()
    return (*_READING, *update, *(("DELETE",) if resource.offers("delete") else ()))


def _size(known: Known, inputs: dict[str, Any]) -> int:
    assert known.page is not None
    return int(known.ready.binder.sources[known.page.size.index].fetch(inputs))


def _answer(request: Request, known: Known, body: bytes, mark: bytes, more: tuple[Header, ...]) -> Reply:
    age = known.ready.max_age
    head = (*(may_keep(request, age) if age else PRIVATE), (b"etag", mark), *more)
    if not_modified(request.headers.get(b"if-none-match"), mark):
        return Reply(304, head)
    return Reply(200, (_TYPE, *head), body)


def _is_versioned(ask: Read) -> bool:
    return ask.take == "one" and Field("version", "version") in ask.pick


def not_found() -> Refusal:
    """What is not there, or not for this viewer: the two cannot be told apart."""
    return Refusal(Code.NOT_FOUND, "There is nothing here.")
