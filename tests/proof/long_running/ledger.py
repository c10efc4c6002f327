"""What should have been told, by the feed as it stands in the database: read past the service, and judged in Python.

    entries = read_feed(database)
    verdict(follower, entries)                  # "" if it was told exactly that: in order, nothing lost, nothing twice

The feed itself is held against the tables (replayed from its beginning, it gives the rows that are there), and against
what was acknowledged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tests.proof.long_running.followers import Follower, Row, Told, Watching
from tests.proof.long_running.parts import rows
from tests.proof.long_running.scribes import Acknowledged


class Entry(NamedTuple):
    """A change of the feed."""

    table: str
    id: str
    at: str
    old: Row | None
    new: Row | None


def read_feed(database: str) -> list[Entry]:
    """All changes, in the order of their positions; there is no gap, and none without a position."""
    found = rows(database, "SELECT position, resource, row_id, at, old, new FROM diptych_feed ORDER BY position")
    positions = [row[0] for row in found]
    assert positions == list(range(1, len(found) + 1)), "positions are counted without a gap"
    return [Entry(table, id, _moment(at), _row(old), _row(new)) for _, table, id, at, old, new in found]


def _moment(at: str | datetime) -> str:
    """As it is told."""
    return at if isinstance(at, str) else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _row(text: str | None) -> Row | None:
    return None if text is None else json.loads(text)


def expected(entries: Iterable[Entry], watching: Watching) -> list[Told]:
    """What whoever follows is to be told, if it was told each change at once."""
    found = []
    for entry in entries:
        if entry.table != watching.table:
            continue
        was = entry.old is not None and watching.sees(entry.old)
        becomes = entry.new is not None and watching.sees(entry.new)
        if not (was or becomes):
            continue
        kind = "LEFT" if not becomes else "CREATED" if entry.old is None else "UPDATED"
        kind = kind if entry.new is not None else "DELETED"
        if not watching.kinds or kind in watching.kinds:
            version = entry.new["version"] if entry.new is not None and becomes else None
            found.append(Told(kind, entry.id, entry.at, version))
    return found


def verdict(follower: Follower, entries: Sequence[Entry]) -> str:
    """What is wrong with all that a follower was told, if anything."""
    if follower.faults:
        return f"{follower}: {'; '.join(follower.faults[:3])}"
    wanted = expected(entries, follower.watching)
    told = [each._replace(version=None) for each in follower.told]
    should = [each._replace(version=None) for each in wanted]
    if told != should:
        lost, more = Counter(should) - Counter(told), Counter(told) - Counter(should)
        first = next((at for at, pair in enumerate(zip(told, should, strict=False)) if pair[0] != pair[1]), len(told))
        return (
            f"{follower}: lost {lost.total()}, doubled {more.total()} of {len(should)}"
            + ("" if lost or more else ", order")
            + f"; from {first}: {told[first : first + 2]} instead of {should[first : first + 2]}"
        )
    return _versions(follower, wanted, _hidden(entries, follower.watching))


def _hidden(entries: Iterable[Entry], watching: Watching) -> set[str]:
    """Rows that could not be read at some time after they could: of these, a change may be told without the row."""
    return {
        entry.id
        for entry in entries
        if entry.table == watching.table and (entry.new is None or not watching.reads(entry.new))
    }


def _versions(follower: Follower, wanted: Sequence[Told], hidden: set[str]) -> str:
    for told, should in zip(follower.told, wanted, strict=True):
        if told.version != should.version and not (told.version is None and told.id in hidden):
            return f"{follower}: {told} shows another version than {should}"
    return ""


def check_feed(database: str, entries: Sequence[Entry], acknowledged: Iterable[Acknowledged]) -> None:
    """Hold the feed against the tables, and against what was acknowledged."""
    there: dict[tuple[str, str], Row] = {}
    seen: set[Acknowledged] = set()
    for entry in entries:
        before = there.pop((entry.table, entry.id), None)
        assert before == entry.old, f"a change of a row does not go on from the one before: {before} {entry}"
        if entry.new is not None:
            assert before is None or entry.new["version"] > before["version"], entry
            there[entry.table, entry.id] = entry.new
        seen.add((entry.table, entry.id, entry.new["version"] if entry.new else None))
    for table in ("users", "posts", "orders"):
        now = {str(id): version for id, version in rows(database, f"SELECT id, version FROM {table}")}
        kept: dict[str, Any] = {id: row["version"] for (of, id), row in there.items() if of == table}
        assert now == kept, f"the feed of {table} does not lead to what is there"
    assert not [each for each in acknowledged if each not in seen], "acknowledged, and not in the feed"
