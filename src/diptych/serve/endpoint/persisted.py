"""Persisted documents, named by hash: automatically registered ones, and trusted ones.

    parameters, name = await persisted.resolve(parameters)      now with its text, or a Refusal
    …                                                           validated, and allowed for the caller
    persisted.register(name, parameters.query)

*Registered* documents were sent by a client with their hash (automatic persisted queries), and are kept once they are
valid. They are in the memory of this process, bounded by count and bytes; after a restart clients send the text again.

*Trusted* documents were added on the command line. They are in the database, so that all processes see them at once. A
text is cached for a second. The first request in the second half of that time refreshes it, while others use the cached
text. So a document in constant use costs two point reads a second, and a removed one ends everywhere within a second.
"""

from __future__ import annotations

import time

import msgspec

from diptych.api.graphql.http import Parameters
from diptych.api.graphql.persisted import Texts, document_not_found, hash_of, named_by
from diptych.db.store import Store
from diptych.db.trusted_documents import find_document
from diptych.errors import Code, Refusal

_HOLDS = 1.0
"""Seconds for which a trusted text is cached."""
_FRESH = 0.5
"""Seconds after which a request refreshes it."""
_TRUSTED, _TRUSTED_BYTES = 10_000, 16 * 1024 * 1024
"""The most trusted texts in the cache, and their bytes; others are read for every request."""


class Persisted:
    """The persisted documents of one process."""

    def __init__(self, store: Store, most: int, most_bytes: int, *, trusted_only: bool) -> None:
        self.trusted_only = trusted_only
        self.registered = Texts("registered documents", most, most_bytes)
        self.trusted = Trusted(store)

    async def resolve(self, parameters: Parameters) -> tuple[Parameters, str]:
        """A request with its text, and the hash under which to register it, or ""."""
        name, text = named_by(parameters), parameters.query
        if text is None:
            return parameters if name is None else await self._with_text(parameters, name), ""
        if self.trusted_only:
            if await self.trusted.find(name or hash_of(text)) is None:
                raise Refusal(Code.FORBIDDEN, "Only trusted documents run here.")
            return parameters, ""
        return parameters, name or ""

    async def _with_text(self, parameters: Parameters, name: str) -> Parameters:
        cached = None if self.trusted_only else self.registered.get(name)
        text = cached[0] if cached is not None else await self.trusted.find(name)
        if text is None:
            raise document_not_found()
        return msgspec.structs.replace(parameters, query=text)

    def register(self, name: str, text: str | None) -> None:
        """Register a text by its hash; only for a valid document that the caller may run."""
        if text is not None and self.registered.get(name) is None:
            self.registered.keep(name, text)


class Trusted:
    """The cache of a store's trusted documents in one process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts = Texts("trusted documents", _TRUSTED, _TRUSTED_BYTES)
        self._reading: set[str] = set()

    async def find(self, name: str) -> str | None:
        """The text of a trusted document by its hash, or None."""
        now, cached = time.monotonic(), self._texts.get(name)
        if cached is not None:
            left = cached[1] - now
            if left > _HOLDS - _FRESH or (left > 0 and name in self._reading):
                return cached[0]
        self._reading.add(name)
        try:
            text = await find_document(self._store, name)
        finally:
            self._reading.discard(name)
        if text is None:
            self._texts.drop(name)
        else:
            self._texts.keep(name, text, now + _HOLDS)  # since before the read: it may have been removed meanwhile
        return text
