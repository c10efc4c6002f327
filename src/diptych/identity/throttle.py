"""How often someone may try to sign in: a few failures are free, and each further one doubles a waiting time.

Attempts are counted in the store, for the account and for the address that they come from, so that no other process
and no restart begins anew. An attempt is counted as a failure before its password is looked at, by a statement that
counts only if no time is left to wait: of many attempts at once, no more than the free ones get through. One that
succeeds is taken out of the count of its address again, and ends the count of its account.

    failures of an account   1 … 4   5   6   7   8  …  15 and more
    seconds to wait            0     1   2   4   8  …  900

Names of accounts are kept as hashes: whoever mistypes may type a password in their place. Of an IPv6 address the
network counts, since whoever has one has all of it.
"""

from __future__ import annotations

import ipaddress
import itertools
from dataclasses import dataclass

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.identity.records import ATTEMPTS, Attempts, hashed, now

_FREE = {"account": 5, "address": 20}
"""The failure after which one must wait."""
_FORGOTTEN = 86_400
"""Seconds without a failure after which all are forgotten."""
_DOUBLED = 10
_LONGEST = 900
_NETWORK = 64
_SWEEP = 100
"""Of so many attempts, one removes the counts that are forgotten."""

_FAILURES = f"CASE WHEN diptych_attempts.until_at < {{0}}2 - {_FORGOTTEN} THEN 1 ELSE diptych_attempts.failures + 1 END"
_COUNT = f"""
    INSERT INTO diptych_attempts (who, failures, until_at) VALUES ({{0}}1, 1, {{0}}2)
    ON CONFLICT (who) DO UPDATE SET failures = {_FAILURES}, until_at = CASE
      WHEN {_FAILURES} < {{0}}3 THEN {{0}}2
      WHEN {_FAILURES} >= {{0}}3 + {_DOUBLED} THEN {{0}}2 + 1 + {_LONGEST}
      ELSE {{0}}2 + 1 + (CAST(1 AS bigint) << CAST({_FAILURES} - {{0}}3 AS integer)) END
    WHERE diptych_attempts.until_at <= {{0}}2
    RETURNING who, failures, until_at
"""
"""Moments are whole seconds: one more is added, so that nobody waits less than is said."""
_TAKE_BACK = """
    UPDATE diptych_attempts SET failures = failures - 1,
      until_at = CASE WHEN until_at = {0}2 THEN {0}3 ELSE until_at END
    WHERE who = {0}1 AND failures > 0
"""
"""The time to wait ends too, unless it is that of a later attempt."""
_counted = itertools.count()


@dataclass(frozen=True, slots=True)
class Throttled:
    """No attempt is taken for so many seconds."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Counted:
    """An attempt that was counted, and may be made."""

    address: Attempts
    account: Attempts


def count(store: Store, account: str, address: str) -> Script[Counted | Throttled]:
    """Count an attempt. One that must wait is not counted at all."""
    if next(_counted) % _SWEEP == 0:
        yield from ATTEMPTS.sweep(store.dialect, "until_at", now() - _FORGOTTEN)
    by_address = yield from _count_one(store, "address", _network(address))
    if isinstance(by_address, Throttled):
        return by_address
    by_account = yield from _count_one(store, "account", account)
    if isinstance(by_account, Throttled):
        yield from _take_back(store, by_address)
        return by_account
    return Counted(by_address, by_account)


def forgive(store: Store, counted: Counted) -> Script[None]:
    """The attempt was no failure."""
    yield from _take_back(store, counted.address)
    yield from ATTEMPTS.remove(store.dialect, who=counted.account.who)


def _count_one(store: Store, kind: str, name: str) -> Script[Attempts | Throttled]:
    who, moment = f"{kind}:{hashed(ascii(name))}", now()
    row = yield Step(_COUNT.format(store.dialect.placeholder), (who, moment, _FREE[kind]))
    if row is not None:
        return Attempts(*row)
    found = yield from ATTEMPTS.find(store.dialect, who=who)
    return Throttled(max(1, found.until_at - moment) if found else 1)


def _take_back(store: Store, counted: Attempts) -> Script[None]:
    yield Step(_TAKE_BACK.format(store.dialect.placeholder), (counted.who, counted.until_at, now()))


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    mapped = found.ipv4_mapped
    return str(mapped or ipaddress.ip_network((found.packed, _NETWORK), strict=False))
