"""Repairs text that is not valid UTF-8: SQLite stores any bytes that a program writes as text."""

from __future__ import annotations

import re
from typing import Any

_ESCAPE = re.compile(
    r"\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2}))", re.ASCII
)


def unicode(value: Any) -> Any:
    """The same bytes, with U+FFFD in place of invalid UTF-8. (No quotation mark is lost.)"""
    if not isinstance(value, bytes) or value.isascii():
        return value
    try:
        value.decode()
    except UnicodeDecodeError:
        return value.decode(errors="replace").encode()
    return value


def has_no_half(text: Any) -> bool:
    """Is a JSON text without an escape of a lone surrogate? Pairs are allowed."""
    return isinstance(text, str) and not any(match[1] for match in _ESCAPE.finditer(text))
