"""Puts a page together from the columns of its statement, and signs its cursors.

    rows       {"id":"a",…} ␞ {"id":"b",…} ␞ {"id":"c",…}          of a page of two
    facts      true                                                  there are rows before it

    {"pageInfo":{"hasNextPage":true,"hasPreviousPage":true,"startCursor":"…","endCursor":"…"},"nodes":[{…},{…}]}

`compile/page_columns.py` writes the statement and says how its columns are put together. The cursors are those that the
database itself signs for lists within rows. A list of REST needs no pageInfo: it takes the parts (`page_parts`), and
only the cursors that lead on are signed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from diptych.ask.cursor import sign
from diptych.compile.plan import ROW_END, UNREADABLE, PageLayout, PagePiece
from diptych.lru import memo

_FLAG = (b"false", b"true")
_PLAIN = rb'("[^"\\]*"|-?[0-9][-+.0-9Ee]*)'
"""A text without escapes, or a number, as JSON."""


class PageParts(NamedTuple):
    """The rows of a page, separated by commas, the cursors of the next and the previous page, and the total."""

    rows: bytes | memoryview
    next: str | None
    previous: str | None
    total: bytes | None


def page_parts(layout: PageLayout, columns: Sequence[bytes | None], size: int, key: bytes) -> PageParts:
    """What a list shows of a page. `key` signs its cursors."""
    rows, more, first, last = _cut(layout, columns, size)
    facts, keys = layout.facts, _reader(layout.labels)
    leads_on = last and _fact(facts["hasNextPage"], columns, more) == b"true"
    leads_back = first and _fact(facts["hasPreviousPage"], columns, more) == b"true"
    return PageParts(
        rows,
        sign(key, keys(last)) if leads_on else None,
        sign(key, keys(first)) if leads_back else None,
        _fact(facts["totalCount"], columns, more) if "totalCount" in facts else None,
    )


def put_together(layout: PageLayout, columns: Sequence[bytes | None], size: int, key: bytes) -> bytes:
    """The JSON of a page. `key` signs its cursors."""
    rows, more, first, last = _cut(layout, columns, size)
    out: list[bytes | memoryview] = []
    for piece in layout.pieces:
        if isinstance(piece, bytes):
            out.append(piece)
        elif piece.kind == "rows":
            out.append(rows)
        elif piece.kind == "startCursor":
            out.append(_cursor(first, layout.labels, key))
        elif piece.kind == "endCursor":
            out.append(_cursor(last, layout.labels, key))
        else:
            out.append(_fact(piece, columns, more))
    return b"".join(out)


def _fact(piece: bytes | PagePiece, columns: Sequence[bytes | None], more: bool) -> bytes:
    """What a page says of itself."""
    if isinstance(piece, bytes):
        return piece
    if piece.kind == "more" and (more or not piece.column):
        return _FLAG[more]
    return columns[piece.column] or b"null"


def _cut(
    layout: PageLayout, columns: Sequence[bytes | None], size: int
) -> tuple[bytes | memoryview, bool, bytes, bytes]:
    """The rows of the page, whether there are more, and what has the sort keys of the first and of the last row."""
    rows = columns[0]
    if not rows:
        return b"", False, b"", b""
    joined = rows.replace(ROW_END, b",", size - 1)  # what is left is before the row beyond the page
    end = joined.rfind(ROW_END)
    more = end >= 0
    if layout.labels:
        first, last = _ends(rows, end if more else len(rows))
    else:
        keys = columns[1] or b""
        first, last = _ends(keys, keys.rindex(ROW_END) if more else len(keys))
    if not layout.backward and UNREADABLE not in rows:
        return memoryview(joined)[:end] if more else joined, more, first, last
    parts = [row for row in (rows[:end] if more else rows).split(ROW_END) if not row.startswith(UNREADABLE)]
    if layout.backward:
        parts.reverse()
        first, last = last, first
    return b",".join(parts), more, first, last


def _ends(texts: bytes, end: int) -> tuple[bytes, bytes]:
    """The first and the last of several texts, up to an end."""
    cut = texts.find(ROW_END, 0, end)
    return (texts[:end],) * 2 if cut < 0 else (texts[:cut], texts[texts.rindex(ROW_END, 0, end) + 1 : end])


@memo("sort keys that rows show", 256)
def _reader(labels: str) -> Callable[[bytes], bytes]:
    """A function that reads the sort keys of a row, as its cursor holds them: of a row without labels, it is these.

    They are matched where the row begins with them, since a decoder reads all of it.
    """
    if not labels:
        return bytes
    names = labels.split(",")
    members = [(f"key{index}", msgspec.Raw, msgspec.field(name=name)) for index, name in enumerate(names)]
    decode = msgspec.json.Decoder(msgspec.defstruct("Keys", members)).decode
    match = re.compile(rb"\{" + b",".join(b'"%b":%b' % (name.encode(), _PLAIN) for name in names) + rb"[,}]").match

    def keys(row: bytes) -> bytes:
        if (found := match(row)) is not None:
            return b"[%b]" % b",".join(found.groups())
        if row.startswith(UNREADABLE):
            return row[1:]
        return b"[%b]" % b",".join(msgspec.structs.astuple(decode(row)))

    return keys


def _cursor(row: bytes, labels: str, key: bytes) -> bytes:
    return b'"%b"' % sign(key, _reader(labels)(row)).encode() if row else b"null"
