"""The model's own code in the resource style: POST on actions, GET on queries."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.api.json import read_json
from diptych.api.media import content_type, negotiate
from diptych.api.reply import JSON, NO_STORE, PRIVATE, Header, Reply, problem, tag, tag_of_one
from diptych.api.rest.patch import merge_patch
from diptych.api.rest.translate import (
    Query,
    Target,
    operation_name,
    read_query,
    translate_call,
    write_inputs,
)
from diptych.ask.asked import Asked
from diptych.ask.nodes import Field
from diptych.calls import CallDeed, Calls, ReadyCall
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.model.defs import CallDef, QueryDef
from diptych.model.view import View, not_yours
from diptych.serve.cost import cost_of_parts, wants_cost, with_cost
from diptych.serve.http import Request, may_keep, not_modified
from diptych.serve.replay import keeping
from diptych.steps import Done

_HEAD: tuple[Header, ...] = ((b"content-type", JSON), *PRIVATE)


class RestCalls:
    """The calls of one service."""

    def __init__(self, calls: Calls, *, max_body: int) -> None:
        self.calls = calls
        self.max_body = max_body

    def _definition(self, target: Target) -> CallDef:
        return self.calls.engine.model.resources[target.resource].call(target.call)

    def methods(self, target: Target) -> tuple[str, ...]:
        """The methods that the path of a call has."""
        return ("GET", "HEAD", "OPTIONS") if isinstance(self._definition(target), QueryDef) else ("POST", "OPTIONS")

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        definition = self._definition(target)
        methods = self.methods(target)
        allow: Header = (b"allow", ", ".join(methods).encode())
        if request.method not in methods:
            return problem(Refusal(Code.METHOD_NOT_ALLOWED, f"Use {', '.join(methods)}."), (allow,))
        if request.method == "OPTIONS":
            return Reply(204, (allow, *NO_STORE))
        if negotiate(request.headers.get(b"accept", b""), ("application/json",)) is None:
            return problem(Refusal(Code.NOT_ACCEPTABLE, "This answers application/json."))
        view = self.calls.engine.model.view(caller.signature)
        if isinstance(definition, QueryDef):
            return await self._read(request, caller, target, definition, view)
        return await self._act(request, caller, target, definition, view)

    async def _read(
        self, request: Request, caller: Caller, target: Target, definition: CallDef, view: View
    ) -> Reply:
        query = read_query(request.query, target)
        with self.calls.engine.meter.planning():
            asked = self._asked(request, query, caller, target)  # faults of grammar come before those of the role
            _check_role(definition, view)
            wish = translate_call(target, definition, query, None, view)
            ready = self.calls.ready(wish, query.inputs, view, asked)
        body = _listed(ready, await self.calls.read(CallDeed(ready, query.inputs), caller.viewer))
        mark = _tag(ready, body)
        head = (*may_keep(request, ready.max_age), (b"etag", mark))
        same = not_modified(request.headers.get(b"if-none-match"), mark)
        reply = Reply(304, head) if same else Reply(200, (_HEAD[0], *head), body)
        return self._told(request, reply, CallDeed(ready, query.inputs))

    async def _act(self, request: Request, caller: Caller, target: Target, definition: CallDef, view: View) -> Reply:
        sent = request.headers.get(b"content-type")
        bare = sent is None and b"origin" not in request.headers  # a page of any site can send a POST without a type
        if not bare and content_type(sent or b"") != ("application/json", "utf-8"):
            raise _not_json()
        raw = await request.body(self.max_body)
        if bare and raw:
            raise _not_json()
        body = read_json(raw) if raw else {}
        query = read_query(request.query, target)
        with self.calls.engine.meter.planning():
            asked = self._asked(request, query, caller, target)
            _check_role(definition, view)
            body = merge_patch(body)
            inputs = write_inputs(target, body, None)
            ready = self.calls.ready(translate_call(target, definition, query, body, view), inputs, view, asked)

        def finish(done: Sequence[Done]) -> Reply:
            if definition.result.kind == "none":
                return Reply(204, PRIVATE)
            answer = _listed(ready, done[0].answer or b"null")
            return Reply(200, (*_HEAD, (b"etag", _tag(ready, answer))), answer)

        deed = CallDeed(ready, inputs)
        reply = await self.calls.write([deed], caller.viewer, finish, keeping(request, caller, raw))
        return self._told(request, reply, deed)

    def _asked(self, request: Request, query: Query, caller: Caller, target: Target) -> Asked:
        engine = self.calls.engine
        method = "GET" if request.method == "HEAD" else request.method
        return query.asked(operation_name(method, target, engine.model), caller.viewer, engine.checks)

    def _told(self, request: Request, reply: Reply, deed: CallDeed) -> Reply:
        """The reply, with its cost if that is wanted."""
        if not wants_cost(request):
            return reply
        return with_cost(reply, cost_of_parts([deed[:2]], self.calls.engine.limits))


def _not_json() -> Refusal:
    return Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json in UTF-8.")


def _check_role(definition: CallDef, view: View) -> None:
    if definition.root not in view.calls:
        raise not_yours(view)


def _listed(ready: ReadyCall, answer: bytes) -> bytes:
    """Many rows stand in `data`, as in every list."""
    return b'{"data":%b}' % answer if ready.definition.result.kind == "list" else answer


def _tag(ready: ReadyCall, body: bytes) -> bytes:
    one = ready.definition.result.kind == "one" and body != b"null"
    return tag_of_one(body, Field("version", "version") in ready.call.pick) if one else tag(body)
