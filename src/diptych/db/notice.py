"""Notices: what the node that has numbered changes tells all others, so that they need not ask the database.

    <signature> <feed> <before> <position> <mark> <oldest> [["posts","1f0c…"],…]

The changes from `before` (exclusive) to `position` were assigned their positions by one transaction; `mark` is that of
the last one. PostgreSQL delivers a notice once that transaction is visible, in the order of commits. Changed rows are
listed by table and keyed digest, or `*` if they are too many.

Anyone who can connect to the database can listen, and can send notices of his own: so they reveal no ids, and one whose
signature is not valid only wakes its hearer. One that was sent before is of a position that is known.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from diptych.db.store import FeedHead

_DIGEST = 8
"""Bytes of the digest of a row."""
_rows = msgspec.json.Decoder(list[tuple[str, str]])


class FeedNotice(Struct, frozen=True):
    """Changes that were numbered."""

    before: int
    head: FeedHead
    touched: Mapping[str, set[bytes]] | None
    """Digests of the changed rows, by table; None if there are too many."""


class Notices:
    """Reads the notices of one feed."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.sha256(secret + b"diptych feed notice").digest()

    def digest(self, table: str, row_id: str) -> bytes:
        """The digest of a row as notices have it."""
        return hashlib.sha256(self._key + f"{table}/{row_id}".encode()).digest()[:_DIGEST]

    def read(self, payload: str) -> FeedNotice | None:
        """The notice, or None if it is not valid."""
        signature, _, body = payload.partition(" ")
        if not hmac.compare_digest(signature.encode(), self._sign(body.encode())):
            return None
        feed, before, position, mark, oldest, listed = body.split(" ", 5)
        touched: dict[str, set[bytes]] | None = None
        if listed != "*":
            touched = {}
            for table, digest in _rows.decode(listed):
                touched.setdefault(table, set()).add(bytes.fromhex(digest))
        return FeedNotice(int(before), FeedHead(feed, int(position), int(mark), int(oldest)), touched)

    def _sign(self, body: bytes) -> bytes:
        return hashlib.sha256(self._key + hashlib.sha256(self._key + body).digest()).hexdigest().encode()
