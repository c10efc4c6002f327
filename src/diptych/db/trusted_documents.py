"""Trusted documents, stored in the database, so that every process of every node has the same ones."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.db.system_records import Records
from diptych.errors import Code, Refusal


class TrustedDocument(Struct, frozen=True):
    """A document on the allowlist: `hash` is the SHA-256 of its text, `name` describes its operations to people."""

    hash: str
    name: str
    body: str
    created_at: int


_DOCUMENTS = Records("diptych_documents", TrustedDocument)


async def find_document(store: Store, hash: str) -> str | None:
    """The text of a trusted document, by a read of one row."""
    documents = await _DOCUMENTS.all(store, "hash", hash=hash)
    return documents[0].body if documents else None


async def all_documents(store: Store) -> list[TrustedDocument]:
    """Every trusted document, sorted by name."""
    return await _DOCUMENTS.all(store, "name")


async def add_documents(store: Store, documents: Iterable[TrustedDocument]) -> list[str]:
    """Add documents, all or none; returns the hashes of those that are new."""
    every = list(documents)

    def script() -> Script[list[str]]:
        new: list[str] = []
        for document in every:
            if (yield from _DOCUMENTS.add(store.dialect, document)):
                new.append(document.hash)
        return new

    return await store.write(script)


async def remove_documents(store: Store, hashes: Iterable[str]) -> list[TrustedDocument]:
    """Remove documents, all or none, and return them."""
    every = list(hashes)

    def script() -> Script[list[TrustedDocument]]:
        removed: list[TrustedDocument] = []
        for hash in every:
            document = yield from _DOCUMENTS.remove(store.dialect, hash=hash)
            if document is None:
                raise Refusal(Code.NOT_FOUND, f"There is no trusted document sha256:{hash}.")
            removed.append(document)
        return removed

    return await store.write(script)
