"""Refusals of requests as replies, in the format of the path: GraphQL errors, or problem details."""

from __future__ import annotations

import logging
import secrets

from diptych.api.graphql.http import LEGACY, OFFERS, error_reply
from diptych.api.media import negotiate
from diptych.api.reply import Header, Reply, problem
from diptych.errors import Code, Refusal
from diptych.identity.viewer import InvalidToken
from diptych.serve.http.request import Request

log = logging.getLogger("diptych")
_INVALID: Header = (b"www-authenticate", b'Bearer error="invalid_token"')


def internal(where: str, request: Request | None = None) -> Refusal:
    """Log the current exception; the refusal contains only its number in the log."""
    number = secrets.token_hex(8) if request is None else request.id
    log.exception("error %s in %s", number, where)
    return Refusal(Code.INTERNAL, f"Something went wrong. Its number is {number}.")


def refusal_reply(request: Request, refusal: Refusal) -> Reply:
    """A Refusal as a reply in the format of the path: GraphQL errors, or problem details."""
    invalid = isinstance(refusal, InvalidToken)
    if request.path == "/graphql":
        reply = error_reply(refusal, negotiate(request.headers.get(b"accept", b""), OFFERS) or LEGACY)
        if invalid:  # 401 in every media type: it is not a GraphQL error
            reply = Reply(401, reply.headers, reply.body)
    else:
        reply = problem(refusal)
    if invalid:
        others = tuple(pair for pair in reply.headers if pair[0] != b"www-authenticate")
        return Reply(reply.status, (*others, _INVALID), reply.body)
    return reply
