"""Puts a page together from the columns of its statement, and signs its cursors.

    rows       {"id":"a",…} ␞ {"id":"b",…} ␞ {"id":"c",…}          of a page of two
    facts      true                                                  there are rows before it

    {"pageInfo":{"hasNextPage":true,"hasPreviousPage":true,"startCursor":"…","endCursor":"…"},"nodes":[{…},{…}]}

`compile/page_columns.py` writes the statement and says how its columns are put together. The cursors are those that the
database itself signs for lists within rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from diptych.ask.cursor import sign
from diptych.compile.plan import ROW_END, UNREADABLE, PageLayout
from diptych.lru import memo

_FLAG = (b"false", b"true")


def put_together(layout: PageLayout, columns: Sequence[bytes | None], size: int, key: bytes) -> bytes:
    """The JSON of a page. `key` signs its cursors."""
    rows, more, first, last = _cut(layout, columns, size)
    out: list[bytes] = []
    for piece in layout.pieces:
        if isinstance(piece, bytes):
            out.append(piece)
        elif piece.kind == "rows":
            out.append(rows)
        elif piece.kind == "startCursor":
            out.append(_cursor(first, key))
        elif piece.kind == "endCursor":
            out.append(_cursor(last, key))
        elif piece.kind == "more" and (more or not piece.column):
            out.append(_FLAG[more])
        else:
            out.append(columns[piece.column] or b"null")
    return b"".join(out)


def _cut(layout: PageLayout, columns: Sequence[bytes | None], size: int) -> tuple[bytes, bool, bytes, bytes]:
    """The rows of the page, whether there are more, and the sort keys of the first and of the last row."""
    rows = columns[0]
    if not rows:
        return b"", False, b"", b""
    more = len(rows) - len(rows.replace(ROW_END, b"")) >= size  # count() takes five times as long
    if more:
        rows = rows[: rows.rindex(ROW_END)]
    if layout.labels:
        first, last = _ends(rows)
        first, last = _keys(first, layout.labels), _keys(last, layout.labels)
    else:
        keys = columns[1] or b""
        first, last = _ends(keys[: keys.rindex(ROW_END)] if more else keys)
    if not layout.backward and UNREADABLE not in rows:
        return rows.replace(ROW_END, b","), more, first, last
    parts = [row for row in rows.split(ROW_END) if not row.startswith(UNREADABLE)]
    if layout.backward:
        parts.reverse()
        first, last = last, first
    return b",".join(parts), more, first, last


def _ends(texts: bytes) -> tuple[bytes, bytes]:
    """The first and the last of several texts."""
    end = texts.find(ROW_END)
    return (texts, texts) if end < 0 else (texts[:end], texts[texts.rindex(ROW_END) + 1 :])


def _keys(row: bytes, labels: str) -> bytes:
    """The sort keys of a row, as its cursor holds them."""
    if row.startswith(UNREADABLE):
        return row[1:]
    return b"[%b]" % b",".join(msgspec.structs.astuple(_shown(labels).decode(row)))


@memo("sort keys that rows show", 256)
def _shown(labels: str) -> msgspec.json.Decoder[Any]:
    """A decoder of a row that reads these members, as they are, and skips the others."""
    members = [(f"key{index}", msgspec.Raw, msgspec.field(name=label)) for index, label in enumerate(labels.split(","))]
    return msgspec.json.Decoder(msgspec.defstruct("Keys", members))


def _cursor(keys: bytes, key: bytes) -> bytes:
    return b'"%b"' % sign(key, keys).encode() if keys else b"null"
