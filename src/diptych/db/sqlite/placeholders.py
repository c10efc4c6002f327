"""Placeholders of PostgreSQL in statements for SQLite: `$1` → `?1`, so that model code is the same on both."""

from __future__ import annotations

import re

_PARTS = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/)|\$([0-9]+)(?![0-9A-Za-z_$])""", re.DOTALL
)
"""Quoted text, quoted names and comments, which are kept; and placeholders."""


def numbered(sql: str) -> str:
    """The statement with `?1` for `$1`, except in quotes and comments.

    >>> numbered("SELECT '$1' WHERE id = $2")
    "SELECT '$1' WHERE id = ?2"
    """
    return _PARTS.sub(lambda part: part[1] or f"?{part[2]}", sql) if "$" in sql else sql
