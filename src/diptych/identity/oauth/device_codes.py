"""The records of the device flow (RFC 8628): a program without a browser waits for a user to type its code elsewhere.

    pending → allowed → used        the user allows, the program gets its tokens, once
            → denied

A program may poll once in `interval` seconds; each poll that comes too early adds five to that. Every step is one
transaction, and of concurrent ones a single one succeeds. Device codes have 256 random bits, user codes 34: these are
typed by a user who is signed in, whose attempts are throttled (`throttle.py`), and few are valid at a time.
"""

from __future__ import annotations

import secrets
from typing import Literal

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.identity.login_sessions import SignedIn, lock_if_unchanged
from diptych.identity.records import DEVICE_CODES, GRANTS, REFRESHES, DeviceCode, Grant, RefreshToken, hashed, unix_time
from diptych.identity.throttle import Throttled, count, network_of, take_back

CODE_LIFETIME = 600
INTERVAL = 5
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Letters of user codes: no vowels, so that no words arise; none that is taken for another or for a digit."""
_LENGTH = 8
_MOST, _MOST_OF_ONE = 10_000, 50
"""Codes that may be valid at a time: of all programs, and of those at one address."""
_COUNT = """
    SELECT count(*), count(CASE WHEN network = {0}2 THEN 1 END) FROM diptych_device_codes WHERE expires_at > {0}1
"""
Verdict = Literal["unknown", "expired", "slow_down", "pending", "denied"]


def new_user_code() -> str:
    """A user code as it is shown: BCDF-GHJK."""
    text = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
    return f"{text[:4]}-{text[4:]}"


def normalised_user_code(text: str) -> str:
    """A user code as someone typed it, without what is between its letters."""
    return "".join(letter for letter in text.upper()[:64] if letter in _LETTERS)


class DeviceCodes:
    """The device codes of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._dialect = store.dialect

    async def add(self, client: str, scope: str, address: str) -> tuple[str, str] | None:
        """A new device code with its user code; None if too many are valid."""
        device, shown, now, network = secrets.token_urlsafe(32), new_user_code(), unix_time(), network_of(address)
        user = hashed(normalised_user_code(shown))
        expires = now + CODE_LIFETIME
        record = DeviceCode(hashed(device), user, client, scope, network, INTERVAL, 0, expires, "pending", None, None)

        def script() -> Script[bool]:
            yield from DEVICE_CODES.sweep(self._dialect, "expires_at", now - CODE_LIFETIME)
            row = yield Step(_COUNT.format(self._dialect.placeholder), (now, network))
            if row is None or row[0] >= _MOST or row[1] >= _MOST_OF_ONE:
                return False
            return (yield from DEVICE_CODES.add(self._dialect, record))

        return (device, shown) if await self.store.write(script) else None

    async def find(self, typed: str, signed_in: SignedIn, address: str) -> DeviceCode | Throttled | None:
        """The pending code that a user typed. Wrong ones are counted, of each user and each address."""

        def script() -> Script[DeviceCode | Throttled | None]:
            counted = yield from count(self.store, f"device\n{signed_in.account.id}", address)
            if isinstance(counted, Throttled):
                return counted
            user = hashed(normalised_user_code(typed))
            code = yield from DEVICE_CODES.find(self._dialect, user_hash=user, state="pending")
            if code is None or code.expires_at <= unix_time():
                return None
            yield from take_back(self.store, counted)
            return code

        return await self.store.write(script)

    async def decide(self, hash: str, signed_in: SignedIn, allowed: bool) -> DeviceCode | None:
        """Note the decision of a user; None if the code is no longer pending, or the account was changed."""

        def script() -> Script[DeviceCode | None]:
            if not (yield from lock_if_unchanged(self.store, signed_in.account)):
                return None
            pending = yield from DEVICE_CODES.find(self._dialect, hash=hash, state="pending")
            if pending is None or pending.expires_at <= unix_time():
                return None
            state = {"state": "allowed" if allowed else "denied"}
            values = {"account_id": signed_in.account.id, "auth_time": signed_in.since, **state}
            return (yield from DEVICE_CODES.change(self._dialect, {"hash": hash, "state": "pending"}, **values))

        return await self.store.write(script)

    async def poll(self, device: str, client: str) -> DeviceCode | Verdict:
        """The code that a program waits for, if a user has allowed it."""

        def script() -> Script[DeviceCode | Verdict]:
            now = unix_time()
            code = yield from DEVICE_CODES.find(self._dialect, hash=hashed(device), client_id=client)
            if code is None or code.state == "used":
                return "unknown"
            if code.expires_at <= now:
                return "expired"
            if code.state == "denied":
                return "denied"
            if code.state == "allowed":
                return code
            early = now < code.polled_at + code.interval
            interval = code.interval + (5 if early else 0)
            yield from DEVICE_CODES.change(self._dialect, {"hash": code.hash}, polled_at=now, interval=interval)
            return "slow_down" if early else "pending"

        return await self.store.write(script)

    async def exchange(self, code: DeviceCode, grant: Grant, refresh: RefreshToken) -> bool:
        """Exchange an allowed code for a grant; False if someone else just did."""

        def script() -> Script[bool]:
            allowed = {"hash": code.hash, "state": "allowed"}
            if (yield from DEVICE_CODES.change(self._dialect, allowed, state="used")) is None:
                return False
            yield from GRANTS.add(self._dialect, grant)
            return (yield from REFRESHES.add(self._dialect, refresh))

        return await self.store.write(script)
