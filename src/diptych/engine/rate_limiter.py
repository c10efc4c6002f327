"""Rate limits: each caller has a Spender, which takes what its requests cost from the buckets of its rates.

    spender = limiter.spender(caller, host)             once for a request
    if spender.is_behind: await spender.settle()
    spender.admit()                                     one request
    SPENDER.get().charge(price, resources)              its cost, once it is known, before the statement runs

All that is asked of a service passes here: requests of both styles, batches, actions, pages of exports and of the
change log, and each change that a stream sends. A Refusal says which rate was exceeded, and when to try again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import WeakValueDictionary

from diptych.db.store import Store
from diptych.engine.rate_sharing import RateSharing
from diptych.errors import Code, Refusal
from diptych.fair.caller import UNKNOWN
from diptych.fair.rate_bucket import SLACK, RateBucket, Unshared
from diptych.identity.viewer import Caller
from diptych.lru import LRUCache
from diptych.model.rates import RateDef, rates_of

_SPENDERS, _SPENDER_BYTES = 10_000, 2_048
"""Callers and addresses that are remembered, and bytes of each, at most."""
SLICE = 0.1


class Spending(Protocol):
    """What a request may spend from."""

    def charge(self, price: int, resources: Iterable[str]) -> None:
        """Spend the cost of a request on these resources; a Refusal if that is over a rate."""

    def wait(self, price: int) -> float:
        """Seconds until so much can be spent."""

    def overdraw(self, price: int) -> None:
        """Spend, even if that is over a rate."""

    def items(self) -> tuple[bytes, bytes]:
        """The items of `RateLimit-Policy` and `RateLimit`."""


SPENDER: ContextVar[Spending | None] = ContextVar("spender", default=None)
"""Who pays for the current request; None if nothing is limited."""


class Spender:
    """The buckets of one caller."""

    __slots__ = ("_limiter", "_policies", "_shown", "buckets", "by_resource", "costs", "requests")

    def __init__(
        self,
        limiter: RateLimiter,
        buckets: Mapping[str, RateBucket],
        rates: Iterable[RateDef],
    ) -> None:
        self._limiter = limiter
        general = [rate for rate in rates if not rate.resource]
        self.requests = tuple(buckets[rate.name] for rate in general if rate.unit == "requests")
        self.costs = tuple(buckets[rate.name] for rate in general if rate.unit == "cost")
        self.by_resource: dict[str, list[RateBucket]] = {}
        for rate in rates:
            if rate.resource:
                self.by_resource.setdefault(rate.resource, []).append(buckets[rate.name])
        self.buckets = frozenset(buckets.values())
        self._policies = b", ".join([policy_item(rate) for rate in general])
        # what is left of a bucket that others spend from says what they do
        self._shown = tuple((b'"%b"' % rate.name.encode(), buckets[rate.name]) for rate in general if is_own(rate))

    @property
    def is_behind(self) -> bool:
        """Has it spent so much unshared that its next request should wait?"""
        urgent = self._limiter.unshared.urgent
        return bool(urgent) and not urgent.isdisjoint(self.buckets)

    async def settle(self) -> None:
        """Wait until what it has spent is shared."""
        await self._limiter.sharing.settle(self.buckets)

    def admit(self) -> None:
        """Spend one request; a Refusal if that is over a rate."""
        now = self._limiter.clock()
        for bucket in self.requests:
            full_at = bucket.full_at
            if full_at > now and full_at + bucket.per_unit > now + bucket.seconds + SLACK:
                raise self._limiter.refusal(bucket, 1, now)
        for bucket in self.requests:
            bucket.spend(1, now)

    def charge(self, price: int, resources: Iterable[str]) -> None:
        """Spend the cost of a request; a Refusal if that is over a rate."""
        now = self._limiter.clock()
        for bucket in self.costs:
            full_at = bucket.full_at
            if (full_at if full_at > now else now) + price * bucket.per_unit > now + bucket.seconds + SLACK:
                raise self._limiter.refusal(bucket, price, now)
        for bucket in self.costs:
            bucket.spend(price, now)

    def wait(self, price: int) -> float:
        """Seconds until so much cost can be spent."""
        now = self._limiter.clock()
        return max([bucket.wait(price, now) for bucket in self.costs], default=0.0)

    def overdraw(self, price: int) -> None:
        """Spend cost, even if that is over a rate."""
        now = self._limiter.clock()
        for bucket in self.costs:
            bucket.spend(price, now)

    def items(self) -> tuple[bytes, bytes]:
        """The items of `RateLimit-Policy` and `RateLimit`."""
        now = self._limiter.clock()
        return self._policies, b", ".join([limit_item(name, bucket, now) for name, bucket in self._shown])


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

    def items(self) -> tuple[bytes, bytes]:
        policies, limits = self._spender.items()
        now = self._limiter.clock()
        more = [policy_item(rate) for rate in self._touched.values()]
        shown = [
            limit_item(b'"%b"' % rate.name.encode(), bucket, now)
            for bucket, rate in self._touched.items()
            if is_own(rate)
        ]
        return b", ".join(filter(None, [policies, *more])), b", ".join(filter(None, [limits, *shown]))


class RateLimiter:
    """The spenders of one service; the least recently used are forgotten."""

    def __init__(
        self,
        rates: Iterable[RateDef],
        store: Store,
        slice_share: float = SLICE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rates = {rate.name: rate for rate in rates}
        self.clock = clock
        self.unshared = Unshared()
        self.sharing = RateSharing(store, self.unshared, clock)
        self._slice_share = slice_share
        self._by_address = any(rate.each == "address" for rate in self.rates.values())
        self._by_resource = any(rate.resource for rate in self.rates.values())
        self._buckets: WeakValueDictionary[tuple[str, str], RateBucket] = WeakValueDictionary()
        self._spenders: LRUCache[Spender] = LRUCache("rates of callers", _SPENDERS, _SPENDERS * _SPENDER_BYTES)

    def spender(self, caller: Caller, host: str) -> Spender:
        """The spender of a caller, at the address `host` (as `fair.caller.host_name` has it)."""
        key = (caller.sent, host if self._by_address or caller.sent is None else "", caller.viewer.roles)
        spender = self._spenders.get(key)
        if spender is None:
            spender = self._new(caller, host)
            self._spenders.put(key, spender, _SPENDER_BYTES // 2)
        return spender

    def spending(self, spender: Spender) -> Spending:
        """What one request of a spender pays by."""
        return Ticket(self, spender) if self._by_resource and spender.by_resource else spender

    def _new(self, caller: Caller, host: str) -> Spender:
        self.sharing.start()
        owned = []
        for rate in rates_of(self.rates.values(), caller.viewer.roles):
            owner = owner_of(rate, caller, host)
            if owner:
                owned.append((rate, self._bucket(rate, owner)))
        return Spender(self, {rate.name: bucket for rate, bucket in owned}, [rate for rate, _ in owned])

    def _bucket(self, rate: RateDef, owner: str) -> RateBucket:
        bucket = self._buckets.get((rate.name, owner))
        if bucket is None:
            bucket = RateBucket(rate.name, owner, rate.amount, rate.seconds, self._slice_share, self.unshared)
            self._buckets[rate.name, owner] = bucket
        return bucket

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
        whose = "You have" if rate.each == "caller" else f"Your {rate.each} has"
        cause = f"{whose} used up the rate {rate.name}: {rate.amount} {rate.unit} in {rate.seconds} seconds."
        return Refusal(Code.RATE_LIMITED, cause, more={**details, "retryAfter": max(1, math.ceil(wait))})


def owner_of(rate: RateDef, caller: Caller, host: str) -> str:
    """Whose bucket it is; "" if the rate is not about this caller."""
    address = "address " + (host.removeprefix(UNKNOWN) or "unknown")
    if rate.each == "caller":
        return f"caller {caller.fairness_key}" if caller.fairness_key else address
    if rate.each == "address":
        return address
    if rate.each == "role":
        return f"role {rate.role}"
    client = caller.claims.get("client_id") if caller.claims is not None else None
    return f"client {client}" if isinstance(client, str) else ""


def is_own(rate: RateDef) -> bool:
    """Does a caller spend from it alone?"""
    return rate.each == "caller"


def policy_item(rate: RateDef) -> bytes:
    """An item of `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10)."""
    unit = b';qu="cost"' if rate.unit == "cost" else b""
    return b'"%b";q=%d;w=%d%b' % (rate.name.encode(), rate.amount, rate.seconds, unit)


def limit_item(name: bytes, bucket: RateBucket, now: float) -> bytes:
    """An item of `RateLimit`: what is left, and the seconds until there is more."""
    free = bucket.seconds - max(bucket.full_at - now, 0.0) + SLACK
    left = max(0, int(free / bucket.per_unit))
    return b"%b;r=%d;t=%d" % (name, left, max(1, math.ceil((left + 1) * bucket.per_unit - free)))
