"""Words as a search compares them: case and accents do not count, and what is no letter or digit ends a word.

    fold("Déjà Vu")              "deja vu"
    words("Déjà-vu 2, naïv*")    [("deja", False), ("vu", False), ("2", False), ("naiv", True)]

It is what SQLite's full-text search does (`fold_table`), for both databases: SQLite's own index does it by itself,
PostgreSQL by functions that are made of the same table (`compile/system/folding.py`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from diptych.model.fold_table import FOLDS, WORDS


def fold(text: str) -> str:
    """A text without differences of case and accents."""
    return text.lower() if text.isascii() else text.translate(folds())


def words(text: str) -> list[tuple[str, bool]]:
    """The words of a search, folded; True with one that is the beginning of a word (`naiv*`)."""
    return [(word, star == "*") for word, star in _word().findall(fold(text))]


@functools.cache
def folds() -> dict[int, str]:
    """The characters that are not compared as they are, each with what it is compared as."""
    table: dict[int, str] = {}
    for entry in FOLDS.split():
        to, _, of = entry.partition("=")
        for low, high in _ranges(of, ","):
            table |= dict.fromkeys(range(low, high + 1), chr(int(to, 16)) if to else "")
    return table


def word_ranges() -> Iterator[tuple[int, int]]:
    """The characters of words, as ranges: the first and the last."""
    return _ranges(WORDS, " ")


@functools.cache
def _word() -> re.Pattern[str]:
    characters = "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in word_ranges())
    return re.compile(f"([{characters}]+)(\\*?)")


def _ranges(text: str, between: str) -> Iterator[tuple[int, int]]:
    for part in text.split(between):
        low, _, high = part.partition("-")
        yield int(low, 16), int(high or low, 16)
