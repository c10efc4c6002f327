"""Writes src/diptych/model/fold_table.py: how SQLite's full-text search folds and divides every character.

    python -m tools.fold_table

SQLite's tokenizer `unicode61` follows Unicode 6.1 and has not changed since: the table is that of every version.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

FILE = Path(__file__).parents[1] / "src" / "diptych" / "model" / "fold_table.py"
TOKENIZER = ["remove_diacritics", "2"]
_WIDTH = 108
_CHUNK = 4_096


def behaviour() -> Iterator[tuple[str, str | None]]:
    """Each character with what SQLite makes of it within a word: another, itself, "" (dropped), or None (an end)."""
    tokenize = apsw.Connection(":memory:").fts5_tokenizer("unicode61", TOKENIZER)
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    for start in range(0, len(characters), _CHUNK):
        chunk = characters[start : start + _CHUNK]
        text = "".join(f"q{character}z " for character in chunk).encode()
        found: Iterator[Any] = iter(
            tokenize(text, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
        )
        for character in chunk:
            token = next(found)
            if token == "q":
                assert next(found) == "z"
            yield character, None if token == "q" else token[1:-1]


def table() -> str:
    folds: dict[str, list[int]] = {}
    words: list[int] = []
    for character, becomes in behaviour():
        if becomes is not None and becomes != character:
            folds.setdefault(becomes, []).append(ord(character))
        if becomes:
            words.append(ord(character))
    same = " ".join(f"{_code(to)}={_ranges(of, ',')}" for to, of in sorted(folds.items()))
    return "\n".join(
        [_HEAD, "FOLDS = (", *_wrapped(same), ")", _WORDS, "WORDS = (", *_wrapped(_ranges(words, " ")), ")", ""]
    )


def _code(character: str) -> str:
    return f"{ord(character):x}" if character else ""


def _ranges(codes: list[int], between: str) -> str:
    """Codes in hexadecimal, as ranges."""
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return between.join(f"{low:x}-{high:x}" if high > low else f"{low:x}" for low, high in found)


def _wrapped(text: str) -> Iterator[str]:
    line = ""
    for part in text.replace(",", ", ").split(" "):
        if line and len(line) + len(part) > _WIDTH:
            yield f'    "{line}"'
            line = ""
        line += part + " " * (part[-1] != ",")
    yield f'    "{line.rstrip()}"'


_HEAD = '''"""How SQLite's full-text search sees characters; made by `python -m tools.fold_table`."""

from __future__ import annotations

# Each character and those that are the same in a search, in hexadecimal; those before the first are left out.'''
_WORDS = "# The characters of words, in hexadecimal; all others end a word."

if __name__ == "__main__":
    FILE.write_text(table(), "utf-8")
