"""Custom actions and queries of the model over REST: POST for an action, GET for a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from diptych.api.json import read_json
from diptych.api.media import content_type, negotiate
from diptych.api.reply import JSON_TYPE, PRIVATE, Header, Reply, method_reply, not_acceptable, tag, tag_of_one
from diptych.api.rest.patch import merge_patch
from diptych.api.rest.query import Query, read_query
from diptych.api.rest.target import Target, operation_name
from diptych.api.rest.translate import write_inputs
from diptych.api.understand import check_call, understand_call
from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Field
from diptych.engine.call import CallEngine, CallOp, PreparedCall
from diptych.engine.write_op import WriteResult
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.model.call_defs import CallDef, QueryDef
from diptych.model.view import View
from diptych.serve.endpoint.cost_header import cost_of_parts, with_cost
from diptych.serve.endpoint.deprecation_headers import with_deprecations
from diptych.serve.endpoint.idempotency import keeping
from diptych.serve.endpoint.rest_writes import insufficient_scope
from diptych.serve.http.request import Request, may_keep, not_modified, variant

_HEAD: tuple[Header, ...] = ((b"content-type", JSON_TYPE), *PRIVATE)


class PlannedCall(NamedTuple):
    """A call of an action, and the reply to its result."""

    op: CallOp
    reply: Callable[[WriteResult], Reply]


class RestCalls:
    """The custom actions and queries of one service."""

    def __init__(self, calls: CallEngine, *, max_body: int) -> None:
        self.calls = calls
        self.max_body = max_body

    def definition(self, target: Target) -> CallDef:
        return self.calls.engine.model.resources[target.resource].call(target.call)

    def methods(self, target: Target) -> tuple[str, ...]:
        return ("GET", "HEAD", "OPTIONS") if isinstance(self.definition(target), QueryDef) else ("POST", "OPTIONS")

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        definition = self.definition(target)
        methods = self.methods(target)
        if (reply := method_reply(request.method, methods)) is not None:
            return reply
        if negotiate(request.headers.get(b"accept", b""), ("application/json",)) is None:
            raise not_acceptable("application/json")
        view = self.calls.engine.model.view(caller.signature)
        if isinstance(definition, QueryDef):
            return await self._read(request, caller, target, definition, view)
        return await self._act(request, caller, target)

    async def _read(self, request: Request, caller: Caller, target: Target, definition: CallDef, view: View) -> Reply:
        query = read_query(request.query, target)
        with self.calls.engine.planning_budget.planning():
            measures = self._measures(request, query, caller, target)  # syntax errors come before those of the role
            wish = understand_call(target, definition, query, None, view)
            prepared = self.calls.prepare(wish, query.inputs, view, measures)
        body = _listed(prepared, await self.calls.read(CallOp(prepared, query.inputs), caller.viewer))
        mark = variant(request, _tag(prepared, body), len(body))
        head = (*may_keep(request, prepared.max_age), (b"etag", mark))
        same = not_modified(request.headers.get(b"if-none-match"), mark)
        reply = Reply(304, head) if same else Reply(200, (_HEAD[0], *head), body)
        return self._noted(request, reply, CallOp(prepared, query.inputs), caller)

    async def _act(self, request: Request, caller: Caller, target: Target) -> Reply:
        sent = request.headers.get(b"content-type")
        # any site can send a cross-origin POST without a content type
        bare = sent is None and b"origin" not in request.headers
        if not bare and content_type(sent or b"") != ("application/json", "utf-8"):
            raise _not_json()
        raw = await request.body(self.max_body)
        if bare and raw:
            raise _not_json()
        planned = self.plan(request, caller, target, read_json(raw) if raw else {})
        reply = await self.calls.write(
            [planned.op], caller.viewer, lambda done: planned.reply(done[0]), keeping(request, caller, raw)
        )
        return self._noted(request, reply, planned.op, caller)

    def plan(self, request: Request, caller: Caller, target: Target, body: Any) -> PlannedCall:
        """The call of an action, and how its result is answered."""
        definition = self.definition(target)
        view = self.calls.engine.model.view(caller.signature)
        query = read_query(request.query, target)
        with self.calls.engine.planning_budget.planning():
            measures = self._measures(request, query, caller, target)
            check_call(definition, view)
            body = merge_patch(body)
            inputs = write_inputs(target, body, None)
            wish = understand_call(target, definition, query, body, view)
            prepared = self.calls.prepare(wish, inputs, view, measures)

        def reply(done: WriteResult) -> Reply:
            if definition.result.kind == "none":
                return Reply(204, PRIVATE)
            answer = _listed(prepared, done.answer or b"null")
            if definition.background is not None:
                return Reply(202, (*_HEAD, self._location(request, str(done.id))), answer)
            return Reply(200, (*_HEAD, (b"etag", _tag(prepared, answer))), answer)

        return PlannedCall(CallOp(prepared, inputs), reply)

    def _location(self, request: Request, job: str) -> Header:
        """Where a job is."""
        resource = self.calls.engine.model.job
        assert resource is not None
        return b"location", f"{request.root}/{resource.path}/{job}".encode()

    async def cancel(self, request: Request, caller: Caller, target: Target) -> Reply:
        """DELETE on a job cancels it."""
        planned = self.plan(request, caller, target, {})
        try:
            return await self.calls.write([planned.op], caller.viewer, lambda done: Reply(204, PRIVATE))
        except Refusal as refusal:
            if refusal.code is not Code.FORBIDDEN:
                raise
            return insufficient_scope(refusal)

    def _measures(self, request: Request, query: Query, caller: Caller, target: Target) -> RequestMeasures:
        engine = self.calls.engine
        method = "GET" if request.method == "HEAD" else request.method
        return query.measure(operation_name(method, target, engine.model), caller.viewer, engine.checks)

    def _noted(self, request: Request, reply: Reply, op: CallOp, caller: Caller) -> Reply:
        """The reply, with its cost if the client prefers it, and what is deprecated in the request."""
        reply = with_deprecations(reply, self.calls.engine.usage, [op.prepared_inputs], caller)
        return with_cost(request, reply, lambda: cost_of_parts([op.prepared_inputs], self.calls.engine.limits))


def _not_json() -> Refusal:
    return Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json in UTF-8.")


def _listed(prepared: PreparedCall, answer: bytes) -> bytes:
    """Wrap a list of rows in `data`, as everywhere."""
    return b'{"data":%b}' % answer if prepared.definition.result.kind == "list" else answer


def _tag(prepared: PreparedCall, body: bytes) -> bytes:
    one = prepared.definition.result.kind == "one" and body != b"null"
    return tag_of_one(body, Field("version", "version") in prepared.call.pick) if one else tag(body)
