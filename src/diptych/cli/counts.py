"""Numbers of things, as the commands print them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
