"""Reads the audit log: as lines for an export, and to verify its chain."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple

from diptych.audit.chain import Entry
from diptych.audit.statements import ENTRIES, HEAD
from diptych.db.feed import sqlite_time
from diptych.db.store import Session, Store

_AT_A_TIME = 500
_UNHURRIED = "SET LOCAL idle_in_transaction_session_timeout = 0"


class AuditHead(NamedTuple):
    """Where the log ends and begins: `entry` and `hash` are those of its newest entry, `first` is the oldest that is
    kept, and `first_hash` that of the one before."""

    position: int
    entry: int
    hash: str
    first: int
    first_hash: str

    def __str__(self) -> str:
        return f"{self.entry}:{self.hash}"


class Broken(NamedTuple):
    """The first entry at which the chain is broken, and how."""

    entry: int
    cause: str


class Chosen(NamedTuple):
    """Which entries are exported."""

    resource: str = ""
    row: str = ""
    since: datetime | None = None
    until: datetime | None = None


@asynccontextmanager
async def _snapshot(store: Store) -> AsyncIterator[Session]:
    """A session whose statements see the log at one moment; who reads what it finds may take any time for that."""
    session = await store.session(reading=True)
    try:
        if store.dialect.name == "postgres":
            await session.rows(_UNHURRIED, ())
        yield session
    finally:
        await session.end()


async def audit_head(store: Store) -> AuditHead:
    """The head of the log."""
    async with _snapshot(store) as session:
        return await _head(session)


async def exported(store: Store, chosen: Chosen) -> AsyncIterator[str]:
    """The lines of the entries that are chosen, the oldest first."""
    more, values = _conditions(chosen, store.dialect.name)
    async with _snapshot(store) as session:
        async for entry, hash in _entries(session, store.dialect.name, more, values):
            yield entry.exported(hash)


async def verify(store: Store, kept: tuple[int, str] | None = None) -> tuple[int, Broken | None]:
    """How many entries are right, and the first that is not. `kept` is a head that was written down elsewhere."""
    async with _snapshot(store) as session:
        return await _verified(session, store.dialect.name, kept)


async def _verified(session: Session, dialect: str, kept: tuple[int, str] | None) -> tuple[int, Broken | None]:
    head = await _head(session)
    number, before, right = head.first, head.first_hash, 0
    if kept is not None and (broken := _beside(kept, head)) is not None:
        return 0, broken
    async for entry, hash in _entries(session, dialect, "", ()):
        if entry.entry > head.entry:
            return right, Broken(entry.entry, "it is beyond the head of the log")
        if entry.entry != number:
            return right, Broken(number, "it is missing")
        before = entry.hash(before)
        if before != hash:
            return right, Broken(number, "it was changed, or one before it")
        if kept is not None and kept[0] == number and kept[1] != hash:
            return right, Broken(number, f"its hash was {kept[1]}")
        number, right = number + 1, right + 1
    if number <= head.entry:
        return right, Broken(number, "it is missing")
    if before != head.hash:
        return right, Broken(head.entry, f"its hash was {head.hash}")
    return right, None


def _beside(kept: tuple[int, str], head: AuditHead) -> Broken | None:
    """What is wrong if a head that was written down elsewhere is of no entry of the log; the first one is 1."""
    number, hash = kept
    if number > head.entry:
        return Broken(head.entry + 1, f"it is missing: the log had {number} entries")
    if number and number < head.first - 1:
        return Broken(number, f"it is no longer kept: the log begins with entry {head.first}")
    if number and number == head.first - 1 and hash != head.first_hash:
        return Broken(number, f"its hash was {hash}")
    return None


async def _entries(
    session: Session, dialect: str, more: str, values: Sequence[Any]
) -> AsyncIterator[tuple[Entry, str]]:
    """All entries with their hashes, the oldest first, and such as someone has put behind the head."""
    after, last = 0, (await _head(session)).entry + _AT_A_TIME
    sql = ENTRIES[dialect].format(more)
    while rows := await session.rows(sql, (after, last, _AT_A_TIME, *values)):
        for row in rows:
            yield _entry(row, dialect), row[10]
        after = rows[-1][0]


async def _head(session: Session) -> AuditHead:
    (row,) = await session.rows(HEAD, ())
    return AuditHead(*row)


def _entry(row: Sequence[Any], store: str) -> Entry:
    """An entry as it was made: one that was moved here from another database keeps its origin."""
    number, position, at, resource, row_id, old, new, act, masked, origin, _ = row
    if origin:
        store, resource, old, new = json.loads(origin)
    return Entry(number, position, at, resource, row_id, store, act, masked or "", old, new)


def _conditions(chosen: Chosen, dialect: str) -> tuple[str, list[Any]]:
    """More conditions of the entries, with their values."""
    cast = "::text::timestamptz" if dialect == "postgres" else ""
    wanted = (
        ("resource = {}", chosen.resource or None),
        ("row_id = {}", chosen.row or None),
        (f"at >= {{}}{cast}", chosen.since and sqlite_time(chosen.since)),
        (f"at < {{}}{cast}", chosen.until and sqlite_time(chosen.until)),
    )
    text, values = "", []
    for condition, value in wanted:
        if value is not None:
            values.append(value)
            text += f" AND {condition.format(f'${3 + len(values)}')}"
    return text, values
