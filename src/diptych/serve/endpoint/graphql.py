"""The GraphQL endpoint: GET, POST, server-sent events, and operations of a WebSocket.

The planner (`graphql_planner.py`) says what a request means; here it is received, executed and answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from msgspec import Struct, field

from diptych.api.graphql import http
from diptych.api.media import content_type, negotiate
from diptych.api.reply import NO_STORE, PRIVATE, Header, Reply, lines_of, not_acceptable, tag
from diptych.config import Config
from diptych.engine.call import CallOp
from diptych.engine.nest import in_nest
from diptych.engine.read import Engine
from diptych.engine.read_plan import ROW
from diptych.engine.watch import PreparedWatch
from diptych.engine.write import IdempotentReply, WriteEngine
from diptych.engine.write_op import PreparedWrite, WriteOp, WriteResult
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.live.service import LiveService
from diptych.serve.acts import acts_of
from diptych.serve.endpoint.cost_header import add_cost, asks_cost, cost_of_known
from diptych.serve.endpoint.deprecation_headers import note_deprecations
from diptych.serve.endpoint.graphql_planner import Planner, Recognised, Variables
from diptych.serve.endpoint.idempotency import keeping
from diptych.serve.endpoint.known_operation import KnownDocument, KnownOperation
from diptych.serve.endpoint.persisted import Persisted
from diptych.serve.endpoint.role_schemas import Unmade
from diptych.serve.http.request import Request, cursor_headers, last_event, may_keep, not_modified, variant
from diptych.serve.introspection import Introspection
from diptych.serve.stream.sse import STREAM, sse_refused, sse_reply, sse_result

_HEAD = {media: ((b"content-type", f"{media}; charset=utf-8".encode()), *PRIVATE) for media in http.OFFERS}
_ENCODED = {media: (head, lines_of(head)) for media, head in _HEAD.items()}
_METHODS = ("GET", "HEAD", "POST", "QUERY", "OPTIONS")
_WITH_BODY = ("POST", "QUERY")
_OFFERS = (*http.OFFERS, STREAM)


class Outcome(Struct, frozen=True, eq=False):
    """The outcome of an operation: its whole result, or, of a subscription, its watch and the JSON around a change."""

    body: bytes = b""
    refused: Refusal | None = None
    watch: PreparedWatch | None = None
    pieces: tuple[bytes, ...] = ()
    inputs: Variables = field(default_factory=dict)


class GraphqlEndpoint:
    def __init__(self, engine: Engine, write_engine: WriteEngine, live: LiveService, config: Config) -> None:
        self.engine = engine
        self.write_engine = write_engine
        self.live = live
        self.max_body = config.max_body
        self.persisted = Persisted(
            engine.store, config.persisted_queries, config.persisted_bytes, trusted_only=config.trusted_only
        )
        self._acts = acts_of(engine.model)
        self.planner = Planner(engine, write_engine, live, Introspection.of(config, engine.model.roles))

    async def handle(self, request: Request, caller: Caller) -> Reply:
        if request.method not in _METHODS:
            refusal = Refusal(Code.METHOD_NOT_ALLOWED, f"Use {', '.join(_METHODS)}.")
            return http.error_reply(refusal, http.LEGACY, (_allow(*_METHODS),))
        if request.method == "OPTIONS":
            return Reply(204, (_allow(*_METHODS), *NO_STORE))
        media = negotiate(request.headers.get(b"accept", b""), _OFFERS)
        if media is None:
            return http.error_reply(not_acceptable(*_OFFERS), http.LEGACY)
        if media == STREAM:
            return await self._stream(request, caller)
        try:
            if request.method not in _WITH_BODY:
                return await self._get(request, caller, media)
            body = await self._posted(request)
            sent = http.read_body(body)
            if sent.extensions is None and sent.documentId is None and not self.persisted.trusted_only:
                try:
                    entry, variables, known = self.planner.recognise(sent, request, caller)  # the fast path
                except Unmade as unmade:
                    entry, variables, known = await self.planner.recognise_after(unmade, sent, request, caller)
            else:
                entry, variables, known = await self._recognise(sent, request, caller)
            if known.writes:
                reply = await self._write(known, variables, caller, media, keeping(request, caller, body))
                return self._noted(reply, known, variables, caller)
            answer, more = await self._read(entry, variables, known, caller)
            reply = Reply(200, (*_HEAD[media], *more) if more else _HEAD[media], answer)
            return reply if self.engine.usage is None else self._noted(reply, known, variables, caller)
        except Refusal as refusal:
            headers = (_allow("POST"),) if refusal.code is Code.METHOD_NOT_ALLOWED else ()
            return http.error_reply(refusal, media, headers)

    def known(self, request: Request, body: bytes, caller: Caller) -> Recognised | None:
        """The prepared operation of a POST, if it is plain and known."""
        if len(body) > self.max_body or self.persisted.trusted_only or self.engine.usage is not None:
            return None
        sent = http.read_body(body)
        if sent.extensions is not None or sent.documentId is not None:
            return None
        found = self.planner.known(sent, caller)
        return None if found is None or not found[2].is_plain else found

    def run_known(self, request: Request, caller: Caller, found: Recognised, media: str) -> Reply | Awaitable[Reply]:
        """The reply to a known operation, or an awaitable of it."""
        _, variables, known = found
        if known.prepared is None:
            return self._write_known(known, variables, caller, media)
        try:
            answers = self.engine.answer_now(known.prepared, variables, caller.viewer)
        except Refusal as refusal:
            return self._refused(refusal, caller, found, media)
        if isinstance(answers, ROW):
            return Reply(200, _HEAD[media], known.join(answers), None, _ENCODED[media])
        return self._read_later(answers, caller, found, media)

    async def _write_known(self, known: KnownOperation, variables: Variables, caller: Caller, media: str) -> Reply:
        try:
            return await self._write(known, variables, caller, media, None)
        except Refusal as refusal:
            return http.error_reply(refusal, media)

    async def _read_later(
        self, answers: Awaitable[Sequence[bytes | None]], caller: Caller, found: Recognised, media: str
    ) -> Reply:
        try:
            return Reply(200, _HEAD[media], found[2].join(await answers))
        except Refusal as refusal:
            return self._refused(refusal, caller, found, media)

    def _refused(self, refusal: Refusal, caller: Caller, found: Recognised, media: str) -> Reply:
        """The errors of a query whose values were refused, or whose statement."""
        entry, variables, _ = found
        try:
            if refusal.code is Code.BAD_USER_INPUT:
                self.planner.check_inputs(entry, variables, caller)
        except Refusal as better:
            refusal = better
        return http.error_reply(refusal, media)

    async def _posted(self, request: Request) -> bytes:
        if content_type(request.headers.get(b"content-type", b"")) != ("application/json", "utf-8"):
            raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the request as application/json in UTF-8.")
        return await request.body(self.max_body)

    async def _get(self, request: Request, caller: Caller, media: str) -> Reply:
        entry, variables, known = await self._recognise(http.read_parameters(request.query), request, caller)
        body, more = await self._read(entry, variables, known, caller)
        mark = variant(request, tag(body), len(body))
        head = (*may_keep(request, known.max_age), (b"etag", mark), *more)
        same = not_modified(request.headers.get(b"if-none-match"), mark)
        reply = Reply(304, head) if same else Reply(200, (_HEAD[media][0], *head), body)
        return self._noted(reply, known, variables, caller)

    def _noted(self, reply: Reply, known: KnownOperation, variables: Variables, caller: Caller) -> Reply:
        """The reply, with headers about what is deprecated in the request."""
        headers = self._note(known, variables, caller)
        return Reply(reply.status, (*reply.headers, *headers), reply.body) if headers else reply

    def _note(self, known: KnownOperation, variables: Variables, caller: Caller) -> tuple[Header, ...]:
        usage = self.engine.usage
        if usage is None or not known.is_deprecated:
            return ()
        return note_deprecations(usage, ((part, variables) for part in known.parts), caller)

    async def _stream(self, request: Request, caller: Caller) -> Reply:
        """Any operation, answered as an event stream."""
        try:
            posted = await self._posted(request) if request.method in _WITH_BODY else b""
            parameters = http.read_body(posted) if posted else http.read_parameters(request.query)
            entry, variables, known = await self._recognise(parameters, request, caller, streams=True)
            self._note(known, variables, caller)
            if known.watch is None:
                if known.writes:
                    kept = keeping(request, caller, posted)
                    reply = await self._write(known, variables, caller, http.RESPONSE, kept)
                    return sse_result(reply.body)
                return sse_result((await self._read(entry, variables, known, caller))[0])
            watch, last = known.watch, last_event(request)
            return await sse_reply(
                lambda sink: self.live.subscribe(watch, variables, caller, sink, last),
                known.pieces,
                head=request.method == "HEAD",
            )
        except Refusal as refusal:
            return sse_refused(refusal, (_allow("POST"),) if refusal.code is Code.METHOD_NOT_ALLOWED else ())

    async def run(self, parameters: http.Parameters, caller: Caller) -> Outcome:
        """Execute any operation, for a transport that multiplexes several."""
        try:
            if self._acts is not None:
                self._acts.note_operation(caller)
            entry, variables, known = await self._recognise(parameters, None, caller, streams=True)
            self._note(known, variables, caller)
            if known.watch is not None:
                return Outcome(watch=known.watch, pieces=known.pieces, inputs=variables)
            if known.writes:
                return Outcome((await self._write(known, variables, caller, http.RESPONSE, None)).body)
            return Outcome((await self._read(entry, variables, known, caller))[0])
        except Refusal as refusal:
            return Outcome(http.error_reply(refusal, http.RESPONSE).body, refusal)

    async def _recognise(
        self, parameters: http.Parameters, request: Request | None, caller: Caller, *, streams: bool = False
    ) -> tuple[KnownDocument, Variables, KnownOperation]:
        """The prepared operation of a request, by the text of its document or by its hash."""
        if self._acts is not None:
            self._acts.note_extensions(parameters.extensions)
        parameters, name = await self.persisted.resolve(parameters)
        try:
            recognised = self.planner.recognise(parameters, request, caller, streams=streams)
        except Unmade as unmade:
            recognised = await self.planner.recognise_after(unmade, parameters, request, caller, streams=streams)
        if name:
            self.persisted.register(name, parameters.query)
        if asks_cost(parameters):
            entry, variables, known = recognised
            return entry, variables, add_cost(known, variables, self.engine.limits)
        return recognised

    async def _read(
        self, entry: KnownDocument, variables: Variables, known: KnownOperation, caller: Caller
    ) -> tuple[bytes, tuple[Header, ...]]:
        """The response body of a query, and additional headers."""
        if known.calls:
            return known.join(await self._call(known, variables, caller)), ()
        if known.prepared is None:
            if self.engine.checks.has_more:  # nothing runs, but custom checks see the viewer
                self.engine.checks.price(entry.measures, caller.viewer, 0)
            return known.pieces[0], ()
        if known.with_change_cursor:
            await self.live.tail.settle()
        try:
            answers = await self.engine.answer(known.prepared, variables, caller.viewer)
        except Refusal as refusal:
            if refusal.code is Code.BAD_USER_INPUT:
                self.planner.check_inputs(entry, variables, caller)
            raise
        if known.lookups:
            cursor = answers[-1:] if known.with_change_cursor else ()
            answers = (*known.chosen(answers[: len(answers) - len(cursor)]), *cursor)
        if known.with_change_cursor:
            return known.join(answers[:-1]), cursor_headers(self.live.cursor(answers[-1]))
        return known.join(answers), ()

    def _write(
        self,
        known: KnownOperation,
        variables: Variables,
        caller: Caller,
        media: str,
        kept: IdempotentReply[Reply] | None,
    ) -> Awaitable[Reply]:
        """Execute all mutations of a request, in one transaction."""

        def finish(done: Sequence[WriteResult]) -> Reply:
            return Reply(200, _HEAD[media], known.join([result.answer for result in done]))

        if known.changes and not known.nests:
            changes = [WriteOp(prepared, variables, path, step=path[0]) for path, prepared in known.changes]
            return self.write_engine.write(changes, caller.viewer, finish, kept)
        ops: list[WriteOp | CallOp] = [
            WriteOp(prepared, variables, (label,), step=label)
            if isinstance(prepared, PreparedWrite)
            else CallOp(prepared, variables, (label,), step=label)
            for label, prepared in known.writes
        ]
        if known.nests:
            ops = [in_nest(op, *place) for op, place in zip(ops, known.nests, strict=True)]
        writes = [op for op in ops if isinstance(op, WriteOp)]
        if len(writes) == len(ops):
            return self.write_engine.write(writes, caller.viewer, finish, kept)
        return self.planner.calls.write(ops, caller.viewer, finish, kept)

    async def _call(self, known: KnownOperation, variables: Variables, caller: Caller) -> list[bytes | None]:
        """The results of a query that calls custom queries of the model, in the order of the document."""
        self._check_price(known, variables, caller)
        results: dict[str, bytes | None] = {}
        for label, prepared in known.calls.items():
            results[label] = await self.planner.calls.read(CallOp(prepared, variables, (label,)), caller.viewer)
        labels = [label for label in known.order if label not in known.calls]
        if known.prepared is not None:
            answers = known.chosen(await self.engine.answer(known.prepared, variables, caller.viewer))
            results |= zip(labels, answers, strict=True)
        return [results[label] for label in known.order]

    def _check_price(self, known: KnownOperation, variables: Variables, caller: Caller) -> None:
        """Check the cost of all root fields together, each of which may be within the limit."""
        first, *_ = known.calls.values()
        price = cost_of_known(known, variables, self.engine.limits).price
        self.engine.checks.price(first.measures, caller.viewer, price)


def _allow(*methods: str) -> tuple[bytes, bytes]:
    return (b"allow", ", ".join(methods).encode())
