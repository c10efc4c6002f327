"""The limits by rate of a service, and their response headers (draft-ietf-httpapi-ratelimit-headers-10).

    RateLimit-Policy: "requests-per-minute";q=600;w=60
    RateLimit: "requests-per-minute";r=598;t=1

Only what concerns the caller alone is shown: of a bucket that several callers spend from, there is the policy, and not
what is left. A response that shared caches may keep has neither, as it is sent to others.
"""

from __future__ import annotations

from diptych.api.reply import Header, Reply
from diptych.config import Config
from diptych.db.store import Store
from diptych.engine.rate_limiter import SPENDER, RateLimiter, Spender, Spending
from diptych.identity.viewer import Caller
from diptych.model.model import Model
from diptych.model.read.rates import rates_in_force
from diptych.serve.http.request import Request, is_of_console

ADMITTED_PATHS = ("/health/live", "/health/ready")
"""Paths that bypass rates and admission control: health checks."""
_LAST, _UNLIMITED = "/i", ("/c", "/h")
"""Paths that may be without a rate are before the first in the order of texts, and begin like this."""


def rate_limiter(model: Model, config: Config, store: Store) -> RateLimiter | None:
    """The limits by rate that a model and the settings have; None if there are none."""
    rates = rates_in_force(model, config.rates)
    return RateLimiter(rates, store, config.rate_slice) if rates else None


def enter(rates: RateLimiter, request: Request, caller: Caller) -> None:
    """Count a request of a caller, who pays for it from here on; a Refusal if that is over a rate.

    Part of every request: what is usual, a caller who was here before, is one look at a dict.
    """
    path = request.path
    if path < _LAST and path[:2] in _UNLIMITED and _is_unlimited(path):
        SPENDER.set(None)
        return
    spender = rates.recent.get(caller.sent)
    if spender is None or spender.roles is not caller.viewer.roles:
        spender = _find(rates, request, caller)
    else:
        request.spending = spender
        if SPENDER.get() is not spender:
            SPENDER.set(spender)
    if spender.requests:
        spender.admit(request.begun)


async def settle_rates(rates: RateLimiter, request: Request, caller: Caller) -> None:
    """Wait until the caller's spending is shared, if it has spent so much that its next request should."""
    if not _is_unlimited(request.path):
        await rates.spender(caller, request.peer).settle()


def _is_unlimited(path: str) -> bool:
    return path in ADMITTED_PATHS or is_of_console(path)


def _find(rates: RateLimiter, request: Request, caller: Caller) -> Spender:
    """Who pays for a request from here on."""
    spender = rates.spender(caller, request.peer)
    request.spending = spending = rates.spending(spender) if spender.by_resource else spender
    SPENDER.set(spending)
    return spender


def with_rate_headers(request: Request, reply: Reply, spending: Spending) -> Reply:
    """The reply, which is of this request alone, with the headers of the caller's rates."""
    if b"authorization" in request.headers or not _is_public(reply.headers):
        reply.headers += spending.headers(request.begun)
    return reply


def _is_public(headers: tuple[Header, ...]) -> bool:
    return any(name == b"cache-control" and value.startswith(b"public") for name, value in headers)
