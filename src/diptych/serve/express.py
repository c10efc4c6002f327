"""The express path: known requests, answered with no coroutine in between if nothing has to be waited for.

    reply = express.answer(request, body, traits)          None: the request goes the whole way (`handler.py`)

It is for requests whose headers ask for nothing special (`http/head_traits.py`), whose caller is cached, and whose
plan is: what is left is to bind values, to price and to run. The steps and their order are those of the handler, done
by the same functions, and nothing is counted or charged before it is certain that the request is answered here. So
whether a request takes this path shows in its time alone; a corpus of requests gets equal responses either way.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from diptych.api.graphql.http import LEGACY
from diptych.api.reply import Reply
from diptych.db.freshness import FRESHNESS
from diptych.engine.read import Engine
from diptych.errors import Refusal
from diptych.fair.caller import CALLER, UNKNOWN, host_name
from diptych.fair.eager import Waiting, ready, start
from diptych.identity.viewer import Caller
from diptych.serve.http.coding import encode
from diptych.serve.http.head_traits import HeadTraits
from diptych.serve.http.request import COMPRESSED, Request
from diptych.serve.rate_headers import enter, with_rate_headers
from diptych.serve.refusals import internal, refusal_reply

if TYPE_CHECKING:
    from diptych.serve.handler import Handler

_LONGEST = 16 << 10
"""Bytes of a body that is read before rates and admission are asked."""


class Express:
    """Answers the known requests of one handler."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._find_caller = handler.context.caller
        self._rates = handler.engine.rates
        self._admission = handler.admission
        self._is_busy = handler.admission.is_needed
        self._rest = handler.rest
        self._compresses = handler.config.compression
        self._numbers = handler.engine.store.numbers
        self._may_wait = self._rates is not None or self._numbers

    def answer(self, request: Request, body: bytes, traits: HeadTraits) -> Reply | Waiting[Reply] | None:
        """The reply to a known request, or the rest of the work for it; None for all others."""
        endpoint: Any = self._rest if request.method == "GET" else self._endpoint(request, body, traits)
        if endpoint is None:
            return None
        try:
            caller = self._find_caller(traits.authorization)
            found = None if caller is None else endpoint.known(request, body, caller)
        except Refusal:  # what is wrong is found again, in its order
            return None
        except Exception:
            return refusal_reply(request, internal(_name(request), request))
        if caller is None or found is None or (self._may_wait and not self._is_at_once()):
            return None
        name = caller.fairness_key or (host_name(request.peer[0]) if request.peer else UNKNOWN)
        CALLER.set(name)
        if traits.coding and self._compresses:
            request.coding = traits.coding
        try:
            if self._rates is not None:
                enter(self._rates, request, caller)
            if self._is_busy(name, request.lag):
                work = self._admission.run(name, _run(endpoint, request, caller, found, traits.media))
                return start(self._later(request, work))
            reply = endpoint.run_known(request, caller, found, traits.media)
        except Refusal as refusal:
            return self._rated(request, refusal_reply(request, refusal))
        except Exception:
            return self._rated(request, refusal_reply(request, internal(_name(request), request)))
        if type(reply) is not Reply:
            return start(self._later(request, reply))
        if request.coding and len(reply.body) >= COMPRESSED:
            return start(self._later(request, ready(reply)))
        return reply if request.spending is None else with_rate_headers(request, reply, request.spending)

    def _endpoint(self, request: Request, body: bytes, traits: HeadTraits) -> Any:
        """The endpoint that may know a POST; None if it is not on this path."""
        if len(body) > _LONGEST:
            return None
        if request.path == "/graphql":
            return self._handler.graphql
        return self._rest if traits.media == LEGACY else None

    def _is_at_once(self) -> bool:
        """Is there nothing to wait for before a request is counted: the spending of other nodes, or a replica?"""
        return not ((self._rates is not None and self._rates.urgent) or (self._numbers and FRESHNESS.get() is not None))

    async def _later(self, request: Request, work: Awaitable[Reply]) -> Reply:
        """The reply of work that waits, as the handler makes it."""
        try:
            reply = await work
            if request.coding:
                reply = await encode(request, reply, self._handler.padding_key)
        except Refusal as refusal:
            reply = refusal_reply(request, refusal)
        except Exception:
            reply = refusal_reply(request, internal(_name(request), request))
        return self._rated(request, reply)

    @staticmethod
    def _rated(request: Request, reply: Reply) -> Reply:
        return reply if request.spending is None else with_rate_headers(request, reply, request.spending)


def express_of(handler: Handler) -> Express | None:
    """The express path of a handler; None if all its requests go the whole way: something observes
    them, or it is recorded who makes changes."""
    is_plain = type(handler.engine) is Engine and "handle" not in vars(handler) and handler.compresses
    return Express(handler) if is_plain and not handler.engine.model.audited else None


async def _run(endpoint: Any, request: Request, caller: Caller, found: Any, media: str) -> Reply:
    """The reply to a known request that was admitted."""
    reply = endpoint.run_known(request, caller, found, media)
    return reply if type(reply) is Reply else await reply


def _name(request: Request) -> str:
    return f"{request.method} {request.path}"
