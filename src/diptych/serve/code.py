"""The model's own code in the resource style: POST on actions, GET on queries."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.api.json import read_json
from diptych.api.media import content_type, negotiate
from diptych.api.reply import JSON, NO_STORE, PRIVATE, Header, Reply, problem, tag, tag_of_one
from diptych.api.rest.patch import merge_patch
from diptych.api.rest.translate import Target, read_query, translate_call, write_inputs
from diptych.ask.nodes import Field
from diptych.calls import CallDeed, Calls, ReadyCall
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.model.defs import CallDef, QueryDef
from diptych.model.view import View, not_yours
from diptych.serve.http import Request, not_modified
from diptych.serve.replay import keeping
from diptych.transact import Done

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
        query.fields()  # faults of its grammar come before those of the role
        _check_role(definition, view)
        wish = translate_call(target, definition, query, None, view)
        ready = self.calls.ready(wish, query.inputs, view)
        body = _listed(ready, await self.calls.read(CallDeed(ready, query.inputs), caller.viewer))
        mark = _tag(ready, body)
        if not_modified(request.headers.get(b"if-none-match"), mark):
            return Reply(304, (*PRIVATE, (b"etag", mark)))
        return Reply(200, (*_HEAD, (b"etag", mark)), body)

    async def _act(self, request: Request, caller: Caller, target: Target, definition: CallDef, view: View) -> Reply:
        kind, charset = content_type(request.headers.get(b"content-type", b"application/json"))
        if kind != "application/json" or charset != "utf-8":
            raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json in UTF-8.")
        raw = await request.body(self.max_body)
        body = read_json(raw) if raw else {}
        query = read_query(request.query, target)
        query.fields()
        _check_role(definition, view)
        body = merge_patch(body)
        inputs = write_inputs(target, body, None)
        ready = self.calls.ready(translate_call(target, definition, query, body, view), inputs, view)

        def finish(done: Sequence[Done]) -> Reply:
            if definition.result.kind == "none":
                return Reply(204, PRIVATE)
            answer = _listed(ready, done[0].answer or b"null")
            return Reply(200, (*_HEAD, (b"etag", _tag(ready, answer))), answer)

        return await self.calls.write([CallDeed(ready, inputs)], caller.viewer, finish, keeping(request, caller, raw))


def _check_role(definition: CallDef, view: View) -> None:
    if definition.root not in view.calls:
        raise not_yours(view)


def _listed(ready: ReadyCall, answer: bytes) -> bytes:
    """Many rows stand in `data`, as in every list."""
    return b'{"data":%b}' % answer if ready.definition.result.kind == "list" else answer


def _tag(ready: ReadyCall, body: bytes) -> bytes:
    one = ready.definition.result.kind == "one" and body != b"null"
    return tag_of_one(body, Field("version", "version") in ready.call.pick) if one else tag(body)
