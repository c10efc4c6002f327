"""The query endpoint: bytes in, bytes out.

What a request means, the planner knows (`planner.py`); here it is received, run and answered, in each way in which it
can be sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from diptych.api.graphql.document import check_variables, count_variables
from diptych.api.graphql.http import (
    LEGACY,
    OFFERS,
    RESPONSE,
    Parameters,
    error_reply,
    read_body,
    read_query,
)
from diptych.api.media import content_type, negotiate
from diptych.api.reply import NO_STORE, PRIVATE, Header, Reply, tag
from diptych.ask.asked import Asked
from diptych.calls import CallDeed
from diptych.engine import Engine
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.live.live import Live
from diptych.serve.cost import asks_cost, cost_of_known, telling_cost
from diptych.serve.http import Request, cursor_headers, last_event, may_keep, not_modified
from diptych.serve.persisted import Persisted
from diptych.serve.planner import Entry, Known, Planner, Variables
from diptych.serve.replay import keeping
from diptych.serve.sse import STREAM, sse_refused, sse_reply, sse_result
from diptych.steps import Deed, Done, ReadyWrite
from diptych.transact import Keeping, Transactor
from diptych.watch import ReadyWatch

_HEAD = {media: ((b"content-type", f"{media}; charset=utf-8".encode()), *PRIVATE) for media in OFFERS}
_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
_OFFERS = (*OFFERS, STREAM)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of an operation: its whole result; or, of a subscription, what it follows, and what goes around each
    change."""

    body: bytes = b""
    refused: Refusal | None = None
    watch: ReadyWatch | None = None
    pieces: tuple[bytes, ...] = ()
    inputs: Variables = field(default_factory=dict)


class GraphqlEndpoint:
    """`/graphql` of one service."""

    def __init__(
        self, engine: Engine, transactor: Transactor, live: Live, *, max_body: int, introspection: bool,
        persisted: Persisted | None = None,
    ) -> None:  # fmt: skip
        self.engine = engine
        self.transactor = transactor
        self.live = live
        self.max_body = max_body
        self.persisted = persisted or Persisted(engine.store)
        self.planner = Planner(engine, transactor, live, introspection=introspection)

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
            sent = read_body(body)
            if sent.extensions is None and sent.documentId is None and not self.persisted.trusted_only:
                entry, variables, known = self.planner.recognise(sent, request, caller)  # the most usual, at once
            else:
                entry, variables, known = await self._recognise(sent, request, caller)
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
        entry, variables, known = await self._recognise(read_query(request.query), request, caller)
        body, more = await self._read(entry, variables, known, caller)
        mark = tag(body)
        head = (*may_keep(request, known.max_age), (b"etag", mark), *more)
        if not_modified(request.headers.get(b"if-none-match"), mark):
            return Reply(304, head)
        return Reply(200, (_HEAD[media][0], *head), body)

    async def _stream(self, request: Request, caller: Caller) -> Reply:
        """Any operation, answered by events."""
        try:
            posted = await self._posted(request) if request.method == "POST" else b""
            parameters = read_body(posted) if posted else read_query(request.query)
            entry, variables, known = await self._recognise(parameters, request, caller, streams=True)
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
            entry, variables, known = await self._recognise(parameters, None, caller, streams=True)
            if known.watch is not None:
                return Outcome(watch=known.watch, pieces=known.pieces, inputs=variables)
            if known.writes:
                return Outcome((await self._write(known, variables, caller, RESPONSE, None)).body)
            return Outcome((await self._read(entry, variables, known, caller))[0])
        except Refusal as refusal:
            return Outcome(error_reply(refusal, RESPONSE).body, refusal)

    async def _recognise(
        self, parameters: Parameters, request: Request | None, caller: Caller, *, streams: bool = False
    ) -> tuple[Entry, Variables, Known]:
        """What a request runs, whether it brings its document or names it."""
        parameters, name = await self.persisted.resolve(parameters)
        found = self.planner.recognise(parameters, request, caller, streams=streams)
        if name:
            self.persisted.register(name, parameters.query)
        if asks_cost(parameters):
            entry, variables, known = found
            return entry, variables, telling_cost(known, variables, self.engine.limits)
        return found

    async def _read(
        self, entry: Entry, variables: Variables, known: Known, caller: Caller
    ) -> tuple[bytes, tuple[Header, ...]]:
        """The answer to a query, and headers that go with it."""
        if known.calls:
            return known.join(await self._call(known, variables, caller)), ()
        if known.ready is None:
            if self.engine.checks.has_more:  # nothing runs, but they look at whoever asks
                self.engine.checks.price(entry.asked, caller.viewer, 0)
            return known.pieces[0], ()
        try:
            answers = await self.engine.answer(known.ready, variables, caller.viewer)
        except Refusal as refusal:
            if refusal.code is Code.BAD_USER_INPUT:
                count_variables(entry.document, variables, Asked("graphql", caller.viewer), self.engine.checks)
                check_variables(entry.document, variables, self.planner.schema(caller.signature))
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
        return await self.planner.calls.write(deeds, caller.viewer, finish, kept)

    async def _call(self, known: Known, variables: Variables, caller: Caller) -> list[bytes | None]:
        """The answers to a request that calls the model's own code, in the order asked."""
        self._check_price(known, variables, caller)
        found: dict[str, bytes | None] = {}
        for label, ready in known.calls.items():
            found[label] = await self.planner.calls.read(CallDeed(ready, variables, (label,)), caller.viewer)
        asked = [label for label in known.order if label not in known.calls]
        if known.ready is not None:
            found |= zip(asked, await self.engine.answer(known.ready, variables, caller.viewer), strict=True)
        return [found[label] for label in known.order]

    def _check_price(self, known: Known, variables: Variables, caller: Caller) -> None:
        """Each of them may be fair, and all together too dear."""
        first, *_ = known.calls.values()
        price = cost_of_known(known, variables, self.engine.limits).price
        self.engine.checks.price(first.asked, caller.viewer, price)


def _allow(*methods: str) -> tuple[bytes, bytes]:
    return (b"allow", ", ".join(methods).encode())
