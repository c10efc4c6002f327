"""Change cursors: encrypted positions in the change feed of a database, from which a client resumes.

The same position is never encrypted to the same cursor twice: positions count all changes, also those that the client
may not see, and two cursors must not even reveal whether anything happened between them. A cursor is valid on every
node of the database, for any resource, viewer and filter.

    feed (8 bytes) · nonce (12) · sealed position (8) and mark (4), with their tag (16)      64 characters in base64

The feed id comes first, so that a cursor of another database can be distinguished from one that was tampered with. The
mark is a random number stored with the change at that position: a database restored from a backup counts on from there
and gives the same positions to other changes, but not the same marks.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import struct
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from diptych.ask.cursor import derive

_NONCE = 12
_FEED = 8
_LENGTH = _FEED + _NONCE + 12 + 16
_pack = struct.Struct(">qI")
_EVENT_ID = 15
"""Bytes of an event id: 20 characters."""


class FeedPosition(NamedTuple):
    """A position in a feed, and the mark of the change there."""

    position: int
    mark: int


class EventIds:
    """The ids of changes: the same for a change in every stream, log, webhook and try, and on every node.

    An id is a keyed hash of position and mark, so that it reveals neither how many changes there were before it nor
    which of two changes is older.
    """

    def __init__(self, secret: bytes) -> None:
        self._mac = hashlib.blake2b(key=derive(secret, b"event"), digest_size=_EVENT_ID)

    def of(self, position: FeedPosition) -> str:
        """The id of the change at a position."""
        mac = self._mac.copy()
        mac.update(_pack.pack(*position))
        return base64.urlsafe_b64encode(mac.digest()).decode()


class ForeignFeed(ValueError):
    """The change cursor belongs to another database."""


class ChangeCursors:
    """Encrypts and decrypts the change cursors of one feed."""

    def __init__(self, secret: bytes, feed: str) -> None:
        self.feed = feed
        self._head = bytes.fromhex(feed)
        self._cipher = AESGCM(derive(secret, b"feed", self._head))

    def seal(self, position: FeedPosition) -> str:
        """Encrypt a position as a new cursor."""
        nonce = secrets.token_bytes(_NONCE)
        sealed = self._cipher.encrypt(nonce, _pack.pack(*position), self._head)
        return base64.urlsafe_b64encode(self._head + nonce + sealed).decode()

    def open(self, text: str) -> FeedPosition:
        """Decrypt a cursor. Raises ForeignFeed if it belongs to another feed, ValueError if it is not a cursor."""
        try:
            raw = binascii.a2b_base64(text.replace("-", "+").replace("_", "/"), strict_mode=True)
        except (ValueError, binascii.Error):
            raw = b""
        if len(raw) != _LENGTH or base64.urlsafe_b64encode(raw).decode() != text:
            raise ValueError("expected a cursor of changes")
        if raw[:_FEED] != self._head:
            raise ForeignFeed("the cursor is of another database")
        try:
            decrypted = self._cipher.decrypt(raw[_FEED : _FEED + _NONCE], raw[_FEED + _NONCE :], self._head)
        except InvalidTag:
            raise ValueError("expected a cursor of changes") from None
        return FeedPosition(*_pack.unpack(decrypted))
