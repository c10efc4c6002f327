"""How often someone may try to sign in: a few failures are free, and each further one doubles a waiting time.

Attempts are counted in the store, so that no other process and no restart begins anew: of an account from an address,
from an address at whatever account, and of an account as a whole. Nobody can keep an account signed out by failing at
it: what is counted of an account from one address holds for that address alone, and the count of the whole account
does not hold for whoever comes from a place that it knows, an address from which someone signed in to it lately. A
browser in which someone did is known by a cookie (`devices.py`), and has a count of its own in place of all others.
The count of the whole account bounds those who guess from very many addresses.

    failures                                   free   then seconds to wait, doubled by each
    of an account from an address, or browser    4    1, 2, 4 … 900
    from an address                             19    1, 2, 4 … 900
    of an account, from unknown places          99    1, 2, 4 … 900

An attempt is counted as a failure before its password is looked at, by a statement that counts only if no time is left
to wait: of many attempts at once, no more than the free ones get through. One that succeeds is taken out of the counts
again, and ends that of its account from its address.

Names of accounts are kept as hashes: whoever mistypes may type a password in their place. Of an IPv6 address the
network counts, since whoever has one has all of it.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.identity.records import ATTEMPTS, Attempts, hashed, now

_FREE = {"device": 5, "place": 5, "address": 20, "account": 100}
"""The failure after which one must wait; a place is an account from an address."""
_KNOWN = 30 * 86_400
"""Seconds for which an address is known to an account after someone signed in from there."""
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
_KNOW = """
    INSERT INTO diptych_attempts (who, failures, until_at) VALUES ({0}1, 0, {0}2)
    ON CONFLICT (who) DO UPDATE SET until_at = {0}2
"""
_counted = itertools.count()


@dataclass(frozen=True, slots=True)
class Throttled:
    """No attempt is taken for so many seconds."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Counted:
    """An attempt that was counted, and may be made: by its kinds, with the name of its place."""

    counts: Mapping[str, Attempts]
    place: str


def count(store: Store, account: str, address: str, device: str = "") -> Script[Counted | Throttled]:
    """Count an attempt. One that must wait is not counted at all. `device` names a browser that the account knows."""
    if next(_counted) % _SWEEP == 0:
        yield from ATTEMPTS.sweep(store.dialect, "until_at", now() - _FORGOTTEN)
    network = _network(address)
    place = f"{account}\n{network}"
    names = {"address": network, "place": place, "account": account}
    if device:
        names = {"device": f"{account}\n{device}"}
    elif (yield from _knows(store, place)):
        del names["account"]
    counts: dict[str, Attempts] = {}
    for kind, name in names.items():
        counted = yield from _count_one(store, kind, name)
        if isinstance(counted, Throttled):
            for each in counts.values():
                yield from _take_back(store, each)
            return counted
        counts[kind] = counted
    return Counted(counts, place)


def forgive(store: Store, counted: Counted) -> Script[None]:
    """The attempt was no failure, so its place is known from now on."""
    for kind, each in counted.counts.items():
        if kind in ("device", "place"):
            yield from ATTEMPTS.remove(store.dialect, who=each.who)
        else:
            yield from _take_back(store, each)
    yield Step(_KNOW.format(store.dialect.placeholder), (_who("known", counted.place), now() + _KNOWN))


def _knows(store: Store, place: str) -> Script[bool]:
    found = yield from ATTEMPTS.find(store.dialect, who=_who("known", place))
    return found is not None and found.until_at > now()


def _who(kind: str, name: str) -> str:
    return f"{kind}:{hashed(ascii(name))}"


def _count_one(store: Store, kind: str, name: str) -> Script[Attempts | Throttled]:
    who, moment = _who(kind, name), now()
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
