"""The affinity of a column of SQLite: which values it keeps as they are, and which it converts."""

from __future__ import annotations


def affinity(kind: str) -> str:
    """The affinity of a declared type of SQLite, by its own rules."""
    upper = kind.upper()
    return next((found for part, found in _RULES if part in upper), "NUMERIC" if kind else "BLOB")


_RULES = (
    *(("INT", "INTEGER"), ("CHAR", "TEXT"), ("CLOB", "TEXT"), ("TEXT", "TEXT"), ("BLOB", "BLOB")),
    *(("REAL", "REAL"), ("FLOA", "REAL"), ("DOUB", "REAL")),
)
