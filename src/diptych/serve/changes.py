"""POST, PUT, PATCH and DELETE on resources: a body in, a change, its answer out.

Hot, a request is recognised by what its path names, the role, and the names of the fields in its body.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from diptych.api.json import read_json
from diptych.api.media import content_type
from diptych.api.reply import JSON, PRIVATE, Header, Reply, problem, tag_of_one
from diptych.api.rest.inputs import MAX_CREATED
from diptych.api.rest.patch import apply_patch, changed, merged, read_patch
from diptych.api.rest.precondition import preferences, versions
from diptych.api.rest.translate import Query, Target, operation_name, read_query, translate_write, write_inputs
from diptych.ask.nodes import Change, Field, Read
from diptych.errors import Code, Fault, Refusal
from diptych.identity.viewer import Caller
from diptych.lru import LRUCache, footprint
from diptych.model.expr import Col, Compare, Slot
from diptych.model.roles import NOBODY
from diptych.model.view import View, not_yours
from diptych.serve.cost import cost_of_parts, wants_cost, with_cost
from diptych.serve.http import Request
from diptych.serve.replay import keeping
from diptych.steps import Deed, Done, ReadyWrite, joined, moved
from diptych.transact import Keeping, Transactor

Versions = tuple[int, ...] | None
_VERBS: Mapping[str, Change] = {"POST": "create", "PUT": "replace", "PATCH": "update", "DELETE": "delete"}
_METHODS = {verb: method for method, verb in _VERBS.items()}
_JSON_PATCH = "application/json-patch+json"
_PATCHES = ("application/merge-patch+json", "application/json", _JSON_PATCH)
_HEAD: tuple[Header, ...] = ((b"content-type", JSON), *PRIVATE)
_ROUNDS = 5
"""How often a patch of what is there is applied anew to a row that others change meanwhile."""
_MEMBERS = 1_000
"""Members of a body that are looked at: no resource has more fields."""


def accept_patch(methods: Sequence[str]) -> tuple[Header, ...]:
    """What PATCH takes (RFC 5789)."""
    return ((b"accept-patch", ", ".join(_PATCHES).encode()),) if "PATCH" in methods else ()


class RestChanges:
    """The changes of one service in the resource style. `read` gives a row as GET would."""

    def __init__(
        self, transactor: Transactor, read: Callable[[Target, Caller], Awaitable[bytes]], *, max_body: int
    ) -> None:
        self.transactor = transactor
        self.max_body = max_body
        self._read = read
        self._known: LRUCache[ReadyWrite] = transactor.engine.cache("requests for changes")

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        if request.method != "DELETE":
            return await self._change(request, caller, target)
        try:
            return await self._delete(request, caller, target)
        except Refusal as refusal:
            if refusal.code is not Code.FORBIDDEN:
                raise
            reply = problem(refusal, ((b"www-authenticate", b'Bearer error="insufficient_scope"'),))
            body = msgspec.json.decode(reply.body)
            return Reply(401, reply.headers, msgspec.json.encode({**body, "status": 401}))

    async def _delete(self, request: Request, caller: Caller, target: Target) -> Reply:
        query = read_query(request.query, target)
        shown = "return=representation" in preferences(request.headers.get(b"prefer"))
        ready = self._ready("delete", target, query, {}, _versions(request), caller, answer=shown)

        def finish(done: Sequence[Done]) -> Reply:
            answer = done[0].answer
            if answer is None:
                return Reply(204, PRIVATE)
            return Reply(200, (*_HEAD, (b"preference-applied", b"return=representation")), answer)

        deed = Deed(ready, write_inputs(target, None, _versions(request)))
        return await self._write(request, [deed], caller, finish, None)

    async def _change(self, request: Request, caller: Caller, target: Target) -> Reply:
        kind, charset = content_type(request.headers.get(b"content-type", b""))
        takes = _PATCHES if request.method == "PATCH" else ("application/json",)
        if kind not in takes or charset != "utf-8":
            told = Refusal(Code.UNSUPPORTED_MEDIA_TYPE, f"Send the body as {' or '.join(takes)} in UTF-8.")
            return problem(told, accept_patch((request.method,)))
        raw = await request.body(self.max_body)
        body = read_json(raw)
        query = read_query(request.query, target)
        kept = keeping(request, caller, raw) if request.method != "PUT" else None
        if request.method == "POST":
            return await self._create(request, caller, target, query, body, kept)
        if kind == _JSON_PATCH:
            return await self._json_patch(request, caller, target, query, body, kept)
        if request.method == "PATCH" and isinstance(body, dict) and dict in map(type, body.values()):
            return await self._merge(request, caller, target, query, body, kept)
        verb = _VERBS[request.method]
        return await self._save(request, verb, target, query, body, _versions(request), caller, kept)

    async def _write(
        self, request: Request, deeds: Sequence[Deed], caller: Caller, finish: Callable[[Sequence[Done]], Reply],
        kept: Keeping[Reply] | None,
    ) -> Reply:  # fmt: skip
        """Make the changes of a request; the reply tells what they cost, if that is wanted."""
        reply = await self.transactor.write(deeds, caller.viewer, finish, kept)
        if not wants_cost(request):
            return reply
        return with_cost(reply, cost_of_parts([deed[:2] for deed in deeds], self.transactor.engine.limits))

    # one row

    async def _save(
        self, request: Request, verb: Change, target: Target, query: Query, body: Any, wanted: Versions,
        caller: Caller, kept: Keeping[Reply] | None,
    ) -> Reply:  # fmt: skip
        ready = self._ready(verb, target, query, body, wanted, caller)

        def finish(done: Sequence[Done]) -> Reply:
            return _one(200, ready, done[0])

        deed = Deed(ready, write_inputs(target, body, wanted))
        return await self._write(request, [deed], caller, finish, kept)

    async def _json_patch(
        self, request: Request, caller: Caller, target: Target, query: Query, body: Any, kept: Keeping[Reply] | None
    ) -> Reply:
        self._ready("update", target, query, {}, _versions(request), caller)
        read_patch(body)  # faults of the body come before those of the row
        read = partial(self._seen, target, caller)
        return await self._apply(
            request, caller, target, query, read, lambda row: changed(row, apply_patch(row, body)), kept
        )

    async def _merge(
        self, request: Request, caller: Caller, target: Target, query: Query, body: Any, kept: Keeping[Reply] | None
    ) -> Reply:
        """A merge patch that goes into values as they are stored, whether or not the caller may read them."""
        wanted = _versions(request)
        self._ready("update", target, query, body, wanted, caller).binder(write_inputs(target, body, wanted))
        names = sorted(name for name, value in body.items() if isinstance(value, dict))
        read = partial(self._stored, target, names)
        return await self._apply(request, caller, target, query, read, lambda row: merged(row, body), kept)

    async def _stored(self, target: Target, names: Sequence[str]) -> dict[str, Any]:
        """The version of a row with values that nobody is shown. Where there is no row, the change itself tells so. A
        value that is no JSON, which hides the row, is left out: nothing can be merged into it."""
        found = await self._trusted(target, ("version", *names))
        if found is not None:
            return found
        row = await self._trusted(target, ("version",))
        if row is None:
            return {"version": 0}
        for name in names:
            each = await self._trusted(target, ("version", name))
            if each is not None and each["version"] == row["version"]:
                row |= each
        return row

    async def _trusted(self, target: Target, names: Sequence[str]) -> dict[str, Any] | None:
        """Fields of a row as they are stored; None if it cannot be shown with them."""
        engine = self.transactor.engine
        resource = engine.model.resources[target.resource]
        where = Compare("eq", Col(("id",)), Slot(0, resource.key))
        read = Read(resource.name, "one", tuple(Field(name, name) for name in names), where)
        plan = engine.prepare((read,), engine.model.trusted(False), {}).plan
        (answer,) = await engine.store.run(plan, plan.parameters([resource.key.parse(target.id)], NOBODY, {}))
        return None if answer is None else _decoded(answer)

    async def _seen(self, target: Target, caller: Caller) -> dict[str, Any]:
        """A row as GET gives it."""
        return _decoded(await self._read(target, caller))

    async def _apply(
        self, request: Request, caller: Caller, target: Target, query: Query,
        read: Callable[[], Awaitable[dict[str, Any]]], change: Callable[[dict[str, Any]], dict[str, Any]],
        kept: Keeping[Reply] | None,
    ) -> Reply:  # fmt: skip
        """A change of what is there, guarded by the version that it was made from."""
        if kept is not None:
            before: Reply | None = await self.transactor.replay(kept)
            if before is not None:
                return before
        wanted = _versions(request)
        for left in reversed(range(_ROUNDS)):
            row = await read()
            if wanted is not None and row["version"] not in wanted:
                return await self._save(request, "update", target, query, {}, wanted, caller, kept)  # is refused
            try:
                body = change(row)
            except Refusal:
                await self._read(target, caller)  # of a row that is not there for the caller, nothing else is told
                raise
            try:
                return await self._save(request, "update", target, query, body, (row["version"],), caller, kept)
            except Refusal as refusal:
                if refusal.code is not Code.PRECONDITION_FAILED or wanted is not None or not left:
                    raise
        raise AssertionError

    # new rows

    async def _create(
        self, request: Request, caller: Caller, target: Target, query: Query, body: Any, kept: Keeping[Reply] | None
    ) -> Reply:
        if isinstance(body, list):
            return await self._create_many(request, caller, target, query, body, kept)
        ready = self._ready("create", target, query, body, None, caller)

        def finish(done: Sequence[Done]) -> Reply:
            path = f"{request.root}{request.path.rstrip('/')}/{done[0].id}"
            return _one(201, ready, done[0], (b"location", path.encode()))

        deed = Deed(ready, write_inputs(target, body, None))
        return await self._write(request, [deed], caller, finish, kept)

    async def _create_many(
        self, request: Request, caller: Caller, target: Target, query: Query, rows: list[Any],
        kept: Keeping[Reply] | None,
    ) -> Reply:  # fmt: skip
        self._check_role("create", target, self._view(caller))
        if not 1 <= len(rows) <= MAX_CREATED:
            fault = Fault(("body",), f"expected 1 to {MAX_CREATED} objects, got {len(rows)}")
            raise Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", [fault])
        deeds: list[Deed] = []
        refusals: list[Refusal] = []
        for index, row in enumerate(rows):
            prefix = ("body", index)
            try:
                ready = self._ready("create", target, query, row, None, caller)
                ready.binder(inputs := write_inputs(target, row, None))
                deeds.append(Deed(ready, inputs, prefix=prefix))
            except Refusal as refusal:
                refusals.append(moved(refusal, prefix))
                if refusal.code is not Code.BAD_USER_INPUT:  # it comes before all faults of bodies
                    raise refusals[-1] from None
        if refusals:
            raise joined(refusals)

        def finish(done: Sequence[Done]) -> Reply:
            return Reply(201, _HEAD, b"[" + b",".join([each.answer or b"null" for each in done]) + b"]")

        return await self._write(request, deeds, caller, finish, kept)

    # recognising

    def _ready(
        self, verb: Change, target: Target, query: Query, body: Any, wanted: Versions, caller: Caller, *,
        answer: bool = True,
    ) -> ReadyWrite:  # fmt: skip
        several = None if wanted is None else len(wanted) > 1
        key = (verb, target.resource, _shape(body), query.shape, several, answer, caller.signature)
        known = self._known.get(key)
        if known is None:
            with self.transactor.engine.meter.planning():
                known = self._prepare(verb, target, query, body, wanted, caller, answer)
            self._known.put(key, known, known.size + footprint(key[2:4]))
        return known

    def _prepare(
        self, verb: Change, target: Target, query: Query, body: Any, wanted: Versions, caller: Caller, answer: bool
    ) -> ReadyWrite:
        checks = self.transactor.engine.checks
        name = operation_name(_METHODS[verb], target, self.transactor.engine.model)
        asked = query.asked(name, caller.viewer, checks)  # faults of grammar come before those of the role
        view = self._view(caller)
        self._check_role(verb, target, view)
        if isinstance(body, dict) and len(body) > _MEMBERS:
            fault = Fault(("body",), f"expected at most {_MEMBERS} members, got {len(body)}")
            raise Refusal(Code.BAD_USER_INPUT, "The body is not valid.", [fault])
        wish = translate_write(verb, target, query, body, wanted, view, answer=answer)
        return self.transactor.ready(wish, write_inputs(target, body, wanted), view, asked)

    def _view(self, caller: Caller) -> View:
        return self.transactor.engine.model.view(caller.signature)

    @staticmethod
    def _check_role(verb: Change, target: Target, view: View) -> None:
        """Refuse what other roles may do and this one may never."""
        each = view.resources.get(target.resource)
        if each is None or not each.may(verb):
            raise not_yours(view)


def _decoded(row: bytes) -> dict[str, Any]:
    """A row as the database has it. What others have stored may hold numbers that are no floats, or be too deep."""
    try:
        return msgspec.json.decode(row, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise Refusal(Code.CONFLICT, "Its JSON holds what cannot be patched: send whole values.") from None


def _versions(request: Request) -> Versions:
    return versions(request.headers.get(b"if-match"), request.headers.get(b"if-none-match"))


def _shape(body: Any) -> Any:
    """What of a body can change the statement: which fields it has, and which of them are null."""
    if not isinstance(body, dict) or len(body) > _MEMBERS:
        return None
    return frozenset([(name, value is None) for name, value in body.items()])


def _one(status: int, ready: ReadyWrite, done: Done, *more: Header) -> Reply:
    answer = done.answer or b"null"
    return Reply(status, (*_HEAD, *more, (b"etag", tag_of_one(answer, ready.versioned))), answer)
