"""Links of a many-to-many relation as resources of their own: `PUT` and `DELETE /posts/<id>/tags/<id>`, and `PUT
/posts/<id>/tags`, which sets all links of a row.

They are the writes of links that a nested `connect`, `disconnect` and `set` make, without a write of the row itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from diptych.api.json import read_json
from diptych.api.links import link_rows, of_links
from diptych.api.media import content_type
from diptych.api.nested_row import NestedRow
from diptych.api.reply import PRIVATE, Reply, method_reply
from diptych.api.rest.target import Target, operation_name
from diptych.ask.measures import RequestMeasures
from diptych.engine.write_op import PreparedWrite, WriteOp, WriteResult
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller
from diptych.serve.endpoint.cost_header import cost_of_parts, with_cost
from diptych.serve.endpoint.deprecation_headers import with_deprecations
from diptych.serve.endpoint.rest_writes import RestWrites, insufficient_scope
from diptych.serve.http.request import Request

METHODS = ("PUT", "DELETE", "OPTIONS")
"""The methods of the link of two rows."""


class PlannedLinks(NamedTuple):
    """The writes of links of a request, and the reply to the result of the first."""

    ops: tuple[WriteOp, ...]
    reply: Callable[[WriteResult], Reply]


class RestLinks:
    """Connects and disconnects rows of one service."""

    def __init__(self, writes: RestWrites) -> None:
        self.writes = writes
        self.engine = writes.engine

    async def handle(self, request: Request, caller: Caller, target: Target) -> Reply:
        if target.other is not None and (reply := method_reply(request.method, METHODS)) is not None:
            return reply
        try:
            body = await self._body(request) if request.method == "PUT" else None
            planned = self.plan(request, caller, target, body)
            engine = self.writes.write_engine
            reply = await engine.write(planned.ops, caller.viewer, lambda done: planned.reply(done[0]))
        except Refusal as refusal:
            refusal = of_links(refusal)
            if request.method == "DELETE" and refusal.code is Code.FORBIDDEN:
                return insufficient_scope(refusal)
            raise refusal from None
        reply = with_deprecations(reply, self.engine.usage, [op.prepared_inputs for op in planned.ops], caller)
        return with_cost(
            request, reply, lambda: cost_of_parts([op.prepared_inputs for op in planned.ops], self.engine.limits)
        )

    def plan(self, request: Request, caller: Caller, target: Target, body: Any) -> PlannedLinks:
        """The writes of a request; `body` is None if it has none."""
        if target.other is None and request.headers.get(b"if-match", b"*").strip() != b"*":
            raise Refusal(
                Code.PRECONDITION_FAILED, "The links of a row have no version: set them by a PATCH of the row."
            )
        view = self.engine.model.view(caller.signature)
        rows = link_rows(request.method, target, body, view, self.engine.limits)
        measures = RequestMeasures("rest", caller.viewer, operation_name(request.method, target, self.engine.model))

        def head(row: NestedRow) -> PreparedWrite:
            return self.writes.planner.nests.prepared(row, view, measures)

        ops = self.writes.planner.nests.ops(rows, 0, view, lambda row: (head(row), row.inputs))
        connects = request.method == "PUT" and target.other is not None
        return PlannedLinks(ops, lambda done: Reply(201 if connects and done.created else 204, PRIVATE))

    async def _body(self, request: Request) -> Any:
        raw = await request.body(self.writes.max_body)
        if not raw:
            return None
        if content_type(request.headers.get(b"content-type", b"")) != ("application/json", "utf-8"):
            raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json in UTF-8.")
        return read_json(raw)
