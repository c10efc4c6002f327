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
from diptych.api.graphql.http import LEGACY, OFFERS, Parameters, error_reply, read_body, read_query
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.translate import Root, translate
from diptych.api.media import content_type, negotiate
from diptych.api.reply import NO_STORE, PRIVATE, Reply, tag
from diptych.engine import Engine, Ready
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.model.view import Signature
from diptych.recall import Recall
from diptych.serve.http import Request, not_modified

_SHAPES = 64
"""How many shapes of its variables are kept for one document."""
_HEAD = {media: ((b"content-type", f"{media}; charset=utf-8".encode()), *PRIVATE) for media in OFFERS}
_METHODS = ("GET", "HEAD", "POST", "OPTIONS")


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An operation that needs only its values: what runs, and the constant bytes between its answers."""

    ready: Ready | None
    pieces: tuple[bytes, ...]
    keep: bool = True

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
    known: dict[Any, Known] = field(default_factory=dict)


class GraphqlEndpoint:
    """`/graphql` of one service."""

    def __init__(self, engine: Engine, *, max_body: int, introspection: bool) -> None:
        self.engine = engine
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
        media = negotiate(request.headers.get(b"accept", b""), OFFERS)
        if media is None:
            return error_reply(Refusal(Code.NOT_ACCEPTABLE, f"This answers {' or '.join(OFFERS)}."), LEGACY)
        try:
            if request.method != "POST":
                return await self._get(request, caller, media)
            if content_type(request.headers.get(b"content-type", b"")) != ("application/json", "utf-8"):
                raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the request as application/json in UTF-8.")
            parameters = read_body(await request.body(self.max_body))
            return Reply(200, _HEAD[media], await self._run(parameters, caller, reading=False))
        except Refusal as refusal:
            headers = (_allow("POST"),) if refusal.code is Code.METHOD_NOT_ALLOWED else ()
            return error_reply(refusal, media, headers)

    async def _get(self, request: Request, caller: Caller, media: str) -> Reply:
        body = await self._run(read_query(request.query), caller, reading=True)
        mark = tag(body)
        headers = (*_HEAD[media], (b"etag", mark))
        if not_modified(request.headers.get(b"if-none-match"), mark):
            return Reply(304, headers[1:])
        return Reply(200, headers, body)

    async def _run(self, parameters: Parameters, caller: Caller, *, reading: bool) -> bytes:
        query, variables = parameters.query, parameters.variables or {}
        if query is None:
            raise Refusal(Code.BAD_REQUEST, "The request has no query.")
        key = (query, parameters.operationName, caller.signature)
        entry = self._entries.get(key)
        if entry is None:
            entry = Entry(self._document(parameters, query, caller, reading))
            self._entries.put(key, entry)
        shape = entry.document.shape(variables)
        known = entry.known.get(shape)
        if known is None:
            known = self._prepare(entry.document, variables, caller)
            if known.keep and len(entry.known) < _SHAPES:
                entry.known[shape] = known
        if known.ready is None:
            return known.pieces[0]
        try:
            answers = await self.engine.answer(known.ready, variables, caller.viewer)
        except Refusal as refusal:
            if refusal.code is Code.BAD_USER_INPUT:
                check_variables(entry.document, variables, self.schema(caller.signature))
            raise
        return known.join(answers)

    def _document(self, parameters: Parameters, query: str, caller: Caller, reading: bool) -> Document:
        node, operation = read_document(query, parameters.operationName)
        if reading and operation.operation is not OperationType.QUERY:
            raise Refusal(Code.METHOD_NOT_ALLOWED, f"A {operation.operation.value} cannot be sent by GET.")
        check_roots(node, operation, self.engine.model.view(caller.signature))
        return check_document(node, operation, self.schema(caller.signature))

    def _prepare(self, document: Document, variables: Mapping[str, Any], caller: Caller) -> Known:
        schema = self.schema(caller.signature)
        check_variables(document, variables, schema)
        view = self.engine.model.view(caller.signature)
        operation = translate(document.node, document.operation, variables, view)
        meta: dict[str, Any] = {}
        if any(root.kind == "introspection" for root in operation.roots):
            if not self.introspection:
                raise Refusal(Code.FORBIDDEN, "Introspection is closed here.")
            meta = introspect(document, variables, schema)
        pieces = _pieces(operation.roots, meta)
        wish = operation.wish
        ready = self.engine.ready(wish.asks, wish.slots, wish.sources, view, Code.BAD_USER_INPUT) if wish.asks else None
        return Known(ready, pieces, keep=not (meta and document.variables))


def _pieces(roots: Sequence[Root], meta: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The constant bytes of an answer, cut where the answers of the Asks stand."""
    pieces: list[bytes] = []
    constant = b'{"data":{'
    for index, root in enumerate(roots):
        constant += b"," * (index > 0) + b'"' + root.label.encode() + b'":'
        if root.kind == "ask":
            pieces.append(constant)
            constant = b""
        else:
            constant += root.constant or msgspec.json.encode(meta[root.label])
    return (*pieces, constant + b"}}")


def _allow(*methods: str) -> tuple[bytes, bytes]:
    return (b"allow", ", ".join(methods).encode())
