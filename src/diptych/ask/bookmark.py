"""Bookmarks: the cursors of changes.

A bookmark is a position in the feed of a database, for whoever followed it so far. It is encrypted, and never the
same twice: positions count all changes, also those that its holder may not see, and two bookmarks must not even tell
whether anything happened between them. It holds on every node of the database, for any resource, viewer and filter.

    feed (8 bytes) · nonce (12) · sealed position (8) and mark (4), with their tag (16)      64 characters in base64

The feed stands in front, so that a bookmark of another database is told from one that was tampered with. The mark is
a random number of the change at that position: a database that was restored from a copy counts on from there, and
gives the same positions to other changes, but not the same marks.
"""

from __future__ import annotations

import base64
import binascii
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


class Place(NamedTuple):
    """A position in a feed, and the mark of the change there."""

    position: int
    mark: int


class ForeignFeed(ValueError):
    """A bookmark of another database."""


class Bookmarks:
    """Makes and opens the bookmarks of one feed."""

    def __init__(self, secret: bytes, feed: str) -> None:
        self.feed = feed
        self._head = bytes.fromhex(feed)
        self._cipher = AESGCM(derive(secret, b"feed", self._head))

    def seal(self, place: Place) -> str:
        """A new bookmark for a place."""
        nonce = secrets.token_bytes(_NONCE)
        sealed = self._cipher.encrypt(nonce, _pack.pack(*place), self._head)
        return base64.urlsafe_b64encode(self._head + nonce + sealed).decode()

    def open(self, text: str) -> Place:
        """The place of a bookmark: ForeignFeed if it is of another feed, ValueError if it is none."""
        try:
            raw = binascii.a2b_base64(text.replace("-", "+").replace("_", "/"), strict_mode=True)
        except (ValueError, binascii.Error):
            raw = b""
        if len(raw) != _LENGTH or base64.urlsafe_b64encode(raw).decode() != text:
            raise ValueError("expected a cursor of changes")
        if raw[:_FEED] != self._head:
            raise ForeignFeed("the cursor is of another database")
        try:
            opened = self._cipher.decrypt(raw[_FEED : _FEED + _NONCE], raw[_FEED + _NONCE :], self._head)
        except InvalidTag:
            raise ValueError("expected a cursor of changes") from None
        return Place(*_pack.unpack(opened))
