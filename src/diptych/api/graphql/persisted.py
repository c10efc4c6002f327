"""Persisted queries: a request names its document by the SHA-256 of its text, and need not bring the text.

Two ways to name one, which mean the same:

    extensions={"persistedQuery": {"version": 1, "sha256Hash": "<hex>"}}    Apollo's protocol; the text may come too
    documentId=sha256:<hex>                                                 GraphQL over HTTP, appendix A

The name is all that is taken from it: who asks, and what the document may do for them, is found out as if the text had
been sent. A hash cannot be made to stand for another text, since it is computed anew before a text is kept under it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from diptych.api.graphql.http import Parameters
from diptych.errors import Code, Fault, Place, Refusal
from diptych.lru import LRUCache

PREFIX = "sha256:"
_VERSION = 1
_LENGTH = 64
_HASH = re.compile(f"[0-9a-f]{{{_LENGTH}}}").fullmatch
_EXTENSION = ("extensions", "persistedQuery")
_OVERHEAD = 120
"""Bytes that an entry has besides its text: the hash, and the objects around it."""


def hash_of(text: str) -> str:
    """The name of a document."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_hash(given: object) -> bool:
    """Is it a SHA-256 in the one way to write it: in lower case?"""
    return isinstance(given, str) and _HASH(given) is not None


def named_by(parameters: Parameters) -> str | None:
    """The hash by which a request names its document, if it does; held against the text, if that came too."""
    id, extension = parameters.documentId, (parameters.extensions or {}).get("persistedQuery")
    if id is None:
        return None if extension is None else _by_extension(extension, parameters.query)
    if parameters.query is not None or extension is not None:
        other = "query" if extension is None else "persistedQuery"
        raise Refusal(Code.BAD_REQUEST, f"The request has a documentId and a {other}; it takes one of them.")
    name = id[len(PREFIX) :]
    if not id.startswith(PREFIX) or not is_hash(name):
        raise _bad(("documentId",), f"expected {PREFIX} and {_LENGTH} hexadecimal digits in lower case")
    return name


def _by_extension(extension: Any, text: str | None) -> str:
    if not isinstance(extension, dict):
        raise _bad(_EXTENSION, "expected an object with a version and a sha256Hash")
    version, name = extension.get("version"), extension.get("sha256Hash")
    if type(version) is not int or version != _VERSION:  # True would equal 1
        raise _bad((*_EXTENSION, "version"), f"expected {_VERSION}")
    if not isinstance(name, str) or not is_hash(name):
        raise _bad((*_EXTENSION, "sha256Hash"), f"expected {_LENGTH} hexadecimal digits in lower case")
    if text is not None and hash_of(text) != name:
        raise Refusal(Code.PERSISTED_QUERY_HASH_MISMATCH, "The sha256Hash is not the SHA-256 of the query.")
    return name


def _bad(place: Place, cause: str) -> Refusal:
    return Refusal(Code.BAD_REQUEST, f"{cause[:1].upper()}{cause[1:]}.", [Fault(place, cause)])


def not_found() -> Refusal:
    """No text is known by this hash. (Clients of Apollo's protocol know the message, and send the text.)"""
    return Refusal(Code.PERSISTED_QUERY_NOT_FOUND, "PersistedQueryNotFound")


class Texts:
    """Texts by their hashes, each until a moment. Bounded by count and bytes: the least recently used goes first."""

    def __init__(self, kind: str, most: int, most_bytes: int) -> None:
        self._cache: LRUCache[tuple[str, float]] = LRUCache(kind, most, most_bytes, largest=1)
        self.get = self._cache.get
        """A text by its hash, and until when it holds."""
        self.drop = self._cache.drop

    def keep(self, name: str, text: str, until: float = float("inf")) -> None:
        """Keep a text, whose hash was proven; one that takes more than everything else may is not kept."""
        self._cache.put(name, (text, until), _size(text))

    @property
    def bytes(self) -> int:
        """The memory that all of them may take."""
        return self._cache.used

    def __len__(self) -> int:
        return len(self._cache)


def _size(text: str) -> int:
    """The memory that a text may take.

    What is not ASCII has up to four bytes for a character, and as many again for its UTF-8, which Python keeps beside
    it once someone wanted that: so `sys.getsizeof` would not always say the same.
    """
    return (len(text) if text.isascii() else 8 * len(text)) + _OVERHEAD
