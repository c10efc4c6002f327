"""The GraphQL endpoint of a service with a console: it notes each operation for the page Activity.

    POST /graphql {"query": "query Mine { orders(first: 5) { total } }"}    →    query Mine: orders, price 5, 1.2 ms

Operations of a WebSocket are recorded one by one. The document is kept without strings and numbers (`skeleton_of`),
so that the page can show how it was written, and nobody's values.
"""

from __future__ import annotations

import re
import time
from typing import Any

from graphql import FieldNode, OperationDefinitionNode

from diptych.api.graphql.http import Parameters
from diptych.api.graphql.literals import lift
from diptych.config import Config
from diptych.engine.call import PreparedCall
from diptych.engine.read import Engine
from diptych.engine.read_plan import PreparedRead
from diptych.engine.watch import PreparedWatch
from diptych.engine.write import WriteEngine
from diptych.engine.write_op import PreparedWrite
from diptych.identity.viewer import Caller
from diptych.live.service import LiveService
from diptych.serve.console.notes import Note, current_note
from diptych.serve.console.recent import Recent
from diptych.serve.endpoint.graphql import GraphqlEndpoint, Outcome
from diptych.serve.endpoint.graphql_planner import Planner, Recognised
from diptych.serve.endpoint.known_operation import KnownOperation
from diptych.serve.http.request import Request
from diptych.serve.logs import REQUEST

_LONGEST, _FIELDS = 4_000, 5
"""Characters of a document that is kept, and the most root fields that are named."""
_ERROR = re.compile(rb'"code":"([A-Z_]+)"')
_ERRORS = (b'{"errors":', b'{"data":null,"errors":')
_KIND = re.compile(r"\s*(query|mutation|subscription)\b")


class RecordingGraphql(GraphqlEndpoint):
    """The endpoint, which notes its operations."""

    def __init__(
        self, engine: Engine, write_engine: WriteEngine, live: LiveService, config: Config, recent: Recent
    ) -> None:
        super().__init__(engine, write_engine, live, config)
        self.planner = RecordingPlanner(engine, write_engine, live, self.planner.introspection)
        self._recent = recent

    async def handle(self, request: Request, caller: Caller) -> Any:
        reply = await super().handle(request, caller)
        if reply.body.startswith(_ERRORS) and (note := current_note()) is not None:
            note.code = _code_of(reply.body)
        return reply

    async def run(self, parameters: Parameters, caller: Caller) -> Outcome:
        socket = REQUEST.get()
        if socket is None:
            return await super().run(parameters, caller)
        own = Request(socket.method, socket.path, "", socket.headers, socket.body, peer=socket.peer)
        own.begun = time.perf_counter()
        before = REQUEST.set(own)
        try:
            outcome = await super().run(parameters, caller)
            if outcome.refused is not None and (note := current_note()) is not None:
                note.code = outcome.refused.code.name
            self._recent.record(own, 200, len(outcome.body))
        finally:
            REQUEST.reset(before)
        return outcome


class RecordingPlanner(Planner):
    """The planner, which notes what each request is."""

    def recognise(
        self, parameters: Parameters, request: Request | None, caller: Caller, *, streams: bool = False
    ) -> Recognised:
        note, query = current_note(), parameters.query or ""
        if note is None:
            return super().recognise(parameters, request, caller, streams=streams)
        note.text = skeleton_of(query)
        found = _KIND.match(query)
        note.kind = found[1] if found else "query"
        recognised = super().recognise(parameters, request, caller, streams=streams)
        entry, _, known = recognised
        note.measures = entry.measures
        _describe(note, entry.document.operation, known)
        return recognised


def _describe(note: Note, operation: OperationDefinitionNode, known: KnownOperation) -> None:
    note.kind = operation.operation.value
    selections = operation.selection_set.selections[:_FIELDS]
    note.fields = tuple([node.name.value for node in selections if isinstance(node, FieldNode)])
    note.statements = tuple(dict.fromkeys(sql for part in known.parts if (sql := _statement_of(part))))


def _statement_of(part: PreparedRead | PreparedWatch | PreparedWrite | PreparedCall) -> str:
    if isinstance(part, PreparedWrite):
        return part.plan.change.sql
    if isinstance(part, PreparedCall):
        return "" if part.answer is None else part.answer.plan.sql
    return part.planned.plan.sql


def skeleton_of(text: str) -> tuple[Any, ...]:
    """A document without its literals, and where they were; empty if it is long, or if they cannot be separated."""
    if len(text) > _LONGEST:
        return ()
    literals = lift(text)
    if literals is not None:
        return literals.rest
    return () if '"' in text or "#" in text else (text,)


def _code_of(body: bytes) -> str:
    found = _ERROR.search(body)
    return found[1].decode() if found else ""
