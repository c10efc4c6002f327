"""Stored replies for idempotent requests: a repeated `Idempotency-Key` gets the reply of the first request.

A key is claimed in the transaction of the effect, and the reply is stored there too: either both are there or
neither. A concurrent request with the same key waits at the claim, since only one of them can insert the row.

Expired replies are deleted in the background, in batches (`forget`, which `live/retention.py` calls).
"""

from __future__ import annotations

import datetime as dt

from msgspec import Struct

from diptych.compile.dialect import Dialect
from diptych.db.feed import sqlite_time
from diptych.db.script import Again, Script, Step, Violation
from diptych.errors import Code, Refusal

REPLY_LIFETIME = dt.timedelta(hours=24)

_CLAIM = """
    INSERT INTO diptych_replays (caller, key, print, at) VALUES ({0}1, {0}2, {0}3, {0}4)
    ON CONFLICT (caller, key) DO UPDATE SET print = excluded.print, at = excluded.at, status = NULL
    WHERE diptych_replays.at < {0}5 RETURNING 1
"""
_KEPT = "SELECT print, status, head, body FROM diptych_replays WHERE caller = {0}1 AND key = {0}2 AND at >= {0}3"
_KEEP = "UPDATE diptych_replays SET status = {0}3, head = {0}4, body = {0}5 WHERE caller = {0}1 AND key = {0}2"
AT_A_TIME = 200
_FORGET = f"""
    DELETE FROM diptych_replays WHERE (caller, key) IN (
      SELECT caller, key FROM diptych_replays WHERE at < {{0}}1 ORDER BY at LIMIT {AT_A_TIME} {{1}}) RETURNING 1
"""
"""PostgreSQL skips those that another node deletes, or claims again, at the same time."""


class StoredReply(Struct, frozen=True):
    """A reply, as it is stored."""

    status: int
    head: str
    body: bytes


class IdempotencyClaim(Struct, frozen=True):
    """A key of a caller, and the fingerprint of the request that came with it."""

    caller: str
    key: str
    print: str

    def take(self, dialect: Dialect) -> Script[StoredReply | None]:
        """Claim the key. Returns the stored reply if this request came before, else None."""
        sign = dialect.placeholder
        now = dt.datetime.now(dt.UTC)
        try:
            claimed = yield Step(
                _CLAIM.format(sign),
                (self.caller, self.key, self.print, sqlite_time(now), sqlite_time(now - REPLY_LIFETIME)),
            )
        except Violation:
            raise Refusal(Code.CONFLICT, "A request with this Idempotency-Key is still under way.") from None
        if claimed is not None:
            return None
        stored = yield from self.look(dialect)
        if stored is None:
            raise Again
        return stored

    def look(self, dialect: Dialect) -> Script[StoredReply | None]:
        """The stored reply, if this request came before."""
        oldest = sqlite_time(dt.datetime.now(dt.UTC) - REPLY_LIFETIME)
        row = yield Step(_KEPT.format(dialect.placeholder), (self.caller, self.key, oldest))
        if row is None or row[1] is None:
            return None
        if row[0] != self.print:
            raise Refusal(
                Code.IDEMPOTENCY_MISMATCH, "This Idempotency-Key came with another request: use a new one for each."
            )
        return StoredReply(row[1], row[2], row[3])

    def keep(self, answer: StoredReply, dialect: Dialect) -> Script[None]:
        """Store the reply."""
        yield Step(_KEEP.format(dialect.placeholder), (self.caller, self.key, answer.status, answer.head, answer.body))


def forget(dialect: Dialect) -> Script[bool]:
    """Delete a batch of expired replies; returns whether there were any."""
    statement = _FORGET.format(dialect.placeholder, "FOR UPDATE SKIP LOCKED" if dialect.lock else "")
    row = yield Step(statement, (sqlite_time(dt.datetime.now(dt.UTC) - REPLY_LIFETIME),))
    return row is not None
