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
from diptych.engine.rate_limiter import RateLimiter, Spending
from diptych.model.model import Model
from diptych.model.read.rates import rates_in_force
from diptych.serve.http.request import Request


def rate_limiter(model: Model, config: Config, store: Store) -> RateLimiter | None:
    """The limits by rate that a model and the settings have; None if there are none."""
    rates = rates_in_force(model, config.rates)
    return RateLimiter(rates, store, config.rate_slice) if rates else None


def with_rate_headers(request: Request, reply: Reply, spending: Spending) -> Reply:
    """The reply with the headers of the caller's rates."""
    if b"authorization" not in request.headers and _is_public(reply.headers):
        return reply
    return Reply(reply.status, reply.headers + spending.headers(), reply.body, reply.stream)


def _is_public(headers: tuple[Header, ...]) -> bool:
    return any(name == b"cache-control" and value.startswith(b"public") for name, value in headers)
