"""Decodes JSON from the database that is nested deeper than the decoder can go: what is too deep becomes null.

A stored value may be nested thousands of levels deep. The decoder raises a RecursionError even where it only passes the
value on, and that would fail the whole page or stream that contains it.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")
MAX_LEVELS = 400
"""Levels that are always decoded: Python's limit is 1,000, and the stack of the decoder's caller takes some of them."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def decode(decoder: msgspec.json.Decoder[T], text: bytes | msgspec.Raw) -> T:
    """Decode a text; arrays and objects in it that are nested too deeply are null."""
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(shallow(bytes(text)))


def shallow(text: bytes) -> bytes:
    """Replace every array and object that is nested deeper than MOST levels with null."""
    parts: list[bytes] = []
    depth = kept = 0
    for token in _TOKEN.finditer(text):
        match text[token.start()]:
            case 0x5B | 0x7B:
                depth += 1
                if depth == MAX_LEVELS + 1:
                    parts += (text[kept : token.start()], b"null")
            case 0x5D | 0x7D:
                if depth == MAX_LEVELS + 1:
                    kept = token.end()
                depth -= 1
    return b"".join((*parts, text[kept:]))
