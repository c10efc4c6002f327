"""`POST /batch`: several writes in one transaction, all or none; later ones can refer to the rows of earlier ones.

    {"requests": [{"id": "ann",   "method": "POST", "url": "/users",  "body": {"name": "Ann", …}},
                  {"id": "order", "method": "POST", "url": "/orders", "body": {"customerId": "$ann", …}}]}

A batch is the same tuple of Asks as a mutation whose fields have these aliases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from diptych.api.json import read_json
from diptych.api.links import of_links, writes_links
from diptych.api.media import content_type, negotiate
from diptych.api.reply import Reply, method_reply, not_acceptable, problem
from diptych.api.rest.query import read_query
from diptych.api.rest.target import Target, cancelling, find_target
from diptych.ask.measures import too_many_writes
from diptych.engine.call import CallOp
from diptych.engine.references import NO_ROW, check_references
from diptych.engine.refusals import moved
from diptych.engine.write_op import WriteOp, WriteResult
from diptych.errors import Code, Fault, Path, Refusal
from diptych.identity.viewer import Caller
from diptych.model.call_defs import QueryDef
from diptych.serve.endpoint.cost_header import cost_of_parts, with_cost
from diptych.serve.endpoint.deprecation_headers import with_deprecations
from diptych.serve.endpoint.idempotency import keeping
from diptych.serve.endpoint.rest_calls import PlannedCall, RestCalls
from diptych.serve.endpoint.rest_links import RestLinks
from diptych.serve.endpoint.rest_nests import under
from diptych.serve.endpoint.rest_write_planner import HEAD, PlannedWrite, WriteRequest
from diptych.serve.endpoint.rest_writes import RestWrites, insufficient_scope
from diptych.serve.http.request import Request

_MEMBERS = ("id", "method", "url", "headers", "body")
_METHODS = ("POST", "PUT", "PATCH", "DELETE")
_HEADERS = ("content-type", "if-match", "if-none-match", "prefer")
"""The headers that a request of a batch may have."""
_SHOWN = (b"location", b"etag", b"preference-applied")
"""The headers of a response that are shown."""
_NAME = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,63}", re.ASCII)


class Sent(NamedTuple):
    """A request of a batch: its position, its name, and what would have been sent without a batch."""

    position: int
    name: str
    target: Target
    request: Request
    body: Any


class Planned(NamedTuple):
    """A planned request of a batch, and the reply to its result."""

    sent: Sent
    ops: tuple[WriteOp | CallOp, ...]
    """Several if it is a nested write."""
    reply: Callable[[WriteResult], Reply]


class RestBatch:
    """Batches of the REST writes and actions of one service. `methods` are those of a path."""

    def __init__(
        self,
        writes: RestWrites,
        calls: RestCalls,
        links: RestLinks,
        methods: Callable[[Target], Sequence[str]],
    ) -> None:
        self.writes = writes
        self.calls = calls
        self.links = links
        self.methods = methods
        self.engine = writes.engine

    async def handle(self, request: Request, caller: Caller) -> Reply:
        if (reply := method_reply(request.method, ("POST", "OPTIONS"))) is not None:
            return reply
        if negotiate(request.headers.get(b"accept", b""), ("application/json",)) is None:
            raise not_acceptable("application/json")
        if content_type(request.headers.get(b"content-type", b"")) != ("application/json", "utf-8"):
            raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json in UTF-8.")
        raw = await request.body(self.writes.max_body)
        if request.query:
            raise Refusal(Code.BAD_REQUEST, "This takes no parameters.")
        try:
            return await self._run(request, caller, self._read(read_json(raw), request), raw)
        except _OfStep as failed:
            return failed.reply()

    async def _run(self, request: Request, caller: Caller, sent: Sequence[Sent], raw: bytes) -> Reply:
        planned = self._plan(caller, sent)
        ops = [op for step in planned for op in step.ops]

        def finish(done: Sequence[WriteResult]) -> Reply:
            parts = [_response(step, result) for step, result in zip(planned, done, strict=True)]
            return Reply(200, HEAD, b'{"responses":[%b]}' % b",".join(parts))

        kept = keeping(request, caller, raw)
        writes = [op for op in ops if isinstance(op, WriteOp)]
        try:
            if len(writes) == len(ops):
                reply = await self.writes.write_engine.write(writes, caller.viewer, finish, kept)
            else:
                reply = await self.calls.calls.write(ops, caller.viewer, finish, kept)
        except Refusal as refusal:
            failed = next((step.sent for step in planned if refusal.path == (step.sent.position,)), None)
            if failed is not None and writes_links(failed.request.method, failed.target):
                refusal = of_links(refusal)
            raise _OfStep(refusal, failed) from None
        reply = with_deprecations(reply, self.engine.usage, [op.prepared_inputs for op in ops], caller)
        return with_cost(request, reply, lambda: cost_of_parts([op.prepared_inputs for op in ops], self.engine.limits))

    # reading

    def _read(self, body: Any, request: Request) -> list[Sent]:
        """The requests of a batch; one Refusal has all faults of their form."""
        requests = body.get("requests") if isinstance(body, dict) else None
        if not isinstance(requests, list) or not requests:
            raise _invalid([Fault(("body", "requests"), "expected a list of requests")])
        most = self.engine.limits.roots
        if len(requests) > most:
            raise Refusal(Code.TOO_COMPLEX, f"The batch has {len(requests)} requests; {most} are allowed.")
        faults = [Fault(("body", name), "there is no such member") for name in body if name != "requests"]
        sent = []
        names: set[str] = set()
        for index, item in enumerate(requests):
            found = list(_faults(item, ("body", "requests", index), names))
            faults += found
            if not found:
                sent.append(self._sent(index, item, request))
        if faults:
            raise _invalid(faults)
        return sent

    def _sent(self, index: int, item: Mapping[str, Any], request: Request) -> Sent:
        path, _, query = item["url"].partition("?")
        target = find_target(path, self.engine.model)
        headers = {name.lower().encode(): value.encode("latin-1") for name, value in item.get("headers", {}).items()}
        own = Request(item["method"], path, query, headers, request.body, request.root, request.peer)
        sent = Sent(index, item.get("id", ""), target or Target(""), own, item.get("body"))
        if target is None or target.batch:
            raise _OfStep(Refusal(Code.NOT_FOUND, "There is nothing here."), sent)
        return sent

    # planning

    def _plan(self, caller: Caller, sent: Sequence[Sent]) -> list[Planned]:
        """Plan all requests; the faults of all bodies are reported together, and others at once."""
        planned: list[Planned] = []
        faults: list[Fault] = []
        earlier: dict[str, str] = {}
        rows = 0
        for step in sent:
            try:
                planned.append(self._plan_one(caller, step))
                _check(planned[-1].ops, earlier)
                rows += len(planned[-1].ops)
                if rows > self.engine.limits.writes:
                    raise too_many_writes(rows, self.engine.limits)
            except Refusal as refusal:
                here = _moved(refusal, step.position)
                if refusal.code is not Code.BAD_USER_INPUT:
                    raise _OfStep(here, step) from None
                faults += here.faults
            if step.name:
                rowless = step.target.call or (step.target.id is None and step.request.method != "POST")
                rowless = rowless or step.target.relation
                earlier[step.name] = NO_ROW if rowless else step.target.resource
        if faults:
            raise _OfStep(_invalid(faults), None)
        return planned

    def _plan_one(self, caller: Caller, sent: Sent) -> Planned:
        request, target = sent.request, sent.target
        methods = self.methods(target)
        if request.method not in methods or (target.call and self._is_query(target)):
            allowed = [method for method in methods if method in _METHODS]
            raise Refusal(Code.METHOD_NOT_ALLOWED, f"Use {', '.join(allowed)}." if allowed else "It cannot be written.")
        kind = request.headers.get(b"content-type")
        if kind is not None and content_type(kind) != ("application/json", "utf-8"):
            raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "The requests of a batch have bodies of application/json.")
        prefix = ("body", "requests", sent.position, "body")
        if writes_links(request.method, target):
            links = self.links.plan(request, caller, target, sent.body)
            return Planned(sent, tuple(under(op, (sent.position,), prefix, sent.name) for op in links.ops), links.reply)
        target = cancelling(request.method, target, self.engine.model)
        planned: PlannedWrite | PlannedCall
        if target.call:
            planned = self.calls.plan(request, caller, target, {} if sent.body is None else sent.body)
        else:
            write = WriteRequest(request, caller, target, read_query(request.query, target))
            planned = self.writes.planner.plan(write, sent.body)
        if isinstance(planned, PlannedWrite) and planned.nest:
            nest = tuple(under(op, (sent.position,), prefix, sent.name) for op in planned.nest)
            return Planned(sent, nest, planned.reply)
        op = replace(planned.op, path=(sent.position,), prefix=prefix, step=sent.name)
        return Planned(sent, (op,), planned.reply)

    def _is_query(self, target: Target) -> bool:
        return isinstance(self.calls.definition(target), QueryDef)


class _OfStep(Exception):
    """The refusal of a batch, and the request that it is about, if it is one."""

    def __init__(self, refusal: Refusal, sent: Sent | None) -> None:
        super().__init__()
        self.refusal = refusal
        self.sent = sent

    def reply(self) -> Reply:
        refusal, sent = self.refusal, self.sent
        if sent is not None:
            refusal.more = {**refusal.more, "request": sent.name or sent.position}
            if sent.request.method == "DELETE" and refusal.code is Code.FORBIDDEN:
                return insufficient_scope(refusal)
        return problem(refusal)


def _invalid(faults: Sequence[Fault]) -> Refusal:
    return Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)


def _faults(item: Any, path: Path, names: set[str]) -> Sequence[Fault]:
    """The faults in the form of a request of a batch; its name is added to `names`."""
    if not isinstance(item, dict):
        return [Fault(path, "expected an object")]
    faults = [Fault((*path, name), "there is no such member") for name in item if name not in _MEMBERS]
    name, method, url, headers = (item.get(member) for member in _MEMBERS[:4])
    if "id" in item:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            faults.append(Fault((*path, "id"), "expected a name of letters, digits and _"))
        elif name in names:
            faults.append(Fault((*path, "id"), "another request has this id"))
        else:
            names.add(name)
    if method not in _METHODS:
        faults.append(Fault((*path, "method"), f"expected one of {', '.join(_METHODS)}"))
    if not isinstance(url, str) or not url.startswith("/") or not url.isascii() or "#" in url:
        faults.append(Fault((*path, "url"), "expected a path, with a query string if there is one"))
    if "headers" in item:
        if not isinstance(headers, dict):
            return [*faults, Fault((*path, "headers"), "expected an object")]
        for key, value in headers.items():
            if key.lower() not in _HEADERS:
                faults.append(Fault((*path, "headers", key), f"a request of a batch may have {', '.join(_HEADERS)}"))
            elif not isinstance(value, str) or not value.isascii() or not value.isprintable():
                faults.append(Fault((*path, "headers", key), "expected text"))
    return faults


def _check(ops: Iterable[WriteOp | CallOp], earlier: Mapping[str, str]) -> None:
    """Refuse invalid values and references; paths are those in the body of the one request."""
    for op in ops:
        try:
            check_references(op.prepared.binder(op.inputs), op.prepared.binder, earlier)
        except Refusal as refusal:
            raise moved(refusal, ("body", *op.prefix[4:])) from None


def _moved(refusal: Refusal, index: int) -> Refusal:
    """The same refusal with its paths in the body of the batch."""
    prefix = ("body", "requests", index)
    faults = [
        replace(fault, path=(*prefix, "body", *fault.path[1:]) if fault.path[:1] == ("body",) else (*prefix, "url"))
        for fault in refusal.faults
    ]
    return Refusal(refusal.code, refusal.message, faults, more=refusal.more)


def _response(step: Planned, result: WriteResult) -> bytes:
    """The response to one request of a batch."""
    reply = step.reply(result)
    shown = {name.decode(): value.decode("latin-1") for name, value in reply.headers if name in _SHOWN}
    head: dict[str, Any] = {"id": step.sent.name} if step.sent.name else {}
    head |= {"status": reply.status, "headers": shown}
    body = b',"body":%b}' % reply.body if reply.body else b"}"
    return msgspec.json.encode(head)[:-1] + body
