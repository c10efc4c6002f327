"""The cold half of the query endpoint: from the parameters of a request to what runs.

A request is recognised by its document, operation, role and the shape of its variables. One that was never seen is
read, permitted, validated, translated and planned first; what was seen twice is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from graphql import GraphQLSchema, OperationType

from diptych.api.graphql.document import (
    Document,
    check_document,
    check_roots,
    check_variables,
    count_variables,
    introspect,
    read_document,
)
from diptych.api.graphql.http import DocumentRefusal, Parameters
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.translate import Operation, Root, translate
from diptych.ask.asked import Asked
from diptych.ask.wish import WriteWish
from diptych.calls import Calls, ReadyCall
from diptych.engine import Engine, Ready
from diptych.errors import Code, Fault, Place, Refusal
from diptych.identity.viewer import Caller
from diptych.live.live import Live
from diptych.lru import LRUCache, footprint
from diptych.model.roles import NOBODY
from diptych.model.view import Signature, View
from diptych.serve.http import Request, wants_cursor
from diptych.serve.replay import key_of
from diptych.serve.sse import STREAM
from diptych.steps import ReadyWrite, joined
from diptych.transact import Transactor
from diptych.watch import ReadyWatch

Variables = Mapping[str, Any]
_SHAPES = 64
"""How many shapes of its variables are kept for one document."""
_SCHEMAS, _SCHEMA_BYTES, _SCHEMA_FACTOR = 64, 64 << 20, 8
_KNOWN, _ENTRY, _PER_TOKEN = 1_000, 3_000, 600
"""Bytes of what is known of a shape, of a document that was read, and of each of its tokens."""


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
    max_age: int = 0
    """For how many seconds anyone may keep the answer; 0 is never."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        parts = (self.ready, self.watch, *(each for _, each in self.writes), *self.calls.values())
        return _KNOWN + sum(map(len, self.pieces)) + sum(each.size for each in parts if each is not None)

    def join(self, answers: Sequence[bytes | None]) -> bytes:
        """The whole body."""
        pieces = self.pieces
        if len(answers) == 1:
            return b"".join((pieces[0], answers[0] or b"null", pieces[1]))
        pairs = zip(pieces, (answer or b"null" for answer in answers), strict=False)
        return b"".join([part for pair in pairs for part in pair] + [pieces[-1]])


