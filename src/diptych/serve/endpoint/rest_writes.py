"""REST writes: POST, PUT, PATCH and DELETE on resources.

A body is read, planned (`rest_write_planner`), run and answered. A JSON Patch is a read-modify-write; rows that are
created together are one transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from diptych.api.formats import FORMATS, read_lines, with_lines
from diptych.api.json import read_json
from diptych.api.media import content_type
from diptych.api.reply import Header, Reply, problem
from diptych.api.rest.patch import apply_patch, changed, read_patch
from diptych.api.rest.precondition import NO_VERSION
from diptych.api.rest.query import read_query
from diptych.api.rest.target import Target
from diptych.api.rest.translate import MAX_CREATED, write_inputs
from diptych.api.understand import Versions, check_write
from diptych.ask.measures import too_many_writes
from diptych.db.freshness import FRESHNESS
from diptych.engine.refusals import joined, moved
from diptych.engine.write import IdempotentReply, WriteEngine
from diptych.engine.write_op import PreparedWrite, WriteOp, WriteResult
from diptych.errors import Code, Fault, Refusal
from diptych.identity.viewer import Caller
from diptych.serve.endpoint.cost_header import cost_of_parts, with_cost
from diptych.serve.endpoint.deprecation_headers import with_deprecations
from diptych.serve.endpoint.idempotency import keeping
from diptych.serve.endpoint.rest_nests import under
from diptych.serve.endpoint.rest_write_planner import HEAD, PlannedWrite, RestWritePlanner, WriteRequest
from diptych.serve.http.request import Request

_JSON = ("application/json", "utf-8")
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_PATCHES = (_MERGE_PATCH, "application/json", _JSON_PATCH)
_MANY = _PATCHES[:2]
"""The patches of many rows by a filter."""
_ONE_TYPE = ("application/json",)
"""The bodies of all other methods."""
_ROUNDS = 5
"""How often a patch is retried when the row was changed concurrently."""


def accept_patch(methods: Sequence[str], *, many: bool = False) -> tuple[Header, ...]:
    """The `Accept-Patch` header (RFC 5789), if PATCH is allowed, of one row or of many."""
    takes = _MANY if many else _PATCHES
    return ((b"accept-patch", ", ".join(takes).encode()),) if "PATCH" in methods else ()


class KnownCreation(Struct, frozen=True, eq=False):
    """The creation of a row that was planned before."""

    target: Target
    prepared: PreparedWrite
    body: Any


class RestWrites:
    """The REST writes of one service. `read` returns a row as GET does."""

    def __init__(
        self, write_engine: WriteEngine, read: Callable[[Target, Caller], Awaitable[bytes]], *, max_body: int
    ) -> None:
        self.write_engine = write_engine
        self.engine = write_engine.engine
        self.max_body = max_body
        self._read = read
        self.planner = RestWritePlanner(write_engine)

    def handle(self, request: Request, caller: Caller, target: Target) -> Awaitable[Reply]:
        if target.restore:
            return self._restore(request, caller, target)
        if request.method == "DELETE":
            return self._delete(request, caller, target)
        return self._change(request, caller, target)

    async def _delete(self, request: Request, caller: Caller, target: Target) -> Reply:
        try:
            sent = WriteRequest(request, caller, target, read_query(request.query, target))
            return await self._run(sent, self.planner.plan(sent, None))
        except Refusal as refusal:
            if refusal.code is not Code.FORBIDDEN:
                raise
            return insufficient_scope(refusal)

    async def _restore(self, request: Request, caller: Caller, target: Target) -> Reply:
        sent = request.headers.get(b"content-type")
        # any site can send a cross-origin POST without a content type
        bare = sent is None and b"origin" not in request.headers
        if not bare and content_type(sent or b"") != _JSON:
            return _unsupported("POST", _ONE_TYPE)
        raw = await request.body(self.max_body)
        if bare and raw:
            return _unsupported("POST", _ONE_TYPE)
        body = read_json(raw) if raw else None
        query = read_query(request.query, target)
        restore = WriteRequest(request, caller, target, query, keeping(request, caller, raw))
        return await self._run(restore, self.planner.plan(restore, body))

    async def _change(self, request: Request, caller: Caller, target: Target) -> Reply:
        method = request.method
        media = content_type(request.headers.get(b"content-type", b""))
        kind, bare = media[0], False
        if media != _JSON:
            if kind in FORMATS and method == "POST" and not target.batch:
                return await self._create_lines(request, caller, target, kind)
            # no page of another site can send a PATCH unasked
            bare = method == "PATCH" and b"content-type" not in request.headers
            if (kind not in _takes(method, target) and not bare) or media[1] != "utf-8":
                return _unsupported(method, _takes(method, target))
        raw = await request.body(self.max_body)
        if bare and not raw:
            return _unsupported(method, _takes(method, target))
        body = read_json(raw)
        keeps = method != "PUT" or self.planner.is_new(request, target)
        kept = keeping(request, caller, raw) if keeps else None
        if method == "POST" and not target.batch:
            known = self.planner.known_creation(request, caller, target, body)
            if known is not None:
                return await self.create(request, caller, KnownCreation(target, known, body), kept)
        sent = WriteRequest(request, caller, target, read_query(request.query, target), kept)
        if method == "POST" and (target.batch or isinstance(body, list)):
            return await self._create_many(sent, body)
        if kind == _JSON_PATCH:
            return await self._json_patch(sent, body)
        if kind == _MERGE_PATCH and target.id is not None:
            self._refuse_relations(sent, body, sent.versions)
        return await self._run(sent, self.planner.plan(sent, body))

    def known_creation(self, request: Request, caller: Caller, target: Target, raw: bytes) -> KnownCreation | None:
        """The creation of a row by a POST in JSON, if it is known."""
        body = read_json(raw) if len(raw) <= self.max_body else None
        known = self.planner.known_creation(request, caller, target, body)
        return None if known is None else KnownCreation(target, known, body)

    def create(
        self, request: Request, caller: Caller, creation: KnownCreation, kept: IdempotentReply[Reply] | None
    ) -> Awaitable[Reply]:
        """Create a row by a write that was planned before."""
        finish = partial(self.planner.created, request, creation.target, creation.prepared)
        return self._write(request, caller, (WriteOp(creation.prepared, creation.body),), finish, kept)

    def _run(self, sent: WriteRequest, planned: PlannedWrite) -> Awaitable[Reply]:
        ops = planned.nest or (planned.op,)
        return self._write(sent.request, sent.caller, ops, lambda done: planned.reply(done[0]), sent.kept)

    def _write(
        self,
        request: Request,
        caller: Caller,
        ops: Sequence[WriteOp],
        finish: Callable[[Sequence[WriteResult]], Reply],
        kept: IdempotentReply[Reply] | None,
    ) -> Awaitable[Reply]:
        """Execute the writes of a request; the reply has their cost if the client prefers it."""
        reply = self.write_engine.write(ops, caller.viewer, finish, kept)
        if self.engine.usage is None and b"prefer" not in request.headers:
            return reply
        return self._with_more(request, caller, ops, reply)

    async def _with_more(
        self, request: Request, caller: Caller, ops: Sequence[WriteOp], work: Awaitable[Reply]
    ) -> Reply:
        """The reply with headers about what is deprecated in the writes, and about their cost."""
        reply = await work
        if self.engine.usage is not None:
            reply = with_deprecations(reply, self.engine.usage, [op.prepared_inputs for op in ops], caller)
        if b"prefer" not in request.headers:
            return reply
        return with_cost(request, reply, lambda: cost_of_parts([op.prepared_inputs for op in ops], self.engine.limits))

    async def _save(self, sent: WriteRequest, body: Any, wanted: Versions) -> Reply:
        return await self._run(sent, self.planner.save(sent, "update", body, wanted, merge=False))

    async def _json_patch(self, sent: WriteRequest, body: Any) -> Reply:
        self.planner.prepared("update", sent, {}, sent.versions)
        read_patch(body)  # errors of the body come before those of the row

        async def seen() -> dict[str, Any]:
            return _decoded(await self._read(sent.target, sent.caller))

        def change(row: dict[str, Any]) -> dict[str, Any]:
            values = changed(row, apply_patch(row, body))
            self._refuse_relations(sent, values, (row["version"],))
            return values

        return await self._apply(sent, seen, change)

    def _refuse_relations(self, sent: WriteRequest, body: Any, wanted: Versions) -> None:
        """Refuse relations in a patch whose format says what an object means. They are faults as any: what the role may
        not do comes first, and a relation that is hidden from it is an unknown field."""
        if self.planner.nests.is_nested(sent.target.resource, body):
            self.planner.prepared("update", sent, body, wanted).binder(write_inputs(sent.target, body, wanted))

    async def _apply(
        self,
        sent: WriteRequest,
        read: Callable[[], Awaitable[dict[str, Any]]],
        change: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> Reply:
        """A read-modify-write, guarded by the version that was read (optimistic locking): a read of less than is there,
        which a read token allows, would be refused again and again."""
        if (freshness := FRESHNESS.get()) is not None:
            freshness.required = None
        if sent.kept is not None:
            before: Reply | None = await self.write_engine.replay(sent.kept)
            if before is not None:
                return before
        wanted = sent.versions
        for left in reversed(range(_ROUNDS)):
            row = await read()
            if wanted is not None and row["version"] not in wanted:
                return await self._save(sent, {}, NO_VERSION)  # is refused
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

    async def _create_lines(self, request: Request, caller: Caller, target: Target, kind: str) -> Reply:
        """Create the rows of CSV or NDJSON; the messages of faults name their lines."""
        raw = await request.body(self.max_body)
        query = read_query(request.query, target)
        sent = WriteRequest(request, caller, target, query, keeping(request, caller, raw))
        read = read_lines(raw, kind, self.engine.model.resources[target.resource].fields, MAX_CREATED + 1)
        check_write("create", target, self.engine.model.view(caller.signature))
        if len(read) > MAX_CREATED:
            fault = Fault(("body",), f"expected 1 to {MAX_CREATED} rows, got more")
            raise Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", [fault])
        try:
            return await self._create_many(sent, [row for _, row in read])
        except Refusal as refusal:
            raise with_lines(refusal, [line for line, _ in read]) from None

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
                if sent.creating == "create" and self.planner.nests.is_nested(sent.target.resource, row):
                    nest = self.planner.nest("create", sent, row, None)
                    ops += [under(op, (), prefix, "") for op in nest]
                    if len(ops) > self.engine.limits.writes:
                        raise too_many_writes(len(ops), self.engine.limits)
                    continue
                prepared = self.planner.prepared(sent.creating, sent, row, None)
                prepared.binder(inputs := write_inputs(sent.target, row, None))
                ops.append(WriteOp(prepared, inputs, prefix=prefix))
            except Refusal as refusal:
                refusals.append(moved(refusal, prefix))
                if refusal.code is not Code.BAD_USER_INPUT:  # it takes precedence over faults of the bodies
                    raise refusals[-1] from None
        if refusals:
            raise joined(refusals)

        def finish(done: Sequence[WriteResult]) -> Reply:
            status = 201 if sent.creating == "create" or any(result.created for result in done) else 200
            return Reply(status, HEAD, b"[" + b",".join([result.answer or b"null" for result in done]) + b"]")

        return await self._write(sent.request, sent.caller, ops, finish, sent.kept)


def _takes(method: str, target: Target) -> tuple[str, ...]:
    """The media types of a body."""
    if method != "PATCH":
        return _ONE_TYPE
    return _MANY if target.id is None else _PATCHES


def _unsupported(method: str, takes: Sequence[str]) -> Reply:
    refusal = Refusal(Code.UNSUPPORTED_MEDIA_TYPE, f"Send the body as {' or '.join(takes)} in UTF-8.")
    return problem(refusal, accept_patch((method,), many=takes is _MANY))


def insufficient_scope(refusal: Refusal) -> Reply:
    """The reply to a DELETE that the caller may not make: 401 in both cases, with and without a token."""
    return problem(refusal, ((b"www-authenticate", b'Bearer error="insufficient_scope"'),), status=401)


def _decoded(row: bytes) -> dict[str, Any]:
    """Decode a stored row. Other writers may have stored numbers out of range, or JSON that is nested too deeply."""
    try:
        return msgspec.json.decode(row, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise Refusal(Code.CONFLICT, "The stored JSON cannot be patched: send whole values.") from None
