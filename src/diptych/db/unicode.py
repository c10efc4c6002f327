"""Answers as UTF-8: SQLite keeps whatever bytes a program writes as text."""

from __future__ import annotations

import re
from typing import Any

_ESCAPE = re.compile(
    r"\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2}))", re.ASCII
)


def unicode(value: Any) -> Any:
    """The same bytes; where they are no UTF-8, with U+FFFD for what cannot be read. (No quotation mark is lost.)"""
    if not isinstance(value, bytes) or value.isascii():
        return value
    try:
        value.decode()
    except UnicodeDecodeError:
        return value.decode(errors="replace").encode()
    return value


def has_no_half(text: Any) -> bool:
    """Has a JSON text no escape of half a character? It may have those of both halves."""
    return isinstance(text, str) and not any(found[1] for found in _ESCAPE.finditer(text))
