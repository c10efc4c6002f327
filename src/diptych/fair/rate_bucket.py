"""A token bucket of a rate limit (GCRA), whose spending several processes share.

    bucket = RateBucket("cost-per-minute", "caller 17", 10_000, 60.0, 0.1, unshared)
    if bucket.wait(price, now) > 0: …             over the limit
    bucket.spend(price, now)

It is stored as one number, the moment at which it is full again, in seconds of `time.perf_counter`. A process spends
from its own copy, and notes what others do not know of yet (`unshared`); `engine/rate_sharing.py` adds that to the row
of the bucket in the database, and learns what the others have spent. A process that has spent a quarter of a slice
shares it soon, and at half a slice requests wait until it is shared.
"""

from __future__ import annotations

from collections.abc import Callable

SLACK = 1e-6
"""Seconds by which a bucket may be overdrawn, for rounding."""
_NEVER = float("inf")
_SOON, _URGENT = 0.25, 0.5
"""The parts of a slice at which it is shared soon, and at which requests wait for that."""
_NOTED = 10_000
"""Buckets with something to share; what others beyond them spend is shared once it is a quarter of a slice."""


class Unshared:
    """The buckets of one process that have something to share."""

    __slots__ = ("dirty", "is_alone", "urgent", "wake")

    def __init__(self) -> None:
        self.dirty: dict[RateBucket, None] = {}
        self.urgent: set[RateBucket] = set()
        self.wake: Callable[[], None] = lambda: None
        """Called when something must be shared soon."""
        self.is_alone = False
        """Is the database away? Then no request waits for it."""

    def note(self, bucket: RateBucket) -> None:
        """Note a bucket that has reached its threshold: 0 at first, then a part of its slice."""
        unshared = bucket.unshared
        if unshared < _SOON * bucket.slice:
            if len(self.dirty) < _NOTED:
                self.dirty[bucket] = None
            bucket.threshold = _SOON * bucket.slice
            return
        self.dirty[bucket] = None
        bucket.threshold = _URGENT * bucket.slice
        if unshared >= bucket.threshold:
            bucket.threshold = _NEVER
            if not self.is_alone:
                self.urgent.add(bucket)
        self.wake()


class RateBucket:
    """The bucket of one owner: `amount` units, which fill in `seconds`."""

    __slots__ = (
        "__weakref__",
        "_unshared",
        "amount",
        "full_at",
        "limit",
        "mark",
        "owner",
        "per_unit",
        "policy",
        "refused",
        "seconds",
        "slice",
        "spent_at",
        "threshold",
        "unshared",
    )

    def __init__(
        self, policy: str, owner: str, amount: int, seconds: float, slice_share: float, unshared: Unshared
    ) -> None:
        self.policy = policy
        self.owner = owner
        self.amount = amount
        self.seconds = seconds
        self.limit = seconds + SLACK
        """The seconds of filling that may be owed."""
        self.per_unit = seconds / amount
        """Seconds in which one unit is filled again."""
        self.slice = slice_share * amount
        """Units that this process may spend before others know of them."""
        self.full_at = 0.0
        self.spent_at = 0.0
        """When something was last spent here: what is left is shown as of then, or later."""
        self.unshared = 0
        """Units that were spent since the last time it was shared."""
        self.refused = 0
        """Requests that were refused since then."""
        self.mark: int | None = None
        """What was in the database after that: if it is there still, nobody else has spent anything."""
        self.threshold = 0.0
        """The unshared units at which it is noted next."""
        self._unshared = unshared

    def wait(self, amount: float, now: float) -> float:
        """Seconds until so much can be spent; 0 if it can be now, infinite if it never can."""
        if amount * self.per_unit > self.seconds + SLACK:
            return _NEVER
        missing = max(self.full_at - now, 0.0) + amount * self.per_unit - self.seconds
        return missing if missing > SLACK else 0.0

    def spend(self, amount: int, now: float) -> None:
        """Take units, even if it goes below empty."""
        full_at = self.full_at
        self.full_at, self.spent_at = (full_at if full_at > now else now) + amount * self.per_unit, now
        self.unshared += amount
        if self.unshared > self.threshold:
            self._unshared.note(self)

    def left(self, now: float) -> int:
        """The whole units that can be spent now."""
        free = self.seconds - max(self.full_at - now, 0.0)
        return max(0, int((free + SLACK) / self.per_unit))

    def refuse(self) -> None:
        """Count a refusal."""
        self.refused += 1
        if len(self._unshared.dirty) < _NOTED:
            self._unshared.dirty[self] = None

    # sharing

    def spent(self, now: float) -> tuple[float, float]:
        """What is unshared, as seconds of filling; and the seconds until it is full, as far as this process knows."""
        return self.unshared * self.per_unit, self.full_at - now

    def shared(self, units: int, refused: int, previous: int | None, mark: int, debt: float, now: float) -> None:
        """It was shared: `units` and `refused` are known to the others, and it was at `previous` before.

        If others have spent, it is full `debt` seconds from now, besides what this process has spent meanwhile.
        """
        self.unshared -= units
        self.refused -= refused
        if previous is not None and previous != self.mark:
            self.full_at = max(self.full_at, now + debt + self.unshared * self.per_unit)
        self.mark = mark
        self.threshold = 0.0
        self._unshared.urgent.discard(self)
        if self.unshared > 0:
            self._unshared.note(self)
