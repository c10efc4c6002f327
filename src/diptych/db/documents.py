"""Trusted documents, as the database keeps them: so that every process of every node has the same ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from diptych.db.records import Records
from diptych.db.script import Script
from diptych.db.store import Store
from diptych.errors import Code, Refusal


@dataclass(frozen=True, slots=True)
class TrustedDocument:
    """A document that was allowed by name: `hash` is the SHA-256 of its text, `name` tells people of its operations."""

    hash: str
    name: str
    body: str
    created_at: int


_DOCUMENTS = Records("diptych_documents", TrustedDocument)


async def find_document(store: Store, hash: str) -> str | None:
    """The text of a trusted document, by a read of one row."""
    found = await _DOCUMENTS.all(store, "hash", hash=hash)
    return found[0].body if found else None


async def all_documents(store: Store) -> list[TrustedDocument]:
    """Every trusted document, sorted by name."""
    return await _DOCUMENTS.all(store, "name")


async def add_documents(store: Store, documents: Iterable[TrustedDocument]) -> list[str]:
    """Add documents, all or none; gives the hashes of those that were not there."""
    every = list(documents)

    def script() -> Script[list[str]]:
        new: list[str] = []
        for each in every:
            if (yield from _DOCUMENTS.add(store.dialect, each)):
                new.append(each.hash)
        return new

    return await store.write(script)


async def remove_documents(store: Store, hashes: Iterable[str]) -> list[TrustedDocument]:
    """Remove documents, all or none."""
    every = list(hashes)

    def script() -> Script[list[TrustedDocument]]:
        gone: list[TrustedDocument] = []
        for hash in every:
            found = yield from _DOCUMENTS.remove(store.dialect, hash=hash)
            if found is None:
                raise Refusal(Code.NOT_FOUND, f"There is no trusted document sha256:{hash}.")
            gone.append(found)
        return gone

    return await store.write(script)
