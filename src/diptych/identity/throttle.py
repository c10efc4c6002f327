"""Throttles failed sign-ins: a few failures are free, and each further one doubles a waiting time.

Failures are counted in the store, so that other processes and restarts see them: for an account from an address, for an
address at whatever account, and for an account as a whole. Nobody can lock an account out by failing at it: the count
of an account from one address holds for that address only, and the count of the whole account does not hold for
addresses that it knows, from which someone signed in to it lately. A browser in which someone did is known by a cookie
(`devices.py`), and has a count of its own instead of all others. The count of the whole account bounds guessing from
very many addresses.

    failures                                   free   then seconds to wait, doubled by each
    of an account from an address, or browser    4    1, 2, 4 … 900
    from an address                             19    1, 2, 4 … 900
    of an account, from unknown addresses       99    1, 2, 4 … 900

An attempt is counted as a failure before its password is checked, by a statement that counts only if no time is left to
wait: of many attempts at once, no more than the free ones get through. A success is subtracted from the counts again,
and resets that of its account from its address.

Names of accounts are kept as hashes, since people may type a password there by mistake. Of an IPv6 address the /64
network counts, since its holder has all of it.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Mapping

from msgspec import Struct

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.identity.records import ATTEMPTS, Attempts, hashed, unix_time

_FREE = {"device": 5, "pair": 5, "address": 20, "account": 100}
"""The failure after which a client must wait; a pair is an account from an address."""
_KNOWN = 30 * 86_400
"""Seconds for which an address is known to an account after someone signed in from there."""
_FORGOTTEN = 86_400
"""Seconds without a failure after which a count starts anew."""
_DOUBLED = 10
_LONGEST = 900
_NETWORK = 64
_SWEEP = 100
"""One in this many attempts also removes expired counts."""

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
"""Moments are whole seconds: one more is added, so that the wait is never shorter than announced."""
_TAKE_BACK = """
    UPDATE diptych_attempts SET failures = failures - 1,
      until_at = CASE WHEN until_at = {0}2 THEN {0}3 ELSE until_at END
    WHERE who = {0}1 AND failures > 0
"""
"""The waiting time ends too, unless it is that of a later attempt."""
_KNOW = """
    INSERT INTO diptych_attempts (who, failures, until_at) VALUES ({0}1, 0, {0}2)
    ON CONFLICT (who) DO UPDATE SET until_at = {0}2
"""
_counted = itertools.count()


class Throttled(Struct, frozen=True):
    """No attempt is accepted until `seconds` have passed."""

    seconds: int


class Counted(Struct, frozen=True):
    """An attempt that was counted and may go on: its counts by kind, and its pair of account and address."""

    counts: Mapping[str, Attempts]
    pair: str


def count(store: Store, account: str, address: str, device: str = "") -> Script[Counted | Throttled]:
    """Count an attempt as a failure; one that must wait is not counted. `device` names a browser that the account
    knows."""
    if next(_counted) % _SWEEP == 0:
        yield from ATTEMPTS.sweep(store.dialect, "until_at", unix_time() - _FORGOTTEN)
    network = network_of(address)
    pair = f"{account}\n{network}"
    names = {"address": network, "pair": pair, "account": account}
    if device:
        names = {"device": f"{account}\n{device}"}
    elif (yield from _knows(store, pair)):
        del names["account"]
    counts: dict[str, Attempts] = {}
    for kind, name in names.items():
        counted = yield from _count_one(store, kind, name)
        if isinstance(counted, Throttled):
            for earlier in counts.values():
                yield from _take_back(store, earlier)
            return counted
        counts[kind] = counted
    return Counted(counts, pair)


def forgive(store: Store, counted: Counted) -> Script[None]:
    """Subtract a successful attempt from its counts, and remember its address as known to the account."""
    for kind, attempts in counted.counts.items():
        if kind in ("device", "pair"):
            yield from ATTEMPTS.remove(store.dialect, who=attempts.who)
        else:
            yield from _take_back(store, attempts)
    yield Step(_KNOW.format(store.dialect.placeholder), (_who("known", counted.pair), unix_time() + _KNOWN))


def take_back(store: Store, counted: Counted) -> Script[None]:
    """Subtract a successful attempt from its counts, and forget and remember nothing else: who succeeds at will must
    not get more guesses by it."""
    for attempts in counted.counts.values():
        yield from _take_back(store, attempts)


def _knows(store: Store, pair: str) -> Script[bool]:
    attempts = yield from ATTEMPTS.find(store.dialect, who=_who("known", pair))
    return attempts is not None and attempts.until_at > unix_time()


def _who(kind: str, name: str) -> str:
    return f"{kind}:{hashed(ascii(name))}"


def _count_one(store: Store, kind: str, name: str) -> Script[Attempts | Throttled]:
    who, moment = _who(kind, name), unix_time()
    row = yield Step(_COUNT.format(store.dialect.placeholder), (who, moment, _FREE[kind]))
    if row is not None:
        return Attempts(*row)
    attempts = yield from ATTEMPTS.find(store.dialect, who=who)
    return Throttled(max(1, attempts.until_at - moment) if attempts else 1)


def _take_back(store: Store, counted: Attempts) -> Script[None]:
    yield Step(_TAKE_BACK.format(store.dialect.placeholder), (counted.who, counted.until_at, unix_time()))


def network_of(address: str) -> str:
    """The address that counts: of an IPv6 address, its /64 network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    mapped = parsed.ipv4_mapped
    return str(mapped or ipaddress.ip_network((parsed.packed, _NETWORK), strict=False))
