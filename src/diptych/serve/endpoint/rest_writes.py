"""REST writes: POST, PUT, PATCH and DELETE on resources.

The cache key of a write is the target of its path, the role, and the names of the fields in its body.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from diptych.api.json import read_json
from diptych.api.media import content_type
from diptych.api.reply import JSON_TYPE, PRIVATE, Header, Reply, problem, tag_of_one
from diptych.api.rest.patch import apply_patch, changed, merged, read_patch
from diptych.api.rest.precondition import preferences, versions
from diptych.api.rest.target import Target, operation_name
from diptych.api.rest.translate import MAX_CREATED, Query, read_query, write_inputs
from diptych.api.understand import MAX_MEMBERS, METHOD_VERBS, Versions, check_write, understand_write
from diptych.ask.nodes import Field, Read, WriteVerb
from diptych.engine.known import KnownRequests
from diptych.engine.write import IdempotentReply, WriteEngine
from diptych.engine.write_op import PreparedWrite, WriteOp, WriteResult, joined, moved
from diptych.errors import Code, Fault, Refusal
from diptych.identity.viewer import Caller
from diptych.model.declare.roles import NOBODY
from diptych.model.rules.expr import Col, Compare, Slot
from diptych.serve.endpoint.cost_header import cost_of_parts, with_cost
from diptych.serve.endpoint.idempotency import keeping
from diptych.serve.http.request import Request

_METHODS = {verb: method for method, verb in METHOD_VERBS.items()}
_JSON_PATCH = "application/json-patch+json"
_PATCHES = ("application/merge-patch+json", "application/json", _JSON_PATCH)
_HEAD: tuple[Header, ...] = ((b"content-type", JSON_TYPE), *PRIVATE)
_ROUNDS = 5
"""How often a patch is retried when the row was changed concurrently."""


def accept_patch(methods: Sequence[str]) -> tuple[Header, ...]:
    """The `Accept-Patch` header (RFC 5789), if PATCH is allowed."""
    return ((b"accept-patch", ", ".join(_PATCHES).encode()),) if "PATCH" in methods else ()


class WriteRequest(NamedTuple):
    """A REST write: its target, its query string, and how its reply is stored for retries."""

    request: Request
    caller: Caller
    target: Target
    query: Query
    kept: IdempotentReply[Reply] | None = None

    @property
    def versions(self) -> Versions:
        """The versions that the row may have, by the preconditions of the request."""
        return versions(self.request.headers.get(b"if-match"), self.request.headers.get(b"if-none-match"))


class PlannedWrite(NamedTuple):
    """A write of one row, and the reply to its result."""

    op: WriteOp
    reply: Callable[[WriteResult], Reply]


class RestWrites:
    """The REST writes of one service. `read` returns a row as GET does."""

    def __init__(
        self, write_engine: WriteEngine, read: Callable[[Target, Caller], Awaitable[bytes]], *, max_body: int
    ) -> None:
        self.write_engine = write_engine
        self.engine = write_engine.engine
        self.max_body = max_body
        self._read = read
        self._known: KnownRequests[PreparedWrite] = KnownRequests(self.engine, "requests for changes")

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        if request.method != "DELETE":
            return await self._change(request, caller, target)
        try:
            return await self._delete(WriteRequest(request, caller, target, read_query(request.query, target)))
        except Refusal as refusal:
            if refusal.code is not Code.FORBIDDEN:
                raise
            return insufficient_scope(refusal)

    async def _delete(self, sent: WriteRequest) -> Reply:
        return await self._run(sent, self.plan(sent, None))

    async def _change(self, request: Request, caller: Caller, target: Target) -> Reply:
        kind, charset = content_type(request.headers.get(b"content-type", b""))
        takes = _PATCHES if request.method == "PATCH" else ("application/json",)
        # no page of another site can send a PATCH unasked
        bare = request.method == "PATCH" and b"content-type" not in request.headers
        if (kind not in takes and not bare) or charset != "utf-8":
            return _unsupported(request.method, takes)
        raw = await request.body(self.max_body)
        if bare and not raw:
            return _unsupported(request.method, takes)
        body = read_json(raw)
        query = read_query(request.query, target)
        kept = keeping(request, caller, raw) if request.method != "PUT" else None
        sent = WriteRequest(request, caller, target, query, kept)
        if request.method == "POST" and (target.batch or isinstance(body, list)):
            return await self._create_many(sent, body)
        if kind == _JSON_PATCH:
            return await self._json_patch(sent, body)
        if request.method == "PATCH" and isinstance(body, dict) and dict in map(type, body.values()):
            return await self._merge(sent, body)
        return await self._run(sent, self.plan(sent, body))

    def plan(self, sent: WriteRequest, body: Any) -> PlannedWrite:
        """The write of a request for one row, and how its result is answered."""
        match METHOD_VERBS[sent.request.method]:
            case "create":
                return self._plan_create(sent, body)
            case "delete":
                return self._plan_delete(sent)
            case verb:
                return self._plan_save(sent, verb, body, sent.versions)

    async def _run(self, sent: WriteRequest, planned: PlannedWrite) -> Reply:
        return await self._write(sent, [planned.op], lambda done: planned.reply(done[0]))

    async def _write(
        self, sent: WriteRequest, ops: Sequence[WriteOp], finish: Callable[[Sequence[WriteResult]], Reply]
    ) -> Reply:
        """Execute the writes of a request; the reply has their cost if the client prefers it."""
        reply = await self.write_engine.write(ops, sent.caller.viewer, finish, sent.kept)
        return with_cost(sent.request, reply, lambda: cost_of_parts([op[:2] for op in ops], self.engine.limits))

    # one row

    def _plan_delete(self, sent: WriteRequest) -> PlannedWrite:
        shown = "return=representation" in preferences(sent.request.headers.get(b"prefer"))
        prepared = self._ready("delete", sent, {}, sent.versions, answer=shown)

        def reply(done: WriteResult) -> Reply:
            if done.answer is None:
                return Reply(204, PRIVATE)
            return Reply(200, (*_HEAD, (b"preference-applied", b"return=representation")), done.answer)

        return PlannedWrite(WriteOp(prepared, write_inputs(sent.target, None, sent.versions)), reply)

    def _plan_save(self, sent: WriteRequest, verb: WriteVerb, body: Any, wanted: Versions) -> PlannedWrite:
        prepared = self._ready(verb, sent, body, wanted)
        op = WriteOp(prepared, write_inputs(sent.target, body, wanted))
        return PlannedWrite(op, lambda done: _one(200, prepared, done))

    def _plan_create(self, sent: WriteRequest, body: Any) -> PlannedWrite:
        prepared = self._ready("create", sent, body, None)
        path = f"{sent.request.root}{sent.request.path.rstrip('/')}"

        def reply(done: WriteResult) -> Reply:
            return _one(201, prepared, done, (b"location", f"{path}/{done.id}".encode()))

        return PlannedWrite(WriteOp(prepared, write_inputs(sent.target, body, None)), reply)

    async def _save(self, sent: WriteRequest, body: Any, wanted: Versions) -> Reply:
        return await self._run(sent, self._plan_save(sent, "update", body, wanted))

    async def _json_patch(self, sent: WriteRequest, body: Any) -> Reply:
        self._ready("update", sent, {}, sent.versions)
        read_patch(body)  # errors of the body come before those of the row

        async def seen() -> dict[str, Any]:
            return _decoded(await self._read(sent.target, sent.caller))

        return await self._apply(sent, seen, lambda row: changed(row, apply_patch(row, body)))

    async def _merge(self, sent: WriteRequest, body: Any) -> Reply:
        """Apply a merge patch to nested values as stored, whether or not the caller may read them."""
        wanted = sent.versions
        self._ready("update", sent, body, wanted).binder(write_inputs(sent.target, body, wanted))
        names = sorted(name for name, value in body.items() if isinstance(value, dict))
        return await self._apply(sent, partial(self._stored, sent.target, names), lambda row: merged(row, body))

    async def _stored(self, target: Target, names: Sequence[str]) -> dict[str, Any]:
        """The version and stored values of a row, for merging only.

        Without a row, the write itself is refused. A value that is not valid JSON, which hides the row, is left out:
        nothing can be merged into it.
        """
        stored = await self._trusted(target, ("version", *names))
        if stored is not None:
            return stored
        row = await self._trusted(target, ("version",))
        if row is None:
            return {"version": 0}
        for name in names:
            field = await self._trusted(target, ("version", name))
            if field is not None and field["version"] == row["version"]:
                row |= field
        return row

    async def _trusted(self, target: Target, names: Sequence[str]) -> dict[str, Any] | None:
        """Fields of a row as stored, without access rules; None if the row has an invalid value in them, or is
        missing."""
        engine = self.engine
        resource = engine.model.resources[target.resource]
        where = Compare("eq", Col(("id",)), Slot(0, resource.key))
        read = Read(resource.name, "one", tuple(Field(name, name) for name in names), where)
        plan = engine.plan_reads((read,), engine.model.trusted(False), {}).plan
        (answer,) = await engine.store.run(plan, plan.parameters([resource.key.parse(target.id)], NOBODY, {}))
        return None if answer is None else _decoded(answer)

    async def _apply(
        self,
        sent: WriteRequest,
        read: Callable[[], Awaitable[dict[str, Any]]],
        change: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> Reply:
        """A read-modify-write, guarded by the version that was read (optimistic locking)."""
        if sent.kept is not None:
            before: Reply | None = await self.write_engine.replay(sent.kept)
            if before is not None:
                return before
        wanted = sent.versions
        for left in reversed(range(_ROUNDS)):
            row = await read()
            if wanted is not None and row["version"] not in wanted:
                return await self._save(sent, {}, wanted)  # is refused
            try:
                body = change(row)
            except Refusal:
                await self._read(sent.target, sent.caller)  # a row that the caller may not see is 404, and nothing else
                raise
            try:
                return await self._save(sent, body, (row["version"],))
            except Refusal as refusal:
                if refusal.code is not Code.PRECONDITION_FAILED or wanted is not None or not left:
                    raise
        raise AssertionError

    # new rows

    async def _create_many(self, sent: WriteRequest, rows: Any) -> Reply:
        check_write("create", sent.target, self.engine.model.view(sent.caller.signature))
        if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_CREATED:
            got = f"got {len(rows)}" if isinstance(rows, list) else "in an array"
            fault = Fault(("body",), f"expected 1 to {MAX_CREATED} objects, {got}")
            raise Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", [fault])
        ops: list[WriteOp] = []
        refusals: list[Refusal] = []
        for index, row in enumerate(rows):
            prefix = ("body", index)
            try:
                prepared = self._ready("create", sent, row, None)
                prepared.binder(inputs := write_inputs(sent.target, row, None))
                ops.append(WriteOp(prepared, inputs, prefix=prefix))
            except Refusal as refusal:
                refusals.append(moved(refusal, prefix))
                if refusal.code is not Code.BAD_USER_INPUT:  # it takes precedence over faults of the bodies
                    raise refusals[-1] from None
        if refusals:
            raise joined(refusals)

        def finish(done: Sequence[WriteResult]) -> Reply:
            return Reply(201, _HEAD, b"[" + b",".join([result.answer or b"null" for result in done]) + b"]")

        return await self._write(sent, ops, finish)

    # preparing

    def _ready(
        self, verb: WriteVerb, sent: WriteRequest, body: Any, wanted: Versions, *, answer: bool = True
    ) -> PreparedWrite:
        several = None if wanted is None else len(wanted) > 1
        key = (verb, sent.target.resource, _shape(body), sent.query.shape, several, answer, sent.caller.signature)
        known = self._known.get(key)
        if known is None:
            with self._known.planning():
                known = self._prepare(verb, sent, body, wanted, answer)
            self._known.keep(key, known, shape=key[2:4])
        return known

    def _prepare(self, verb: WriteVerb, sent: WriteRequest, body: Any, wanted: Versions, answer: bool) -> PreparedWrite:
        _, caller, target, query, _ = sent
        name = operation_name(_METHODS[verb], target, self.engine.model)
        measures = query.measure(name, caller.viewer, self.engine.checks)  # syntax errors come before those of the role
        view = self.engine.model.view(caller.signature)
        wish, inputs = understand_write(verb, target, query, body, wanted, view, answer=answer)
        return self.write_engine.prepare(wish, inputs, view, measures)


def _unsupported(method: str, takes: Sequence[str]) -> Reply:
    refusal = Refusal(Code.UNSUPPORTED_MEDIA_TYPE, f"Send the body as {' or '.join(takes)} in UTF-8.")
    return problem(refusal, accept_patch((method,)))


def insufficient_scope(refusal: Refusal) -> Reply:
    """The reply to a DELETE that the caller may not make: 401 in both cases, with and without a token."""
    return problem(refusal, ((b"www-authenticate", b'Bearer error="insufficient_scope"'),), status=401)


def _decoded(row: bytes) -> dict[str, Any]:
    """Decode a stored row. Other writers may have stored numbers out of range, or JSON that is nested too deeply."""
    try:
        return msgspec.json.decode(row, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise Refusal(Code.CONFLICT, "The stored JSON cannot be patched: send whole values.") from None


def _shape(body: Any) -> Any:
    """The part of a body that determines the statement: its field names, and which of them are null."""
    if not isinstance(body, dict) or len(body) > MAX_MEMBERS:
        return None
    return frozenset([(name, value is None) for name, value in body.items()])


def _one(status: int, prepared: PreparedWrite, done: WriteResult, *more: Header) -> Reply:
    answer = done.answer or b"null"
    return Reply(status, (*_HEAD, *more, (b"etag", tag_of_one(answer, prepared.versioned))), answer)
