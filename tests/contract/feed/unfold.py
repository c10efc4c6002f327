"""Changes as the feed has stored them, with the long values that they leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Stored = tuple[str, str, Row | None, Row | None]
"""The table and the id of a row, and the row before and after."""


def unfold(
    changes: Sequence[Stored], now: Callable[[str, str], Row | None], texts: Mapping[str, Sequence[str]] | None
) -> list[Stored]:
    """What an update left as it was is what the next change found, or what the row has now. Read from the end.

    `texts` are the columns of text by table, on SQLite, where the number 1 stands in place of such a value; PostgreSQL
    has a list of their names.
    """
    found: list[Stored] = []
    after: dict[tuple[str, str], Row | None] = {}
    for table, row_id, old, new in reversed(changes):
        key, names = (table, row_id), None if texts is None else texts[table]
        becomes = _filled(new, after[key] if key in after else now(table, row_id), names)
        after[key] = _filled(old, becomes, names)
        found.append((table, row_id, after[key], becomes))
    return found[::-1]


def _filled(row: Row | None, other: Row | None, texts: Sequence[str] | None) -> Row | None:
    if row is None:
        return None
    missing = row.get("=", ()) if texts is None else [name for name in texts if row.get(name) == 1]
    return {name: value for name, value in row.items() if name != "="} | {name: (other or {})[name] for name in missing}
