"""Persisted queries: a request names its document by the SHA-256 of its text instead of sending it.

There are two equivalent ways to name one:

    extensions={"persistedQuery": {"version": 1, "sha256Hash": "<hex>"}}    Apollo's protocol; the text may be sent too
    documentId=sha256:<hex>                                                 GraphQL over HTTP, appendix A

Authorization and validation happen as if the text had been sent. A hash cannot name another text, since it is computed
again before a text is stored.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from diptych.api.graphql.http import Parameters
from diptych.errors import Code, Fault, Path, Refusal
from diptych.lru import LRUCache
from diptych.model.naming import upper_first

HASH_PREFIX = "sha256:"
_VERSION = 1
_LENGTH = 64
_HASH = re.compile(f"[0-9a-f]{{{_LENGTH}}}").fullmatch
_EXTENSION = ("extensions", "persistedQuery")
_OVERHEAD = 120
"""Bytes of a cache entry besides its text: the hash, and the objects around it."""


def hash_of(text: str) -> str:
    """The hash by which a document is named."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_hash(value: object) -> bool:
    """Is it a SHA-256 in lower-case hexadecimal?"""
    return isinstance(value, str) and _HASH(value) is not None


def named_by(parameters: Parameters) -> str | None:
    """The hash by which a request names its document; verified against the text, if that was sent too."""
    id, extension = parameters.documentId, (parameters.extensions or {}).get("persistedQuery")
    if id is None:
        return None if extension is None else _by_extension(extension, parameters.query)
    if parameters.query is not None or extension is not None:
        other = "query" if extension is None else "persistedQuery"
        raise Refusal(Code.BAD_REQUEST, f"The request has a documentId and a {other}; it takes one of them.")
    name = id[len(HASH_PREFIX) :]
    if not id.startswith(HASH_PREFIX) or not is_hash(name):
        raise _bad(("documentId",), f"expected {HASH_PREFIX} and {_LENGTH} hexadecimal digits in lower case")
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


def _bad(path: Path, cause: str) -> Refusal:
    return Refusal(Code.BAD_REQUEST, f"{upper_first(cause)}.", [Fault(path, cause)])


def document_not_found() -> Refusal:
    """No document has this hash. (Clients of Apollo's protocol then send the text.)"""
    return Refusal(Code.PERSISTED_QUERY_NOT_FOUND, "PersistedQueryNotFound")


class Texts(LRUCache[tuple[str, float]]):
    """An LRU cache of texts by hash, each with an expiry, bounded by count and bytes."""

    __slots__ = ()

    def __init__(self, kind: str, most: int, most_bytes: int) -> None:
        super().__init__(kind, most, most_bytes, largest=1)

    def keep(self, name: str, text: str, until: float = float("inf")) -> None:
        """Store a text whose hash was verified, unless it is too large."""
        self.put(name, (text, until), _size(text))


def _size(text: str) -> int:
    """The memory that a text may take.

    Non-ASCII text has up to four bytes for a character, and as many again for its UTF-8, which Python caches when it is
    first needed: so `sys.getsizeof` would not always return the same.
    """
    return (len(text) if text.isascii() else 8 * len(text)) + _OVERHEAD
