"""The texts of documents that are named by their hashes: those that clients registered, and those that are trusted.

    parameters, name = await persisted.resolve(parameters)      now with its text, or a Refusal
    …                                                           understood, and allowed for who asks
    persisted.register(name, parameters.query)

*Registered* is what a client sent with its hash, once it was understood: junk is not. It is in the memory of this
process, bounded by count and bytes, and lost with it; clients send the text again then.

*Trusted* is what was added on the command line. It is in the database, so that all processes have it at once. A text
that was read there is believed for a second, and read again before that by the first request that comes in its second
half, while the others go on with it. So a document that is asked for all the time costs a point read twice a second,
and one that was removed ends everywhere within a second.
"""

from __future__ import annotations

import time

import msgspec

from diptych.api.graphql.http import Parameters
from diptych.api.graphql.persisted import Texts, hash_of, named_by, not_found
from diptych.db.documents import find_document
from diptych.db.store import Store
from diptych.errors import Code, Refusal

_HOLDS = 1.0
"""Seconds for which a trusted text is believed."""
_FRESH = 0.5
"""Seconds after which it is read again, if it is asked for."""
_TRUSTED, _TRUSTED_BYTES = 10_000, 16 * 1024 * 1024
"""How many trusted texts are in memory, and of how many bytes; more than these are read each time."""


class Persisted:
    """All documents of one process that have a name."""

    def __init__(
        self, store: Store, most: int = 1_000, most_bytes: int = 8_388_608, *, trusted_only: bool = False
    ) -> None:
        self.trusted_only = trusted_only
        self.registered = Texts("registered documents", most, most_bytes)
        self.trusted = Trusted(store)

    async def resolve(self, parameters: Parameters) -> tuple[Parameters, str]:
        """A request with its text, and the hash by which that may be registered, if there is one."""
        name, text = named_by(parameters), parameters.query
        if text is None:
            return parameters if name is None else await self._with_text(parameters, name), ""
        if self.trusted_only:
            if await self.trusted.find(name or hash_of(text)) is None:
                raise Refusal(Code.FORBIDDEN, "Only trusted documents run here.")
            return parameters, ""
        return parameters, name or ""

    async def _with_text(self, parameters: Parameters, name: str) -> Parameters:
        found = None if self.trusted_only else self.registered.get(name)
        text = found[0] if found is not None else await self.trusted.find(name)
        if text is None:
            raise not_found()
        return msgspec.structs.replace(parameters, query=text)

    def register(self, name: str, text: str | None) -> None:
        """Know a text by its hash from now on. Only for what was understood and allowed."""
        if text is not None and self.registered.get(name) is None:
            self.registered.keep(name, text)


class Trusted:
    """What one process knows of the trusted documents of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts = Texts("trusted documents", _TRUSTED, _TRUSTED_BYTES)
        self._reading: set[str] = set()

    async def find(self, name: str) -> str | None:
        """The text of a trusted document; None if there is none of this hash."""
        now, found = time.monotonic(), self._texts.get(name)
        if found is not None:
            left = found[1] - now
            if left > _HOLDS - _FRESH or (left > 0 and name in self._reading):
                return found[0]
        self._reading.add(name)
        try:
            text = await find_document(self._store, name)
        finally:
            self._reading.discard(name)
        if text is None:
            self._texts.drop(name)
        else:
            self._texts.keep(name, text, now + _HOLDS)  # from when it was asked: it may be gone since
        return text
