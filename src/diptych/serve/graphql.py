"""The query endpoint: bytes in, bytes out.

Hot, a request is recognised by its document, operation, role and the shape of its variables, and only bound
and run. Cold, it is parsed, permitted, validated, translated and planned first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from graphql import GraphQLSchema, OperationType

from diptych.api.graphql.document import (
    Document,
    check_document,
    check_roots,
    check_variables,
    introspect,
    read_document,
)
from diptych.api.graphql.http import (
    LEGACY,
    OFFERS,
    RESPONSE,
    DocumentRefusal,
    Parameters,
    error_reply,
    read_body,
    read_query,
)
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.translate import Operation, Root, translate
from diptych.api.media import content_type, negotiate
from diptych.api.reply import NO_STORE, PRIVATE, Header, Reply, tag
from diptych.ask.wish import WriteWish
from diptych.calls import CallDeed, Calls, ReadyCall
from diptych.engine import Engine, Ready
from diptych.errors import Code, Fault, Place, Refusal
from diptych.identity.viewer import Caller
from diptych.live.live import Live
from diptych.model.view import Signature, View
from diptych.recall import Recall
from diptych.serve.http import Request, cursor_headers, last_event, not_modified, wants_cursor
from diptych.serve.replay import keeping, key_of
from diptych.serve.sse import STREAM, sse_refused, sse_reply, sse_result
from diptych.transact import Deed, Done, Keeping, ReadyWrite, Transactor, joined
from diptych.watch import ReadyWatch

Variables = Mapping[str, Any]
_SHAPES = 64
"""How many shapes of its variables are kept for one document."""
_HEAD = {media: ((b"content-type", f"{media}; charset=utf-8".encode()), *PRIVATE) for media in OFFERS}
_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
_OFFERS = (*OFFERS, STREAM)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An operation that needs only its values: what runs, and the constant bytes between its answers."""

    ready: Ready | None
    pieces: tuple[bytes, ...]
    keep: bool = True
    writes: tuple[tuple[str, ReadyWrite | ReadyCall], ...] = ()
    """The changes that run, by their keys in the answer."""
    changes: tuple[tuple[Place, ReadyWrite], ...] = ()
    """The same by their places in the answer, if none of them calls the model's own code."""
    calls: Mapping[str, ReadyCall] = field(default_factory=dict)
    """The queries of the model's own code that run, by their keys in the answer."""
    order: tuple[str, ...] = ()
    """The keys of all that runs, if there are calls among it."""
    watch: ReadyWatch | None = None
    """What a subscription follows; the pieces go around each of its changes."""
    place: bool = False
    """Is the last answer the end of the feed?"""

    def join(self, answers: Sequence[bytes | None]) -> bytes:
        """The whole body."""
        pieces = self.pieces
        if len(answers) == 1:
            return b"".join((pieces[0], answers[0] or b"null", pieces[1]))
        pairs = zip(pieces, (answer or b"null" for answer in answers), strict=False)
        return b"".join([part for pair in pairs for part in pair] + [pieces[-1]])


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of an operation: its whole result; or, of a subscription, what it follows, and what goes around each
    change."""

    body: bytes = b""
    refused: Refusal | None = None
    watch: ReadyWatch | None = None
    pieces: tuple[bytes, ...] = ()
    inputs: Variables = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Entry:
    """A document that was seen, with what is known for each shape of its variables."""

    document: Document
    reads: bool
    """Is it a query, which can be sent in every way?"""
    known: dict[Any, Known] = field(default_factory=dict)


class GraphqlEndpoint:
    """`/graphql` of one service."""

    def __init__(
        self, engine: Engine, transactor: Transactor, live: Live, *, max_body: int, introspection: bool
    ) -> None:
        self.engine = engine
        self.transactor = transactor
        self.live = live
        self.calls = Calls(transactor)
        self.max_body = max_body
        self.introspection = introspection
        self._entries: Recall[Entry] = Recall(engine.plans.size)
        self._schemas: dict[Signature, GraphQLSchema] = {}

    def schema(self, signature: Signature) -> GraphQLSchema:
        """The schema of a role; the newest few are kept."""
        found = self._schemas.get(signature)
        if found is None:
            if len(self._schemas) >= 64:
                del self._schemas[next(iter(self._schemas))]
            found = self._schemas[signature] = build_schema(self.engine.model.view(signature))
        return found

    async def handle(self, request: Request, caller: Caller) -> Reply:
        if request.method not in _METHODS:
            refusal = Refusal(Code.METHOD_NOT_ALLOWED, f"Use {', '.join(_METHODS)}.")
            return error_reply(refusal, LEGACY, (_allow(*_METHODS),))
        if request.method == "OPTIONS":
            return Reply(204, (_allow(*_METHODS), *NO_STORE))
        media = negotiate(request.headers.get(b"accept", b""), _OFFERS)
        if media is None:
            return error_reply(Refusal(Code.NOT_ACCEPTABLE, f"This answers {' or '.join(_OFFERS)}."), LEGACY)
        if media == STREAM:
            return await self._stream(request, caller)
        try:
            if request.method != "POST":
                return await self._get(request, caller, media)
            body = await self._posted(request)
            entry, variables, known = self._recognise(read_body(body), request, caller)
            if known.writes:
                return await self._write(known, variables, caller, media, keeping(request, caller, body))
            answer, more = await self._read(entry, variables, known, caller)
            return Reply(200, (*_HEAD[media], *more) if more else _HEAD[media], answer)
        except Refusal as refusal:
            headers = (_allow("POST"),) if refusal.code is Code.METHOD_NOT_ALLOWED else ()
            return error_reply(refusal, media, headers)

    async def _posted(self, request: Request) -> bytes:
        if content_type(request.headers.get(b"content-type", b"")) != ("application/json", "utf-8"):
            raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the request as application/json in UTF-8.")
        return await request.body(self.max_body)

    async def _get(self, request: Request, caller: Caller, media: str) -> Reply:
        body, more = await self._read(*self._recognise(read_query(request.query), request, caller), caller)
        mark = tag(body)
        headers = (*_HEAD[media], (b"etag", mark), *more)
        if not_modified(request.headers.get(b"if-none-match"), mark):
            return Reply(304, headers[1:])
        return Reply(200, headers, body)

    async def _stream(self, request: Request, caller: Caller) -> Reply:
        """Any operation, answered by events."""
        try:
            posted = await self._posted(request) if request.method == "POST" else b""
            parameters = read_body(posted) if posted else read_query(request.query)
            entry, variables, known = self._recognise(parameters, request, caller, streams=True)
            if known.watch is None:
                if known.writes:
                    kept = keeping(request, caller, posted)
                    reply = await self._write(known, variables, caller, RESPONSE, kept)
                    return sse_result(reply.body)
                return sse_result((await self._read(entry, variables, known, caller))[0])
            watch, last = known.watch, last_event(request)
            return await sse_reply(
                lambda sink: self.live.subscribe(watch, variables, caller, sink, last), known.pieces,
                head=request.method == "HEAD",
            )  # fmt: skip
        except Refusal as refusal:
            return sse_refused(refusal, (_allow("POST"),) if refusal.code is Code.METHOD_NOT_ALLOWED else ())

    async def run(self, parameters: Parameters, caller: Caller) -> Outcome:
        """Any operation, for a transport that carries several."""
        try:
            entry, variables, known = self._recognise(parameters, None, caller, streams=True)
            if known.watch is not None:
                return Outcome(watch=known.watch, pieces=known.pieces, inputs=variables)
            if known.writes:
                return Outcome((await self._write(known, variables, caller, RESPONSE, None)).body)
            return Outcome((await self._read(entry, variables, known, caller))[0])
        except Refusal as refusal:
            return Outcome(error_reply(refusal, RESPONSE).body, refusal)

    def _recognise(
        self, parameters: Parameters, request: Request | None, caller: Caller, *, streams: bool = False
    ) -> tuple[Entry, Variables, Known]:
        """What a request runs; cold, it is understood and planned first."""
        query, variables = parameters.query, parameters.variables or {}
        if query is None:
            raise Refusal(Code.BAD_REQUEST, "The request has no query.")
        key = (query, parameters.operationName, caller.signature)
        entry = self._entries.get(key)
        if entry is None:
            document = self._document(parameters, query, request, caller, streams)
            entry = Entry(document, document.operation.operation is OperationType.QUERY)
            self._entries.put(key, entry)
        elif not entry.reads:
            _check_way(entry.document.operation.operation, request, caller, streams)
        place = entry.reads and request is not None and wants_cursor(request)
        shape: Any = entry.document.shape(variables)
        if place:
            shape = (shape, "place")
        known = entry.known.get(shape)
        if known is None:
            known = self._prepare(entry.document, variables, caller, place)
            if known.keep and len(entry.known) < _SHAPES:
                entry.known[shape] = known
        return entry, variables, known

    async def _read(
        self, entry: Entry, variables: Variables, known: Known, caller: Caller
    ) -> tuple[bytes, tuple[Header, ...]]:
        """The answer to a query, and headers that go with it."""
        if known.calls:
            return known.join(await self._call(known, variables, caller)), ()
        if known.ready is None:
            return known.pieces[0], ()
        try:
            answers = await self.engine.answer(known.ready, variables, caller.viewer)
        except Refusal as refusal:
            if refusal.code is Code.BAD_USER_INPUT:
                check_variables(entry.document, variables, self.schema(caller.signature))
            raise
        if known.place:
            return known.join(answers[:-1]), cursor_headers(self.live.cursor(answers[-1]))
        return known.join(answers), ()

    async def _write(
        self, known: Known, variables: Variables, caller: Caller, media: str, kept: Keeping[Reply] | None
    ) -> Reply:
        """All changes of a request, in one transaction."""

        def finish(done: Sequence[Done]) -> Reply:
            return Reply(200, _HEAD[media], known.join([each.answer for each in done]))

        if known.changes:
            changes = [Deed(ready, variables, path) for path, ready in known.changes]
            return await self.transactor.write(changes, caller.viewer, finish, kept)
        deeds = [Deed(ready, variables, (label,)) if isinstance(ready, ReadyWrite) else
                 CallDeed(ready, variables, (label,)) for label, ready in known.writes]  # fmt: skip
        return await self.calls.write(deeds, caller.viewer, finish, kept)

    async def _call(self, known: Known, variables: Variables, caller: Caller) -> list[bytes | None]:
        """The answers to a request that calls the model's own code, in the order asked."""
        found: dict[str, bytes | None] = {}
        for label, ready in known.calls.items():
            found[label] = await self.calls.read(CallDeed(ready, variables, (label,)), caller.viewer)
        asked = [label for label in known.order if label not in known.calls]
        if known.ready is not None:
            found |= zip(asked, await self.engine.answer(known.ready, variables, caller.viewer), strict=True)
        return [found[label] for label in known.order]

    def _document(
        self, parameters: Parameters, query: str, request: Request | None, caller: Caller, streams: bool
    ) -> Document:
        node, operation = read_document(query, parameters.operationName)
        _check_way(operation.operation, request, caller, streams)
        check_roots(node, operation, self.engine.model.view(caller.signature))
        return check_document(node, operation, self.schema(caller.signature))

    def _prepare(self, document: Document, variables: Mapping[str, Any], caller: Caller, place: bool) -> Known:
        schema = self.schema(caller.signature)
        view = self.engine.model.view(caller.signature)
        try:
            check_variables(document, variables, schema)
        except DocumentRefusal as refusal:
            if document.operation.operation is OperationType.MUTATION:
                raise self._with_all_faults(refusal, document, variables, view) from None
            raise
        operation = translate(document.node, document.operation, variables, view)
        meta: dict[str, Any] = {}
        if any(root.kind == "introspection" for root in operation.roots):
            if not self.introspection:
                raise Refusal(Code.FORBIDDEN, "Introspection is closed here.")
            meta = introspect(document, variables, schema)
        pieces = _pieces(operation.roots, meta)
        if operation.watch is not None:
            return Known(None, pieces, watch=self.live.watcher.ready(operation.watch, view, Code.BAD_USER_INPUT))
        if operation.writes:
            writes = self._ready_writes(operation, variables, view)
            changes = tuple(((label,), each) for label, each in writes if isinstance(each, ReadyWrite))
            return Known(None, pieces, writes=writes, changes=changes if len(changes) == len(writes) else ())
        wish = operation.wish
        place = place and bool(wish.asks) and not operation.calls  # code of the model reads in a snapshot of its own
        ready = None
        if wish.asks:
            ready = self.engine.ready(
                wish.asks, wish.slots, wish.sources, view, Code.BAD_USER_INPUT, place=place
            )
        labels = [root.label for root in operation.roots if root.kind == "call"]
        calls = {label: self.calls.ready(each, variables, view)
                 for label, each in zip(labels, operation.calls, strict=True)}  # fmt: skip
        order = tuple(root.label for root in operation.roots if root.kind in ("ask", "call"))
        return Known(ready, pieces, keep=not (meta and document.variables), calls=calls, order=order, place=place)

    def _with_all_faults(
        self, refusal: DocumentRefusal, document: Document, variables: Variables, view: View
    ) -> Refusal:
        """All that is wrong with the values of a mutation, where graphql-core tells of their types alone."""
        faults: tuple[Fault, ...] = ()
        try:
            self._ready_writes(translate(document.node, document.operation, variables, view), variables, view)
        except Refusal as own:
            faults = own.faults if own.code is refusal.code else ()
        told = {fault.place[:2] for fault in faults}
        others = [fault for fault in refusal.faults if fault.place not in told]
        return Refusal(refusal.code, refusal.message, [*faults, *others])

    def _ready_writes(
        self, operation: Operation, variables: Variables, view: View
    ) -> tuple[tuple[str, ReadyWrite | ReadyCall], ...]:
        """The changes of an operation, made ready; the faults of all of them are told at once."""
        labels = [root.label for root in operation.roots if root.kind == "ask"]
        found: list[tuple[str, ReadyWrite | ReadyCall]] = []
        refusals: list[Refusal] = []
        for label, wish in zip(labels, operation.writes, strict=True):
            try:
                ready = (self.transactor.ready(wish, variables, view) if isinstance(wish, WriteWish)
                         else self.calls.ready(wish, variables, view))  # fmt: skip
                ready.binder(variables)
                found.append((label, ready))
            except Refusal as refusal:
                refusals.append(refusal)
        if refusals:
            raise joined(refusals)
        return tuple(found)


def _check_way(kind: OperationType, request: Request | None, caller: Caller, streams: bool) -> None:
    """Refuse what cannot be sent so, whatever it asks for; also when it is well known. (A socket takes everything.)"""
    if kind is OperationType.SUBSCRIPTION and not streams:
        raise Refusal(Code.NOT_ACCEPTABLE, f"A subscription is answered as {STREAM}, or over a WebSocket.")
    if kind is OperationType.MUTATION and request is not None:
        if request.method != "POST":
            raise Refusal(Code.METHOD_NOT_ALLOWED, "A mutation cannot be sent by GET.")
        key_of(request, caller)


def _pieces(roots: Sequence[Root], meta: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The constant bytes of an answer, cut where the answers of the Asks stand."""
    pieces: list[bytes] = []
    constant = b'{"data":{'
    for index, root in enumerate(roots):
        constant += b"," * (index > 0) + b'"' + root.label.encode() + b'":'
        if root.kind in ("ask", "call"):
            pieces.append(constant)
            constant = b""
        else:
            constant += root.constant or msgspec.json.encode(meta[root.label])
    return (*pieces, constant + b"}}")


def _allow(*methods: str) -> tuple[bytes, bytes]:
    return (b"allow", ", ".join(methods).encode())
