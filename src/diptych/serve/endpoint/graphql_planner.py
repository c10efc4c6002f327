"""The planner of the GraphQL endpoint: from the parameters of a request to a prepared operation, with a cache.

The cache key is the document, the operation name, the role and the shape of the variables. A new request is parsed,
checked against the limits, validated, translated and planned first. A document with literals is planned with the
literals lifted out of its text (`literals.py`), and kept under what is left of the text: other texts that differ only
in literals find it. A request that such a plan does not fit is planned by itself, with its literals as constants; so
are those with errors, whose messages quote the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import GraphQLSchema, OperationType
from msgspec import Struct
from msgspec.structs import replace

from diptych.api.graphql.document import Document, check_variables, count_variables, read_document
from diptych.api.graphql.http import Parameters
from diptych.api.graphql.introspection import Answer, introspection_of
from diptych.api.graphql.literals import Literals, lift
from diptych.api.graphql.node_lookup import NodeLookup
from diptych.api.graphql.operation import TranslatedOperation
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.understand import read_operation, translate_operation
from diptych.api.reply import DocumentRefusal
from diptych.ask.measures import RequestMeasures
from diptych.ask.slots import LITERALS
from diptych.ask.wish import NestWish, WriteWish
from diptych.engine.call import CallEngine, PreparedCall
from diptych.engine.read import Engine
from diptych.engine.refusals import joined
from diptych.engine.write import WriteEngine
from diptych.engine.write_op import PreparedWrite
from diptych.errors import Code, Fault, Refusal
from diptych.identity.viewer import Caller
from diptych.live.service import LiveService
from diptych.lru import LRUCache, footprint
from diptych.model.declare.roles import NOBODY
from diptych.model.signature import Signature
from diptych.model.view import View
from diptych.serve.endpoint.idempotency import sent_key
from diptych.serve.endpoint.known_operation import (
    DOCUMENT_BYTES,
    Binding,
    KnownDocument,
    KnownOperation,
    RefusedDocument,
    pieces_of,
)
from diptych.serve.endpoint.role_schemas import RoleSchemas, Unmade
from diptych.serve.http.request import Request, wants_cursor
from diptych.serve.introspection import Introspection
from diptych.serve.stream.sse import STREAM

Variables = Mapping[str, Any]
Recognised = tuple[KnownDocument, Variables, KnownOperation]
_SHAPES = 64
"""The most shapes of variables that are cached for one document."""
_SHORT = 2_048
"""Characters up to which literals are lifted out of a text at no charge."""


class _Sent(Struct, eq=False):
    """A request, as it was sent."""

    parameters: Parameters
    request: Request | None
    caller: Caller
    streams: bool
    variables: Variables

    def check_transport(self, kind: OperationType) -> None:
        """Refuse an operation that this method or transport does not accept, cached or not. (A WebSocket accepts
        all.)"""
        if kind is OperationType.SUBSCRIPTION and not self.streams:
            raise Refusal(Code.NOT_ACCEPTABLE, f"A subscription is answered as {STREAM}, or over a WebSocket.")
        if kind is OperationType.MUTATION and self.request is not None:
            if self.request.method != "POST":
                raise Refusal(Code.METHOD_NOT_ALLOWED, f"A mutation cannot be sent by {self.request.method}.")
            sent_key(self.request, self.caller)


class Planner:
    """Prepares the operations of one service, by role."""

    def __init__(
        self, engine: Engine, write_engine: WriteEngine, live: LiveService, introspection: Introspection
    ) -> None:
        self.engine = engine
        self.write_engine = write_engine
        self.live = live
        self.calls = CallEngine(write_engine)
        self.introspection = introspection
        self.lifts = not engine.checks.has_more
        """Are literals lifted out of documents? Checks of the application see the text that was sent."""
        self._entries: LRUCache[KnownDocument | RefusedDocument | Literals] = engine.cache("documents", DOCUMENT_BYTES)
        self.schemas = RoleSchemas(engine, build_schema)

    def schema(self, signature: Signature) -> GraphQLSchema:
        """The GraphQL schema of a role; raises Unmade if it takes long to make."""
        return self.schemas.get(signature)

    async def recognise_after(
        self, unmade: Unmade, parameters: Parameters, request: Request | None, caller: Caller, *, streams: bool = False
    ) -> Recognised:
        """The prepared operation of a request that needs what is not made yet: it is made in a thread first."""
        while True:
            await self.schemas.make(unmade)
            try:
                return self.recognise(parameters, request, caller, streams=streams)
            except Unmade as more:
                unmade = more

    def known(self, parameters: Parameters, caller: Caller) -> Recognised | None:
        """The prepared operation of a request that is known; None for all others."""
        entry = self._entries.get((parameters.query, parameters.operationName, caller.signature))
        variables = parameters.variables or {}
        if type(entry) is Literals:
            return self._known_lifted(entry, parameters.operationName, variables, caller)
        if type(entry) is not KnownDocument:
            return None
        known = entry.known.get(entry.document.shape(variables))
        return None if known is None or known.has_unread else (entry, variables, known)

    def _known_lifted(
        self, literals: Literals, name: str | None, variables: Variables, caller: Caller
    ) -> Recognised | None:
        """The prepared operation of a document whose literals were lifted: they must fit, as those of `_lifted`."""
        entry = self._entries.get((literals.rest, name, caller.signature))
        if type(entry) is not KnownDocument or not literals.fit(self.engine.limits):
            return None
        inputs = {**variables, LITERALS: literals}
        known = entry.known.get(entry.document.shape(inputs))
        if known is None or known.literals is None or known.has_unread:
            return None
        try:
            for fetch, parse in known.literals:
                parse(fetch(inputs))
        except ValueError:
            return None
        return entry, inputs, known

    def recognise(
        self, parameters: Parameters, request: Request | None, caller: Caller, *, streams: bool = False
    ) -> Recognised:
        """The prepared operation of a request; a new one is planned first, within the caller's planning budget."""
        query = parameters.query
        if query is None:
            raise Refusal(Code.BAD_REQUEST, "The request has no query.")
        variables = parameters.variables or {}
        key = (query, parameters.operationName, caller.signature)
        entry = self._entries.get(key)
        if type(entry) is KnownDocument and entry.reads and (request is None or b"prefer" not in request.headers):
            known = entry.known.get(entry.document.shape(variables))
            if known is not None and not known.has_unread:  # the fast path
                return entry, variables, known
        sent = _Sent(parameters, request, caller, streams, variables)
        if isinstance(entry, KnownDocument):
            return self._operation(key, entry, sent)
        if isinstance(entry, RefusedDocument):
            raise self._refused(entry, sent)
        literals = entry or (self._lift(query) if self.lifts else None)
        if literals is not None:
            return self._lifted(key, literals, sent, is_known=entry is not None)
        return self._planned(key, self._plan_document(sent), sent)

    def _lift(self, query: str) -> Literals | None:
        """The literals of a text; the time that a long one takes is charged to the caller."""
        if len(query) <= _SHORT:
            return lift(query)
        with self.engine.planning_budget.planning():
            return lift(query)

    def _planned(self, key: Any, entry: KnownDocument | RefusedDocument, sent: _Sent) -> Recognised:
        """Cache a new document, and prepare its operation."""
        self._entries.put(key, entry, entry.size + footprint(key[:2]))
        if isinstance(entry, RefusedDocument):
            raise self._refused(entry, sent)
        return self._operation(key, entry, sent, is_new=True)

    def _refused(self, entry: RefusedDocument, sent: _Sent) -> Refusal:
        if entry.kind is not None:
            sent.check_transport(entry.kind)
        return entry.refusal.again()

    def _lifted(self, key: Any, literals: Literals, sent: _Sent, *, is_known: bool) -> Recognised:
        """The operation of a document whose literals were lifted, or that of the text as it is, if they do not fit."""
        shared_key = (literals.rest, *key[1:])
        entry = self._entries.get(shared_key)
        is_new = entry is None
        if entry is None:
            entry = self._plan_document(sent)
            if isinstance(entry, RefusedDocument):
                return self._planned(key, entry, sent)
            entry = replace(entry, document=replace(entry.document, places=literals.places))
            self._entries.put(shared_key, entry, entry.size + footprint(literals.rest))
        assert isinstance(entry, KnownDocument)
        if is_new or literals.fit(self.engine.limits):
            try:
                inputs = {**sent.variables, LITERALS: literals}
                recognised = self._operation(shared_key, entry, replace(sent, variables=inputs), is_new=is_new)
                for fetch, parse in _all(recognised[2].literals):
                    parse(fetch(inputs))
            except (Refusal, ValueError):
                pass  # what is wrong is found again below, in the text itself
            else:
                if not is_known:
                    self._entries.put(key, literals, literals.size)
                return recognised
        if is_new:
            return self._planned(key, replace(entry, document=replace(entry.document, places={}), known={}), sent)
        return self._planned(key, self._plan_document(sent), sent)

    def _operation(self, key: Any, entry: KnownDocument, sent: _Sent, *, is_new: bool = False) -> Recognised:
        """The prepared operation of a document, by the shape of the variables."""
        request, variables = sent.request, sent.variables
        if not (entry.reads or is_new):
            sent.check_transport(entry.document.operation.operation)
        with_change_cursor = (
            entry.reads and request is not None and b"prefer" in request.headers and wants_cursor(request)
        )
        shape: Any = entry.document.shape(variables)
        if with_change_cursor:
            shape = (shape, "change-cursor")
        known = entry.known.get(shape)
        if known is None:
            measures = entry.measures.of(sent.caller.viewer)
            with self.engine.planning_budget.planning(goes_on=is_new):
                known = self._prepare(key, entry.document, variables, measures, sent.caller, with_change_cursor)
                places = set(entry.document.places.values())
                literals = known.bindings(len(places)) if places else None
                known = replace(known, literals=literals, has_unread=known.leaves_unread(entry.document, variables))
            if known.keep and len(entry.known) < _SHAPES:
                entry.known[shape] = known
                self._entries.grow(key, known.size + footprint(shape))
        elif known.has_unread:
            check_variables(entry.document, variables, self.schema(sent.caller.signature))
        return entry, variables, known

    def check_inputs(self, entry: KnownDocument, variables: Variables, caller: Caller) -> None:
        """Validate the variables of a request that was refused, for graphql-core's errors of them."""
        document, checks = entry.document, self.engine.checks
        measures = RequestMeasures("graphql", caller.viewer)
        literals = variables.get(LITERALS)
        if isinstance(literals, Literals):  # the locations in an error are those of the text that was sent
            name = document.operation.name.value if document.operation.name else None
            node, operation = read_document(literals.text, name, replace(measures), checks)
            document = replace(document, node=node, operation=operation)
        count_variables(document, variables, measures, checks)
        check_variables(document, variables, self.schema(caller.signature))

    def _plan_document(self, sent: _Sent) -> KnownDocument | RefusedDocument:
        """Parse and validate a new document."""
        caller = sent.caller
        measures = RequestMeasures("graphql", caller.viewer)
        kind: OperationType | None = None

        def admit(operation: OperationType) -> None:
            nonlocal kind
            kind = operation
            sent.check_transport(operation)

        with self.engine.planning_budget.planning():
            view = self.engine.model.view(caller.signature)
            checks = self.engine.checks
            try:
                document = read_operation(
                    sent.parameters, measures, checks, view, lambda: self.schema(caller.signature), admit
                )
            except DocumentRefusal as refusal:
                if checks.has_more:  # a custom check sees every request, and may refuse it for another viewer
                    raise
                return RefusedDocument(refusal.again(), kind)
        is_read = document.operation.operation is OperationType.QUERY
        return KnownDocument(document, measures.of(NOBODY), is_read)

    def _prepare(
        self,
        key: Any,
        document: Document,
        variables: Variables,
        measures: RequestMeasures,
        caller: Caller,
        with_change_cursor: bool,
    ) -> KnownOperation:
        count_variables(document, variables, measures, self.engine.checks)
        schema = self.schema(caller.signature)
        view = self.engine.model.view(caller.signature)
        try:
            operation = translate_operation(document, variables, view, schema, self.engine.limits)
        except DocumentRefusal as refusal:
            if document.operation.operation is OperationType.MUTATION:
                raise self._with_all_faults(refusal, document, variables, view, measures) from None
            raise
        meta: Answer = {}
        if any(root.kind == "introspection" for root in operation.roots):
            self.introspection.check(caller.viewer)
            asked = (key, repr(variables) if document.variables else "")
            meta = self.schemas.answer(asked, view, lambda: introspection_of(document, variables, schema))
        pieces = pieces_of(operation.roots, meta)
        if operation.watch is not None:
            return KnownOperation(
                None, pieces, watch=self.live.watch_engine.prepare(operation.watch, view, Code.BAD_USER_INPUT, measures)
            )
        if operation.writes:
            writes = self._prepare_writes(operation, variables, view, measures)
            changes = tuple(((label,), write) for label, write in writes if isinstance(write, PreparedWrite))
            return KnownOperation(
                None,
                pieces,
                writes=writes,
                changes=changes if len(changes) == len(writes) else (),
                nests=operation.nests,
            )
        known = self._prepare_reads(operation, variables, view, measures, pieces, with_change_cursor)
        if meta:
            known = replace(known, keep=not (document.variables or self.introspection.depends), max_age=0)
        return known

    def _prepare_reads(
        self,
        operation: TranslatedOperation,
        variables: Variables,
        view: View,
        measures: RequestMeasures,
        pieces: tuple[bytes, ...],
        with_change_cursor: bool,
    ) -> KnownOperation:
        """Prepare a query: its reads, which are one statement, and its custom queries."""
        wish = operation.wish
        # custom queries read in snapshots of their own
        with_change_cursor = with_change_cursor and bool(wish.asks) and not operation.calls
        prepared = None
        if wish.asks:
            prepared = self.engine.prepare(
                wish, view, Code.BAD_USER_INPUT, variables, measures, with_change_cursor=with_change_cursor
            )
        labels = [root.label for root in operation.roots if root.kind == "call"]
        calls = {
            label: self.calls.prepare(call, variables, view, measures)
            for label, call in zip(labels, operation.calls, strict=True)
        }
        order = tuple(root.label for root in operation.roots if root.kind in ("ask", "call"))
        reads = [root for root in operation.roots if root.kind == "ask"]
        looks = any(root.types > 1 or root.many for root in reads)
        ages = [part.max_age for part in (prepared, *calls.values()) if part is not None]
        return KnownOperation(
            prepared,
            pieces,
            calls=calls,
            order=order,
            with_change_cursor=with_change_cursor,
            max_age=min(ages, default=0),
            lookups=tuple(NodeLookup(root.types, root.many) for root in reads) if looks else (),
        )

    def _with_all_faults(
        self, refusal: DocumentRefusal, document: Document, variables: Variables, view: View, measures: RequestMeasures
    ) -> Refusal:
        """All faults of a mutation's values, where graphql-core reports only those of their types."""
        faults: tuple[Fault, ...] = ()
        try:
            operation = translate_operation(document, variables, view, None, self.engine.limits)
            self._prepare_writes(operation, variables, view, measures)
        except Refusal as own:
            faults = own.faults if own.code is refusal.code else ()
        reported = {fault.path[:2] for fault in faults}
        others = [fault for fault in refusal.faults if fault.path not in reported]
        return Refusal(refusal.code, refusal.message, [*faults, *others])

    def _prepare_writes(
        self, operation: TranslatedOperation, variables: Variables, view: View, measures: RequestMeasures
    ) -> tuple[tuple[str, PreparedWrite | PreparedCall], ...]:
        """Prepare the mutations of an operation; the faults of all of them are reported together."""
        labels = [root.label for root in operation.roots if root.kind == "ask"]
        writes: list[tuple[str, PreparedWrite | PreparedCall]] = []
        refusals: list[Refusal] = []
        for label, wish in zip(labels, operation.writes, strict=True):
            for part in wish.parts if isinstance(wish, NestWish) else (wish,):
                try:
                    prepared = (
                        self.write_engine.prepare(part, variables, view, measures)
                        if isinstance(part, WriteWish)
                        else self.calls.prepare(part, variables, view, measures)
                    )
                    prepared.binder(variables)
                    writes.append((label, prepared))
                except Refusal as refusal:
                    refusals.append(refusal)
        if refusals:
            raise joined(refusals)
        return tuple(writes)


def _all(bindings: tuple[Binding, ...] | None) -> tuple[Binding, ...]:
    if bindings is None:
        raise ValueError("a literal that is not the value of a slot")
    return bindings
