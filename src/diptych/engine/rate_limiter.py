"""Rate limits: each caller has a Spender, which takes what its requests cost from the buckets of its rates.

    spender = limiter.spender(caller, peer)             once for a request
    if limiter.unshared.urgent: await spender.settle()
    spender.admit(now)                                  one request, at the moment at which it was received
    SPENDER.get().charge(price, resources)              its cost, once it is known, before the statement runs

All that is asked of a service passes here: requests of both styles, batches, actions, pages of exports and of the
change log, and each change that a stream sends. A Refusal says which rate was exceeded, and when to try again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import WeakValueDictionary

from diptych.db.store import Store
from diptych.engine.rate_sharing import RateSharing
from diptych.errors import Code, Refusal
from diptych.fair.caller import UNKNOWN, peer_name
from diptych.fair.rate_bucket import RateBucket, Unshared
from diptych.identity.tokens import client_of
from diptych.identity.viewer import Caller
from diptych.lru import LRUCache
from diptych.model.rates import RateDef, rates_of

_SPENDERS, _SPENDER_BYTES = 10_000, 2_048
"""Callers and addresses that are remembered, and bytes of each, at most."""
_RECENT = 1_000
STEPS = 1_000
"""Values of what is left that are shown, at most; it is rounded down."""
SLICE = 0.1
Header = tuple[bytes, bytes]


class Spending(Protocol):
    """What a request may spend from."""

    def charge(self, price: int, resources: Iterable[str]) -> None:
        """Spend the cost of a request on these resources; a Refusal if that is over a rate."""

    def wait(self, price: int) -> float:
        """Seconds until so much can be spent."""

    def overdraw(self, price: int) -> None:
        """Spend, even if that is over a rate."""

    def headers(self, now: float) -> tuple[Header, ...]:
        """The headers `RateLimit-Policy` and `RateLimit`, if there is something to say."""


SPENDER: ContextVar[Spending | None] = ContextVar("spender", default=None)
"""Who pays for the current request; None if nothing is limited."""


class Spender:
    """The buckets of one caller. This runs for every request: what is usual, one bucket of a kind, has no loop."""

    __slots__ = (
        "_clock",
        "_cost",
        "_limiter",
        "_only",
        "_policies",
        "_request",
        "_shown",
        "_steps",
        "_table",
        "buckets",
        "by_resource",
        "costs",
        "policies",
        "requests",
        "roles",
    )

    def __init__(
        self,
        limiter: RateLimiter,
        buckets: Mapping[str, RateBucket],
        rates: Iterable[RateDef],
        roles: frozenset[str],
    ) -> None:
        self._limiter = limiter
        self._clock = limiter.clock
        self.roles = roles
        general = [rate for rate in rates if not rate.resource]
        self.requests = tuple(buckets[rate.name] for rate in general if rate.unit == "requests")
        self.costs = tuple(buckets[rate.name] for rate in general if rate.unit == "cost")
        self._request = self.requests[0] if len(self.requests) == 1 else None
        self._cost = self.costs[0] if len(self.costs) == 1 else None
        self.by_resource: dict[str, list[RateBucket]] = {}
        for rate in rates:
            if rate.resource:
                self.by_resource.setdefault(rate.resource, []).append(buckets[rate.name])
        self.buckets = frozenset(buckets.values())
        self.policies = b", ".join([policy_item(rate) for rate in general])
        self._policies: tuple[Header, ...] = ((b"ratelimit-policy", self.policies),) if general else ()
        # what is left of a bucket that others spend from says what they do
        self._shown = tuple((buckets[rate.name], template(rate)) for rate in general if is_own(rate))
        self._only: RateBucket | None = None
        self._table: Sequence[tuple[Header, ...]] = ()
        self._steps = 0.0
        """Steps of that table in a second of filling."""
        if len(self._shown) == 1 and self._shown[0][0].per_unit <= 1:  # there is more within a second
            self._only = bucket = self._shown[0][0]
            self._table = limiter.header_table(self.policies, bucket)
            self._steps = 1 / (bucket.per_unit * step_of(bucket.amount))

    async def settle(self) -> None:
        """Wait until what it has spent is shared, if it has spent so much that its next request should."""
        await self._limiter.sharing.settle(self.buckets)

    def admit(self, now: float) -> None:
        """Spend one request; a Refusal if that is over a rate."""
        bucket = self._request
        if bucket is not None:
            full_at = bucket.full_at
            full_at = (full_at if full_at > now else now) + bucket.per_unit
            if full_at > now + bucket.limit:
                raise self._limiter.refusal(bucket, 1, now)
            bucket.full_at, bucket.spent_at = full_at, now
            bucket.unshared += 1
            if bucket.unshared > bucket.threshold:
                self._limiter.unshared.note(bucket)
            return
        for bucket in self.requests:
            if bucket.wait(1, now) > 0:
                raise self._limiter.refusal(bucket, 1, now)
        for bucket in self.requests:
            bucket.spend(1, now)

    def charge(self, price: int, resources: Iterable[str]) -> None:
        """Spend the cost of a request; a Refusal if that is over a rate."""
        bucket = self._cost
        if bucket is not None:
            now = self._clock()
            full_at = bucket.full_at
            full_at = (full_at if full_at > now else now) + price * bucket.per_unit
            if full_at > now + bucket.limit:
                raise self._limiter.refusal(bucket, price, now)
            bucket.full_at, bucket.spent_at = full_at, now
            bucket.unshared += price
            if bucket.unshared > bucket.threshold:
                self._limiter.unshared.note(bucket)
            return
        if not self.costs:
            return
        now = self._clock()
        for bucket in self.costs:
            if bucket.wait(price, now) > 0:
                raise self._limiter.refusal(bucket, price, now)
        for bucket in self.costs:
            bucket.spend(price, now)

    def wait(self, price: int) -> float:
        """Seconds until so much cost can be spent."""
        now = self._clock()
        return max([bucket.wait(price, now) for bucket in self.costs], default=0.0)

    def overdraw(self, price: int) -> None:
        """Spend cost, even if that is over a rate."""
        now = self._clock()
        for bucket in self.costs:
            bucket.spend(price, now)

    def limits(self, now: float) -> bytes:
        """The items of `RateLimit`."""
        return b", ".join([limit_item(text, bucket, now) for bucket, text in self._shown])

    def headers(self, now: float) -> tuple[Header, ...]:
        """The headers `RateLimit-Policy` and `RateLimit`."""
        bucket = self._only
        if bucket is not None:
            spent_at = bucket.spent_at
            debt = bucket.full_at - (now if now > spent_at else spent_at)
            if debt <= 0:
                return self._table[-1]
            step = int((bucket.limit - debt) * self._steps)
            if step > 0:  # else what is left is shown exactly
                return self._table[step]
        return (*self._policies, (b"ratelimit", self.limits(now))) if self._shown else self._policies


class Ticket:
    """One request of a spender some of whose rates are of resources: counts it once for each of them."""

    __slots__ = ("_limiter", "_spender", "_touched")

    def __init__(self, limiter: RateLimiter, spender: Spender) -> None:
        self._limiter = limiter
        self._spender = spender
        self._touched: dict[RateBucket, RateDef] = {}

    def charge(self, price: int, resources: Iterable[str]) -> None:
        now = self._limiter.clock()
        own = self._spender.by_resource
        amounts = dict.fromkeys(self._spender.costs, price)
        for name in resources:
            for bucket in own.get(name, ()):
                rate = self._limiter.rates[bucket.policy]
                amounts[bucket] = price if rate.unit == "cost" else int(bucket not in self._touched)
                self._touched[bucket] = rate
        for bucket, amount in amounts.items():
            if amount and bucket.wait(amount, now) > 0:
                raise self._limiter.refusal(bucket, amount, now)
        for bucket, amount in amounts.items():
            bucket.spend(amount, now)

    def _costs(self) -> list[RateBucket]:
        return [*self._spender.costs, *(bucket for bucket, rate in self._touched.items() if rate.unit == "cost")]

    def wait(self, price: int) -> float:
        now = self._limiter.clock()
        return max([bucket.wait(price, now) for bucket in self._costs()], default=0.0)

    def overdraw(self, price: int) -> None:
        now = self._limiter.clock()
        for bucket in self._costs():
            bucket.spend(price, now)

    def headers(self, now: float) -> tuple[Header, ...]:
        if not self._touched:
            return self._spender.headers(now)
        policies = [self._spender.policies, *(policy_item(rate) for rate in self._touched.values())]
        own = [(bucket, rate) for bucket, rate in self._touched.items() if is_own(rate)]
        limits = [self._spender.limits(now), *(limit_item(template(rate), bucket, now) for bucket, rate in own)]
        named = ((b"ratelimit-policy", policies), (b"ratelimit", limits))
        return tuple((name, b", ".join(items)) for name, parts in named if (items := [*filter(None, parts)]))


class RateLimiter:
    """The spenders of one service; the least recently used are forgotten."""

    def __init__(
        self,
        rates: Iterable[RateDef],
        store: Store,
        slice_share: float = SLICE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.rates = {rate.name: rate for rate in rates}
        self.refused = dict.fromkeys(self.rates, 0)
        """Requests that were refused, by rate."""
        self.clock = clock
        self.unshared = Unshared()
        self.urgent = self.unshared.urgent
        self.sharing = RateSharing(store, self.unshared, clock)
        self._slice_share = slice_share
        self._tables: dict[tuple[bytes, str], Sequence[tuple[Header, ...]]] = {}
        self._by_address = any(rate.each == "address" for rate in self.rates.values())
        self._buckets: WeakValueDictionary[tuple[str, str], RateBucket] = WeakValueDictionary()
        self.recent: dict[bytes | None, Spender] = {}
        """Those that are used most and need no Ticket, by token: a look at an LRU cache takes longer."""
        self._spenders: LRUCache[Spender] = LRUCache("rates of callers", _SPENDERS, _SPENDERS * _SPENDER_BYTES)

    def spender(self, caller: Caller, peer: tuple[str, int] | None) -> Spender:
        """The spender of a caller, at an address."""
        roles = caller.viewer.roles
        host = peer_name(peer)
        key = (caller.sent, host if self._by_address or caller.sent is None else "", roles)
        spender = self._spenders.get(key)
        if spender is None:
            spender = self._new(caller, host)
            self._spenders.put(key, spender, _SPENDER_BYTES // 2)
        if caller.sent is not None and not self._by_address and not spender.by_resource:
            if len(self.recent) >= _RECENT:
                self.recent.clear()
            self.recent[caller.sent] = spender
        return spender

    def spending(self, spender: Spender) -> Spending:
        """What one request pays by, of a spender some of whose rates are of resources."""
        return Ticket(self, spender)

    def _new(self, caller: Caller, host: str) -> Spender:
        self.sharing.start()
        owned = []
        for rate in rates_of(self.rates.values(), caller.viewer.roles):
            owner = bucket_owner(rate, caller, host)
            if owner:
                owned.append((rate, self._bucket(rate, owner)))
        return Spender(
            self, {rate.name: bucket for rate, bucket in owned}, [rate for rate, _ in owned], caller.viewer.roles
        )

    def _bucket(self, rate: RateDef, owner: str) -> RateBucket:
        bucket = self._buckets.get((rate.name, owner))
        if bucket is None:
            bucket = RateBucket(rate.name, owner, rate.amount, rate.seconds, self._slice_share, self.unshared)
            self._buckets[rate.name, owner] = bucket
        return bucket

    def header_table(self, policies: bytes, bucket: RateBucket) -> Sequence[tuple[Header, ...]]:
        """The headers of a bucket for each step of what is left, and for a full one last. All its owners share them."""
        key = policies, bucket.policy
        if key not in self._tables:
            step = step_of(bucket.amount)
            text, policy = template(self.rates[bucket.policy]), (b"ratelimit-policy", policies)
            left = (*range(0, bucket.amount + 1, step), bucket.amount)
            self._tables[key] = [(policy, (b"ratelimit", text % (units, 1))) for units in left]
        return self._tables[key]

    def refusal(self, bucket: RateBucket, amount: int, now: float) -> Refusal:
        """The refusal of a request that would spend more than is left."""
        rate, wait = self.rates[bucket.policy], bucket.wait(amount, now)
        details: dict[str, Any] = {"violated-policies": [rate.name], "unit": rate.unit, "quota": rate.amount}
        details["window"] = rate.seconds
        if rate.unit == "cost":
            details["price"] = amount
        if wait == math.inf:
            cause = f"The request costs {amount}; the rate {rate.name} allows {rate.amount} in {rate.seconds} seconds."
            return Refusal(Code.TOO_COMPLEX, cause, more={**details, "allowed": rate.amount})
        bucket.refuse()
        self.refused[rate.name] += 1
        whose = "You have" if rate.each == "caller" else f"Your {rate.each} has"
        cause = f"{whose} used up the rate {rate.name}: {rate.amount} {rate.unit} in {rate.seconds} seconds."
        return Refusal(Code.RATE_LIMITED, cause, more={**details, "retryAfter": max(1, math.ceil(wait))})


def bucket_owner(rate: RateDef, caller: Caller, host: str) -> str:
    """Whose bucket it is; "" if the rate is not about this caller."""
    address = "address " + (host.removeprefix(UNKNOWN) or "unknown")
    if rate.each == "caller":
        return f"caller {caller.fairness_key}" if caller.fairness_key else address
    if rate.each == "address":
        return address
    if rate.each == "role":
        return f"role {rate.role}"
    client = client_of(caller.claims) if caller.claims is not None else None
    return f"client {client}" if client is not None else ""


def is_own(rate: RateDef) -> bool:
    """Does a caller spend from it alone?"""
    return rate.each == "caller"


def policy_item(rate: RateDef) -> bytes:
    """An item of `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10)."""
    unit = b';qu="cost"' if rate.unit == "cost" else b""
    return b'"%b";q=%d;w=%d%b' % (rate.name.encode(), rate.amount, rate.seconds, unit)


def step_of(amount: int) -> int:
    """The units of one step, by which what is left is shown: at most STEPS values are rendered, once each."""
    return -(-amount // STEPS)


def template(rate: RateDef) -> bytes:
    """An item of `RateLimit` without its numbers."""
    return b'"%b";r=%%d;t=%%d' % rate.name.encode()


def limit_item(text: bytes, bucket: RateBucket, now: float) -> bytes:
    """An item of `RateLimit`: what is left, and the seconds until there is more."""
    per_unit, debt = bucket.per_unit, bucket.full_at - max(now, bucket.spent_at)
    free = bucket.limit - debt if debt > 0 else bucket.limit
    left = int(free / per_unit) if free > 0 else 0
    if per_unit <= 1.0:
        return text % (left, 1 if free > 0 else math.ceil(per_unit - free))
    return text % (left, math.ceil((left + 1) * per_unit - free))