@dataclass(slots=True, eq=False)
class Entry:
    """A document that was seen, with what is known for each shape of its variables."""

    document: Document
    asked: Asked
    """What it asks for, as far as its text tells."""
    reads: bool
    """Is it a query, which can be sent in every way?"""
    known: dict[Any, Known] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many bytes it takes, without what is known of shapes."""
        return _ENTRY + self.asked.document + _PER_TOKEN * self.asked.tokens


class Planner:
    """Knows what the documents of one service mean to each role."""

    def __init__(self, engine: Engine, transactor: Transactor, live: Live, *, introspection: bool) -> None:
        self.engine = engine
        self.transactor = transactor
        self.live = live
        self.calls = Calls(transactor)
        self.introspection = introspection
        self._entries: LRUCache[Entry] = engine.cache("documents")
        self._schemas: LRUCache[GraphQLSchema] = LRUCache("schemas of roles", _SCHEMAS, _SCHEMA_BYTES, largest=1)

    def schema(self, signature: Signature) -> GraphQLSchema:
        """The schema of a role; the newest few are kept."""
        found = self._schemas.get(signature)
        if found is None:
            view = self.engine.model.view(signature)
            found = build_schema(view)
            self._schemas.put(signature, found, _SCHEMA_FACTOR * view.size)
        return found

    def recognise(
        self, parameters: Parameters, request: Request | None, caller: Caller, *, streams: bool = False
    ) -> tuple[Entry, Variables, Known]:
        """What a request runs; cold, it is understood and planned first, in the caller's time."""
        query, variables = parameters.query, parameters.variables or {}
        if query is None:
            raise Refusal(Code.BAD_REQUEST, "The request has no query.")
        key = (query, parameters.operationName, caller.signature)
        entry = self._entries.get(key)
        is_new = entry is None
        if entry is None:
            asked = Asked("graphql", caller.viewer)
            with self.engine.meter.planning():
                document = self._document(parameters, query, asked, request, caller, streams)
            entry = Entry(document, replace(asked, viewer=NOBODY), document.operation.operation is OperationType.QUERY)
            self._entries.put(key, entry, entry.size + footprint(key[:2]))
        elif not entry.reads:
            _check_way(entry.document.operation.operation, request, caller, streams)
        place = entry.reads and request is not None and b"prefer" in request.headers and wants_cursor(request)
        shape: Any = entry.document.shape(variables)
        if place:
            shape = (shape, "place")
        known = entry.known.get(shape)
        if known is None:
            asked = replace(entry.asked, viewer=caller.viewer)
            with self.engine.meter.planning(goes_on=is_new):
                known = self._prepare(entry.document, variables, asked, caller, place)
            if known.keep and len(entry.known) < _SHAPES:
                entry.known[shape] = known
                self._entries.grow(key, known.size + footprint(shape))
        return entry, variables, known

    def _document(
        self, parameters: Parameters, query: str, asked: Asked, request: Request | None, caller: Caller,
        streams: bool,
    ) -> Document:  # fmt: skip
        node, operation = read_document(query, parameters.operationName, asked, self.engine.checks)
        _check_way(operation.operation, request, caller, streams)
        check_roots(node, operation, self.engine.model.view(caller.signature))
        return check_document(node, operation, self.schema(caller.signature))

    def _prepare(
        self, document: Document, variables: Variables, asked: Asked, caller: Caller, place: bool
    ) -> Known:
        count_variables(document, variables, asked, self.engine.checks)
        schema = self.schema(caller.signature)
        view = self.engine.model.view(caller.signature)
        try:
            check_variables(document, variables, schema)
        except DocumentRefusal as refusal:
            if document.operation.operation is OperationType.MUTATION:
                raise self._with_all_faults(refusal, document, variables, view, asked) from None
            raise
        operation = translate(document.node, document.operation, variables, view)
        meta: dict[str, Any] = {}
        if any(root.kind == "introspection" for root in operation.roots):
            if not self.introspection:
                raise Refusal(Code.FORBIDDEN, "Introspection is closed here.")
            meta = introspect(document, variables, schema)
        pieces = _pieces(operation.roots, meta)
        if operation.watch is not None:
            return Known(None, pieces, watch=self.live.watcher.ready(operation.watch, view, Code.BAD_USER_INPUT, asked))
        if operation.writes:
            writes = self._ready_writes(operation, variables, view, asked)
            changes = tuple(((label,), each) for label, each in writes if isinstance(each, ReadyWrite))
            return Known(None, pieces, writes=writes, changes=changes if len(changes) == len(writes) else ())
        wish = operation.wish
        place = place and bool(wish.asks) and not operation.calls  # code of the model reads in a snapshot of its own
        ready = None
        if wish.asks:
            ready = self.engine.ready(
                wish.asks, wish.slots, wish.sources, view, Code.BAD_USER_INPUT, inputs=variables, asked=asked,
                place=place,
            )  # fmt: skip
        labels = [root.label for root in operation.roots if root.kind == "call"]
        calls = {label: self.calls.ready(each, variables, view, asked)
                 for label, each in zip(labels, operation.calls, strict=True)}  # fmt: skip
        order = tuple(root.label for root in operation.roots if root.kind in ("ask", "call"))
        ages = [each.max_age for each in (ready, *calls.values()) if each is not None]
        return Known(ready, pieces, keep=not (meta and document.variables), calls=calls, order=order, place=place,
                     max_age=0 if meta else min(ages, default=0))  # fmt: skip

    def _with_all_faults(
        self, refusal: DocumentRefusal, document: Document, variables: Variables, view: View, asked: Asked
    ) -> Refusal:
        """All that is wrong with the values of a mutation, where graphql-core tells of their types alone."""
        faults: tuple[Fault, ...] = ()
        try:
            operation = translate(document.node, document.operation, variables, view)
            self._ready_writes(operation, variables, view, asked)
        except Refusal as own:
            faults = own.faults if own.code is refusal.code else ()
        told = {fault.place[:2] for fault in faults}
        others = [fault for fault in refusal.faults if fault.place not in told]
        return Refusal(refusal.code, refusal.message, [*faults, *others])

    def _ready_writes(
        self, operation: Operation, variables: Variables, view: View, asked: Asked
    ) -> tuple[tuple[str, ReadyWrite | ReadyCall], ...]:
        """The changes of an operation, made ready; the faults of all of them are told at once."""
        labels = [root.label for root in operation.roots if root.kind == "ask"]
        found: list[tuple[str, ReadyWrite | ReadyCall]] = []
        refusals: list[Refusal] = []
        for label, wish in zip(labels, operation.writes, strict=True):
            try:
                ready = (self.transactor.ready(wish, variables, view, asked) if isinstance(wish, WriteWish)
                         else self.calls.ready(wish, variables, view, asked))  # fmt: skip
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
