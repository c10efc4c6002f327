"""Plans REST writes: a request for one row, or for many by a filter, becomes a WriteOp and the reply to its result.

The cache key of a write is the target of its path, the role, and the names of the fields in its body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from diptych.api.nested_row import NestedRow
from diptych.api.reply import JSON_TYPE, PRIVATE, Header, Reply, tag_of_one
from diptych.api.rest.precondition import preferences, versions
from diptych.api.rest.query import Query
from diptych.api.rest.target import Target, operation_name
from diptych.api.rest.translate import write_inputs
from diptych.api.understand import (
    MAX_MEMBERS,
    METHOD_VERBS,
    Versions,
    check_write,
    understand_bulk,
    understand_write,
    verb_of,
)
from diptych.ask.nodes import WriteVerb
from diptych.ask.wish import Follows
from diptych.engine.known import KnownRequests
from diptych.engine.write import IdempotentReply, WriteEngine
from diptych.engine.write_op import PreparedWrite, WriteOp, WriteResult
from diptych.errors import Code, Fault, Refusal
from diptych.identity.viewer import Caller
from diptych.model.nesting import NestTaking
from diptych.model.scalars import ID
from diptych.policy.values import Binder
from diptych.serve.endpoint.rest_nests import RestNests
from diptych.serve.http.request import Request

_METHODS: Mapping[WriteVerb, str] = {
    **{verb: method for method, verb in METHOD_VERBS.items()},
    "upsert": "POST",
    "restore": "POST",
    "purge": "DELETE",
}
_PLAIN = re.compile(r"[\w.~,-]+", re.ASCII)
"""A text that is its own segment of a path."""
HEAD: tuple[Header, ...] = ((b"content-type", JSON_TYPE), *PRIVATE)
"""The headers of a response with JSON."""
Nested = tuple[Follows, int]
"""The nested write of a row: what follows, and its levels."""


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

    @property
    def creating(self) -> WriteVerb:
        """What a POST to the collection does."""
        return "upsert" if "by" in self.query.parameters else "create"


class PlannedWrite(Struct, frozen=True, eq=False):
    """A write of one row, and the reply to its result."""

    op: WriteOp
    reply: Callable[[WriteResult], Reply]
    nest: tuple[WriteOp, ...] = ()
    """All writes, with this one, if it is a nested write."""


class RestWritePlanner:
    """Plans the REST writes of one service, and caches the plans."""

    def __init__(self, write_engine: WriteEngine) -> None:
        self.write_engine = write_engine
        self.engine = write_engine.engine
        self._known: KnownRequests[PreparedWrite] = KnownRequests(self.engine, "requests for changes")
        self.nests = RestNests(write_engine, self._known)

    def plan(self, sent: WriteRequest, body: Any) -> PlannedWrite:
        """The write of a request for one row, and how its result is answered."""
        match verb_of(sent.request.method, sent.target, sent.query, self.engine.model.resources):
            case "create":
                return self._create(sent, body)
            case "update" | "delete" as verb if sent.target.id is None:
                return self._bulk(verb, sent, body)
            case "delete" | "purge" as verb:
                return self._delete(sent, verb)
            case "restore" if body not in (None, {}):
                raise Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", [Fault(("body",), "expected {}")])
            case "restore":
                return self.save(sent, "restore", {}, sent.versions)
            case "replace" if self.is_new(sent.request, sent.target):
                return self._create(sent, body)
            case verb:
                return self.save(sent, verb, body, sent.versions)

    def is_new(self, request: Request, target: Target) -> bool:
        """Is it a PUT that creates a row under the UUID in its path?"""
        if request.headers.get(b"if-none-match", b"").strip() != b"*":
            return False
        return self.engine.model.resources[target.resource].key is ID and ID.parse(target.id) is not None

    def _delete(self, sent: WriteRequest, verb: WriteVerb) -> PlannedWrite:
        shown = "return=representation" in preferences(sent.request.headers.get(b"prefer"))
        prepared = self.prepared(verb, sent, {}, sent.versions, answer=shown)

        def reply(done: WriteResult) -> Reply:
            if done.answer is None:
                return Reply(204, PRIVATE)
            return Reply(200, (*HEAD, (b"preference-applied", b"return=representation")), done.answer)

        return PlannedWrite(WriteOp(prepared, write_inputs(sent.target, None, sent.versions)), reply)

    def _bulk(self, verb: WriteVerb, sent: WriteRequest, body: Any) -> PlannedWrite:
        """The change of many rows. It is planned anew each time: its body and its query string may have equal names."""
        caller, target, query = sent.caller, sent.target, sent.query
        with self._known.planning():
            name = operation_name(_METHODS[verb], target, self.engine.model)
            measures = query.measure(name, caller.viewer, self.engine.checks)
            view = self.engine.model.view(caller.signature)
            wish, inputs = understand_bulk(verb, target, query, body, view)
            Binder(wish.slots, wish.sources, self.engine.limits, Code.BAD_REQUEST)  # the values of the query string
            prepared = self.write_engine.prepare(wish, inputs, view, measures)
        return PlannedWrite(WriteOp(prepared, inputs), lambda done: Reply(200, HEAD, done.answer or b"null"))

    def save(
        self, sent: WriteRequest, verb: WriteVerb, body: Any, wanted: Versions, *, merge: bool = True
    ) -> PlannedWrite:
        """The write of an existing row; `wanted` are the versions that it may have."""
        if verb == "update" and self.nests.is_nested(sent.target.resource, body):
            nest = self.nest(verb, sent, body, wanted)
            return PlannedWrite(_head(nest), lambda done: _one(200, _head(nest).prepared, done), nest)
        prepared = self.prepared(verb, sent, body, wanted, merge=merge)
        op = WriteOp(prepared, write_inputs(sent.target, body, wanted))
        return PlannedWrite(op, lambda done: _one(200, prepared, done))

    def _create(self, sent: WriteRequest, body: Any) -> PlannedWrite:
        verb, request, target = sent.creating, sent.request, sent.target
        nest: tuple[WriteOp, ...] = ()
        if verb == "create" and request.method == "POST" and self.nests.is_nested(target.resource, body):
            nest = self.nest("create", sent, body, None)
        op = _head(nest) if nest else WriteOp(self.prepared(verb, sent, body), write_inputs(target, body, None))
        if verb == "create" and request.method == "POST" and not nest:
            key = _creation(request, sent.caller, target, body)
            self._known.keep(key, op.prepared, shape=key[1:3])

        def reply(done: WriteResult) -> Reply:
            if verb == "upsert" and not done.created:
                return _one(200, op.prepared, done)
            return self.created(request, target, op.prepared, (done,))

        return PlannedWrite(op, reply, nest)

    def known_creation(self, request: Request, caller: Caller, target: Target, body: Any) -> PreparedWrite | None:
        """The prepared write of a POST that creates a row, if an equal one was planned before: then its query string
        is well-formed, and its body, which is an object without relations, has the values by their names."""
        return self._known.get(_creation(request, caller, target, body)) if type(body) is dict else None

    def created(self, request: Request, target: Target, prepared: PreparedWrite, done: Sequence[WriteResult]) -> Reply:
        """The reply to the creation of a row."""
        resource, id = self.engine.model.resources[target.resource], done[0].id
        segment = id if resource.key is ID and resource.managed else _segment(id)
        location = f"{request.root}/{resource.path}/{segment}".encode()
        return _one(201, prepared, done[0], (b"location", location))

    def nest(self, verb: NestTaking, sent: WriteRequest, body: Any, wanted: Versions) -> tuple[WriteOp, ...]:
        """The writes of a body with relations."""
        check_write(verb, sent.target, self.engine.model.view(sent.caller.signature))

        def head(row: NestedRow, after: Follows, depth: int) -> tuple[PreparedWrite, dict[str, Any]]:
            own = row.values.value
            prepared = self.prepared(verb, sent, own, wanted, nest=(after, depth))
            return prepared, write_inputs(sent.target, own, wanted)

        return self.nests.plan(verb, sent.target.resource, body, sent.caller, head)

    def prepared(
        self,
        verb: WriteVerb,
        sent: WriteRequest,
        body: Any,
        wanted: Versions = None,
        *,
        answer: bool = True,
        merge: bool = True,
        nest: Nested | None = None,
    ) -> PreparedWrite:
        """A prepared write, from the cache if an equal one was prepared before."""
        several = None if wanted is None else len(wanted) > 1
        form = (several, answer, merge, sent.target.id is None)
        key = (verb, sent.target.resource, _shape(body), sent.query.shape, form, sent.caller.signature, nest)
        known = self._known.get(key)
        if known is None:
            with self._known.planning():
                known = self._prepare(verb, sent, body, wanted, answer=answer, merge=merge, nest=nest)
            self._known.keep(key, known, shape=key[2:4])
        return known

    def _prepare(
        self,
        verb: WriteVerb,
        sent: WriteRequest,
        body: Any,
        wanted: Versions,
        *,
        answer: bool,
        merge: bool,
        nest: Nested | None,
    ) -> PreparedWrite:
        _, caller, target, query, _ = sent
        name = operation_name(_METHODS[verb], target, self.engine.model)
        measures = query.measure(name, caller.viewer, self.engine.checks)  # syntax errors come before those of the role
        view = self.engine.model.view(caller.signature)
        wish, inputs = understand_write(verb, target, query, body, wanted, view, answer=answer, merge=merge)
        if nest is not None:
            wish = replace(wish, follows=nest[0], depth=nest[1])
        return self.write_engine.prepare(wish, inputs, view, measures)


def _creation(request: Request, caller: Caller, target: Target, body: Any) -> tuple[Any, ...]:
    """All that determines the creation of a row but its values."""
    return target.resource, request.query, _shape(body), caller.signature


def _shape(body: Any) -> Any:
    """The part of a body that determines the statement: its field names, and which of them are null."""
    if not isinstance(body, dict) or len(body) > MAX_MEMBERS:
        return None
    if None not in body.values():
        return frozenset(body)
    return frozenset([(name, value is None) for name, value in body.items()])


def _segment(id: Any) -> str:
    """An id as a segment of a path."""
    text = str(id)
    return text if _PLAIN.fullmatch(text) else quote(text, safe=",")


def _head(nest: Sequence[WriteOp]) -> WriteOp:
    """The write of a nested write that is answered."""
    return next(op for op in nest if not op.part)


def _one(status: int, prepared: PreparedWrite, done: WriteResult, *more: Header) -> Reply:
    answer = done.answer or b"null"
    return Reply(status, (*HEAD, *more, (b"etag", tag_of_one(answer, prepared.versioned))), answer)
