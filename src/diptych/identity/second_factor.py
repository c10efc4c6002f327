"""The second factor of an account: an authenticator app (TOTP), and recovery codes for when it is lost.

A key is encrypted (AES-256-GCM) under a key that is derived from the secret of the service, and bound to its account.
That protects a copy of this table, or a row that is moved to another account. It does not protect a copy of the whole
database, which holds that secret and the signing keys as well: the database is what must be kept private.

A key that no code has confirmed is shown again for an hour, in one session: it is encrypted for that, and another one
gets a new key in its place. It ends with the sessions of its account (`revoke.py`). One who has seen it does not have
the key that someone else turns on.

A code is used once: the period of the last one is stored, and a code must be of a later one. Recovery codes have 80
random bits, are stored as hashes, and are used once. Wrong codes are counted by account: 5 in 5 minutes, 50 in a day.
"""

from __future__ import annotations

import base64
import hmac
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.identity.mail.limits import within_all
from diptych.identity.records import (
    ATTEMPTS,
    RECOVERY_CODES,
    TOTP_KEYS,
    Account,
    RecoveryCode,
    TotpKey,
    hashed,
    unix_time,
)
from diptych.identity.throttle import Throttled
from diptych.identity.totp import matching_step, new_key, step_before

_LIMITS, _KIND = ((5, 300), (50, 86_400)), "totp"
"""Codes in so many seconds, and how their counts are named."""
_CODES = 10
_NONCE = 12
_PROPOSED = 3_600
"""Seconds for which a key that nobody confirms is proposed again."""
_STALE = "DELETE FROM diptych_totp_keys WHERE account_id = {0}1 AND confirmed_at IS NULL AND last_step < {0}2"
_FORGET = "DELETE FROM diptych_recovery_codes WHERE account_id = {0}1"


class SecondFactor:
    """The second factors of the accounts of a store."""

    def __init__(self, store: Store, secret: bytes) -> None:
        self._store = store
        self._dialect = store.dialect
        self._cipher = AESGCM(hmac.digest(secret, b"totp", "sha256"))

    async def is_on(self, account: Account) -> bool:
        """Does an account need a second factor?"""
        key = await self._store.write(lambda: TOTP_KEYS.find(self._dialect, account_id=account.id))
        return key is not None and key.confirmed_at is not None

    async def propose(self, account: Account, session: str = "") -> bytes | None:
        """A key for the app of an account, to be confirmed by a code in the same session; the same for an hour. None if
        there is one."""
        key, now = new_key(), unix_time()

        def script() -> Script[TotpKey | None]:
            stale = _STALE.format(self._dialect.placeholder)
            yield Step(stale, (account.id, step_before(now - _PROPOSED)))
            seen = yield from TOTP_KEYS.find(self._dialect, account_id=account.id, confirmed_at=None)
            if seen is not None and self._opened(seen, session) is None:
                yield from TOTP_KEYS.remove(self._dialect, account_id=account.id, secret=seen.secret)
            record = TotpKey(account.id, self._locked(key, account.id, session), None, step_before(now))
            yield from TOTP_KEYS.add(self._dialect, record)
            return (yield from TOTP_KEYS.find(self._dialect, account_id=account.id))

        record = await self._store.write(script)
        return None if record is None or record.confirmed_at is not None else self._opened(record, session)

    async def confirm(self, account: Account, code: str, session: str = "") -> list[str] | Throttled | None:
        """Turn it on by a code of the app, and return the recovery codes; None if the code is wrong."""
        codes = [_recovery_code() for _ in range(_CODES)]

        def script() -> Script[bool | Throttled]:
            checked = yield from self._check_code(account, code, session, confirmed=False)
            if checked is not True:
                return checked
            yield Step(_FORGET.format(self._dialect.placeholder), (account.id,))
            for text in codes:
                yield from RECOVERY_CODES.add(self._dialect, RecoveryCode(hashed(text), account.id))
            return True

        done = await self._store.write(script)
        return done if isinstance(done, Throttled) else codes if done else None

    async def check(self, account: Account, code: str) -> bool | Throttled:
        """Is a code the current one of the authenticator app, or a recovery code? Either is used up."""

        def script() -> Script[bool | Throttled]:
            text = "".join(code.split()).lower()
            if len(text) > 6:
                return (yield from self._check_recovery(account, text))
            return (yield from self._check_code(account, text, confirmed=True))

        return await self._store.write(script)

    async def turn_off(self, account: Account) -> bool:
        """Turn it off; False if it was."""

        def script() -> Script[bool]:
            return (yield from forget_second_factor(self._store, account.id))

        return await self._store.write(script)

    def _check_code(
        self, account: Account, code: str, session: str = "", *, confirmed: bool
    ) -> Script[bool | Throttled]:
        throttled = yield from self._count(account)
        if throttled is not None:
            return throttled
        record = yield from TOTP_KEYS.find(self._dialect, account_id=account.id)
        if record is None or (record.confirmed_at is not None) != confirmed:
            return False
        key = self._opened(record, session)
        step = None if key is None else matching_step(key, code, unix_time(), record.last_step)
        if key is None or step is None:
            return False
        unchanged = {"account_id": account.id, "last_step": record.last_step, "secret": record.secret}
        values = {} if confirmed else {"secret": self._locked(key, account.id), "confirmed_at": unix_time()}
        used = yield from TOTP_KEYS.change(self._dialect, unchanged, last_step=step, **values)
        if used is None:  # the same code was used a moment ago
            return False
        yield from self._forgive(account)
        return True

    def _check_recovery(self, account: Account, text: str) -> Script[bool | Throttled]:
        throttled = yield from self._count(account)
        if throttled is not None:
            return throttled
        plain = text.replace("-", "")
        normal = "-".join(plain[start : start + 4] for start in range(0, len(plain), 4))
        used = yield from RECOVERY_CODES.remove(self._dialect, hash=hashed(normal), account_id=account.id)
        if used is None:
            return False
        yield from self._forgive(account)
        return True

    def _count(self, account: Account) -> Script[Throttled | None]:
        return (yield from within_all(self._store, _KIND, account.id, _LIMITS))

    def _forgive(self, account: Account) -> Script[None]:
        for _, seconds in _LIMITS:
            yield from ATTEMPTS.remove(self._dialect, who=f"{_KIND}:{seconds}:{account.id}")

    def _locked(self, key: bytes, account_id: str, session: str = "") -> str:
        nonce = secrets.token_bytes(_NONCE)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, key, _bound_to(account_id, session))).decode()

    def _opened(self, record: TotpKey, session: str = "") -> bytes | None:
        sealed = base64.b64decode(record.secret)
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _bound_to(record.account_id, session))
        except InvalidTag:
            return None


def forget_second_factor(store: Store, account_id: str) -> Script[bool]:
    """Remove the key and the recovery codes of an account."""
    yield Step(_FORGET.format(store.dialect.placeholder), (account_id,))
    return (yield from TOTP_KEYS.remove(store.dialect, account_id=account_id)) is not None


def _bound_to(account_id: str, session: str) -> bytes:
    """What a key is encrypted for: its account, and until it is confirmed, one session."""
    return f"{account_id}\n{session}".encode() if session else account_id.encode()


def _recovery_code() -> str:
    text = base64.b32encode(secrets.token_bytes(10)).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, 16, 4))
