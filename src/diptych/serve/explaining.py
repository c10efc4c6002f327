"""The handler of `diptych dev`: error responses to an admin explain why the request was refused.

It adds `why` to the error responses of the plain handler, for admins only. If the explanation fails, the plain response
is sent. `diptych serve` does not use it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from diptych.api.graphql.http import Parameters, read_body
from diptych.api.graphql.http import read_parameters as read_graphql_query
from diptych.api.json import read_json
from diptych.api.reply import Reply
from diptych.errors import Code, Refusal
from diptych.explain.understood import RestRequest, Sent
from diptych.explain.why import why
from diptych.fair.eager import in_task
from diptych.serve.admins import is_admin
from diptych.serve.handler import Handler, log
from diptych.serve.http.coding import encode
from diptych.serve.http.request import Request, is_of_console

_ERRORS = (b'{"errors":', b'{"data":null,"errors":')
"""How a GraphQL error response begins, whose status may be 200."""
_EXPLAINED = frozenset(
    {
        Code.FORBIDDEN,
        Code.NOT_FOUND,
        Code.CONFLICT,
        Code.BAD_REQUEST,
        Code.BAD_USER_INPUT,
        Code.GRAPHQL_VALIDATION_FAILED,
    }
)
"""Codes that a rule can cause; also an unknown name can be one that the role may not see."""
_RULELESS = ("/oauth/", "/.well-known/")
"""Where no rule of the model refuses anything; pages and errors of OAuth are no problem details."""
_SECONDS = 2.0


class ExplainingHandler(Handler):
    """The plain handler, with explanations for admins; a reply is compressed after it was explained."""

    compresses = False

    explains = True

    async def handle(self, request: Request) -> Reply:
        return await encode(request, await self._handle(request), self.padding_key)

    async def _handle(self, request: Request) -> Reply:
        read, sent = request.body, b""

        async def read_and_keep(most: int) -> bytes:
            nonlocal sent
            sent = await read(most)
            return sent

        request.body = read_and_keep
        reply = await super().handle(request)
        if reply.status < 400 and not reply.body.startswith(_ERRORS):
            return reply
        if request.path.startswith(_RULELESS) or is_of_console(request.path):
            return reply
        try:
            return await self._explained(request, sent, reply)
        except Refusal:  # it is malformed, or its target does not exist
            return reply
        except Exception:
            log.exception("cannot explain why %s %s was refused", request.method, request.path)
            return reply

    async def _explained(self, request: Request, body: bytes, reply: Reply) -> Reply:
        caller = self.context.caller(request.headers.get(b"authorization"))
        assert caller is not None, "authenticated by the plain handler"
        viewer = caller.viewer
        if not is_admin(caller, self.engine.model, self.context.tokens):
            return reply
        decoded = msgspec.json.decode(reply.body)
        error = decoded["errors"][0]["extensions"] if request.path == "/graphql" else decoded
        if error["code"] not in _EXPLAINED:
            return reply
        await in_task()
        async with asyncio.timeout(_SECONDS):
            sent = _sent(request, body)
            if isinstance(sent, Parameters):
                sent, _ = await self.graphql.persisted.resolve(sent)
            lines = await why(sent, self.engine.model, viewer, self.engine.store)
        if not lines:
            return reply
        error["why"] = lines
        return Reply(reply.status, reply.headers, msgspec.json.encode(decoded))


def _sent(request: Request, body: bytes) -> Sent:
    if request.path == "/graphql":
        return read_body(body) if request.method == "POST" else read_graphql_query(request.query)
    method = "GET" if request.method == "HEAD" else request.method
    value: Any = read_json(body) if body else None
    return RestRequest(method, request.path, request.query, value)
