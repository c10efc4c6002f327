"""Answers that are kept, so that a request which comes again gets the answer that it had (`Idempotency-Key`).

A key is claimed in the transaction of the effect, and the answer is stored there too: either both are there or
neither. A twin that comes meanwhile waits at the claim, since both databases let only one of them have the row.

What is too old is deleted in the background, a few at a time (`forget`, which `live/trimmer.py` calls).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from diptych.compile.dialect import Dialect
from diptych.db.script import Again, Script, Step, Violation
from diptych.errors import Code, Refusal

LIFETIME = dt.timedelta(hours=24)

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
"""PostgreSQL leaves out those that someone else deletes, or claims anew, at the same time."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer, as it is kept."""

    status: int
    head: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """A key of a caller, and the print of the request that came with it."""

    caller: str
    key: str
    print: str

    def take(self, dialect: Dialect) -> Script[Kept | None]:
        """Claim the key. Gives the answer that it had, if this request came before."""
        sign = dialect.placeholder
        now = dt.datetime.now(dt.UTC)
        try:
            claimed = yield Step(
                _CLAIM.format(sign), (self.caller, self.key, self.print, _text(now), _text(now - LIFETIME))
            )
        except Violation:
            raise Refusal(Code.CONFLICT, "A request with this Idempotency-Key is still under way.") from None
        if claimed is not None:
            return None
        kept = yield from self.look(dialect)
        if kept is None:
            raise Again
        return kept

    def look(self, dialect: Dialect) -> Script[Kept | None]:
        """The answer that the request had, if it came before."""
        oldest = _text(dt.datetime.now(dt.UTC) - LIFETIME)
        row = yield Step(_KEPT.format(dialect.placeholder), (self.caller, self.key, oldest))
        if row is None or row[1] is None:
            return None
        if row[0] != self.print:
            raise Refusal(
                Code.IDEMPOTENCY_MISMATCH, "This Idempotency-Key came with another request: use a new one for each."
            )
        return Kept(row[1], row[2], row[3])

    def keep(self, answer: Kept, dialect: Dialect) -> Script[None]:
        """Keep the answer."""
        yield Step(_KEEP.format(dialect.placeholder), (self.caller, self.key, answer.status, answer.head, answer.body))


def forget(dialect: Dialect) -> Script[bool]:
    """Delete the oldest of those that are too old to be replayed; gives whether there were any."""
    statement = _FORGET.format(dialect.placeholder, "FOR UPDATE SKIP LOCKED" if dialect.lock else "")
    found = yield Step(statement, (_text(dt.datetime.now(dt.UTC) - LIFETIME),))
    return found is not None


def _text(moment: dt.datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
