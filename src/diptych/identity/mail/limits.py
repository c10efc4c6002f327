"""Limits of mails and of what leads to them, counted in the store: fixed windows by address.

They count requests, whether there is an account or not, so nobody learns from them.

    mails to an address          3 in a quarter of an hour, 10 in a day: no more are sent, and the answer is the same
    requests from a network     20 in an hour: refused with the time to wait
"""

from __future__ import annotations

from collections.abc import Iterable

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.identity.records import ATTEMPTS, hashed, unix_time
from diptych.identity.throttle import Throttled, network_of

_TO = ((3, 900), (10, 86_400))
_FROM = (20, 3_600)
_NOW, _END = "CAST({0}2 AS bigint)", "CAST({0}2 AS bigint) + CAST({0}3 AS bigint)"
_COUNT = f"""
    INSERT INTO diptych_attempts (who, failures, until_at) VALUES ({{0}}1, 1, {_END})
    ON CONFLICT (who) DO UPDATE SET
      failures = CASE WHEN diptych_attempts.until_at <= {_NOW} THEN 1 ELSE diptych_attempts.failures + 1 END,
      until_at = CASE WHEN diptych_attempts.until_at <= {_NOW} THEN {_END} ELSE diptych_attempts.until_at END
    WHERE diptych_attempts.until_at <= {_NOW} OR diptych_attempts.failures < CAST({{0}}4 AS bigint)
    RETURNING until_at
"""


def count_from(store: Store, address: str, kind: str = "mail-from") -> Script[Throttled | None]:
    """Count a request from an address."""
    return (yield from within(store, f"{kind}:{network_of(address)}", *_FROM))


def count_to(store: Store, email: str) -> Script[bool]:
    """Count a mail to an address. May it be sent?"""
    return (yield from within_all(store, "mail-to", hashed(email), _TO)) is None


def within_all(store: Store, kind: str, what: str, windows: Iterable[tuple[int, int]]) -> Script[Throttled | None]:
    """Count one in windows of `most` within `seconds`, the shortest first. What one of them refuses counts in none of
    those behind it: who tries again too early waits no longer for that."""
    for most, seconds in windows:
        throttled = yield from within(store, f"{kind}:{seconds}:{what}", most, seconds)
        if throttled is not None:
            return throttled
    return None


def within(store: Store, who: str, most: int, seconds: int) -> Script[Throttled | None]:
    """Count one of at most `most` within `seconds`; Throttled if the window is full."""
    moment = unix_time()
    row = yield Step(_COUNT.format(store.dialect.placeholder), (who, moment, seconds, most))
    if row is not None:
        return None
    attempts = yield from ATTEMPTS.find(store.dialect, who=who)
    return Throttled(max(1, attempts.until_at - moment) if attempts else 1)
