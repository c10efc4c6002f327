"""The handler of `diptych dev`: it tells an admin why a request was refused. `serve` does not have it.

It adds lines to the replies of the plain handler, once they are errors, and for nobody but an admin; whatever goes
wrong meanwhile, the plain reply is sent.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from diptych.api.graphql.http import Parameters, read_body
from diptych.api.graphql.http import read_query as read_graphql_query
from diptych.api.json import read_json
from diptych.api.reply import Reply
from diptych.errors import Code, Refusal
from diptych.explain.wanted import Rest, Sent
from diptych.explain.why import why
from diptych.identity.tokens import COMMAND_LINE
from diptych.identity.viewer import Caller
from diptych.model.model import Model
from diptych.serve.handler import Handler, log
from diptych.serve.http import Body, Request

_ERRORS = (b'{"errors":', b'{"data":null,"errors":')
"""How the body of an error begins in the query style, where the status may be 200."""
_EXPLAINED = frozenset({
    Code.FORBIDDEN, Code.NOT_FOUND, Code.CONFLICT, Code.BAD_REQUEST, Code.BAD_USER_INPUT,
    Code.GRAPHQL_VALIDATION_FAILED,
})  # fmt: skip
"""What a rule can be the cause of: also that a name does not exist."""
_SECONDS = 2.0


def admin_roles(model: Model) -> list[str]:
    """The roles of an admin: `admin`, or all of them if there is no such role. A model without roles has none."""
    return [name for name in model.roles if name == "admin"] or list(model.roles)


class ExplainingHandler(Handler):
    """Answers as the plain handler does, and tells an admin why not."""

    async def handle(self, request: Request) -> Reply:
        sent = _Remembered(request.body)
        request.body = sent.read
        reply = await super().handle(request)
        if reply.status < 400 and not reply.body.startswith(_ERRORS):
            return reply
        try:
            return await self._explained(request, sent.body, reply)
        except Refusal:  # it is no request, or what it names is not here
            return reply
        except Exception:
            log.exception("it could not be explained why %s %s was refused", request.method, request.path)
            return reply

    async def _explained(self, request: Request, body: bytes, reply: Reply) -> Reply:
        caller = self.context.caller(request.headers.get(b"authorization"))
        assert caller is not None, "it was found when the request came"
        viewer = caller.viewer
        if not self._is_admin(caller):
            return reply
        told = msgspec.json.decode(reply.body)
        error = told["errors"][0]["extensions"] if request.path == "/graphql" else told
        if error["code"] not in _EXPLAINED:
            return reply
        async with asyncio.timeout(_SECONDS):
            sent = _sent(request, body)
            if isinstance(sent, Parameters):
                sent, _ = await self.graphql.persisted.resolve(sent)
            lines = await why(sent, self.engine.model, viewer, self.engine.store)
        if not lines:
            return reply
        error["why"] = lines
        return Reply(reply.status, reply.headers, msgspec.json.encode(told))


    def _is_admin(self, caller: Caller) -> bool:
        """May this caller know everything? Where no role can tell, that is who holds a token of the command line for
        no user, such as the one that `dev` prints: whoever can make one can read the database."""
        wanted = admin_roles(self.engine.model)
        if wanted:
            return caller.viewer.signed_in and caller.viewer.roles.issuperset(wanted)
        claims = caller.claims
        if claims is None or claims.subject is not None:
            return False
        return (claims.get("iss"), claims.get("client_id")) == (self.context.tokens.issuer, COMMAND_LINE)


def _sent(request: Request, body: bytes) -> Sent:
    if request.path == "/graphql":
        return read_body(body) if request.method == "POST" else read_graphql_query(request.query)
    method = "GET" if request.method == "HEAD" else request.method
    value: Any = read_json(body) if body else None
    return Rest(method, request.path, request.query, value)


class _Remembered:
    """The body of a request, which can be read only once."""

    __slots__ = ("_read", "body")

    def __init__(self, read: Body) -> None:
        self._read = read
        self.body = b""

    async def read(self, most: int) -> bytes:
        self.body = await self._read(most)
        return self.body
