"""JSON that the database has made, nested deeper than its decoder goes.

A value that others have stored may be nested thousands of levels deep. The decoder would raise a RecursionError, also
where it only passes the value on, and that would end the stream, or the page, in which the value stands. So what is
nested too deeply is null there.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")
MOST = 400
"""Levels that are decoded in any case: Python's own limit is 1,000, and whoever decodes stands on some of them."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def decode(decoder: msgspec.json.Decoder[T], text: bytes | msgspec.Raw) -> T:
    """What a decoder makes of a text; parts of it that are nested too deeply are null."""
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(shallow(bytes(text)))


def shallow(text: bytes) -> bytes:
    """The same JSON with null in place of every array and object on a level beyond the last one."""
    parts: list[bytes] = []
    depth = kept = 0
    for token in _TOKEN.finditer(text):
        match text[token.start()]:
            case 0x5B | 0x7B:
                depth += 1
                if depth == MOST + 1:
                    parts += (text[kept : token.start()], b"null")
            case 0x5D | 0x7D:
                if depth == MOST + 1:
                    kept = token.end()
                depth -= 1
    return b"".join((*parts, text[kept:]))
