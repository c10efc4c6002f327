"""The fold is what SQLite's full-text search does, of every character."""

from __future__ import annotations

import pytest

from diptych.model.folding import fold, folds, word_ranges, words
from tools.fold_table import FILE, behaviour, table


@pytest.mark.slow
def test_every_character_is_folded_and_divided_as_sqlite_does_it() -> None:
    known, inside = folds(), {code for low, high in word_ranges() for code in range(low, high + 1)}
    for character, becomes in behaviour():
        if becomes is None:
            assert ord(character) not in inside and ord(character) not in known, ascii(character)
        else:
            assert known.get(ord(character), character) == becomes, ascii(character)
            assert (ord(character) in inside) == bool(becomes), ascii(character)


@pytest.mark.slow
def test_the_table_is_as_its_tool_writes_it() -> None:
    assert FILE.read_text("utf-8") == table()


def test_what_is_folded_stays_as_it_is() -> None:
    assert all(ord(to) not in folds() for to in folds().values() if to)
    assert fold("Déjà Vu, E\u0301!") == "deja vu, e!"


def test_the_words_of_a_search() -> None:
    assert words("Déjà-vu 2, NAÏV* *x* \u0301") == [
        ("deja", False), ("vu", False), ("2", False), ("naiv", True), ("x", True),
    ]  # fmt: skip
    assert words("e\u0301*") == [("e", True)]
    assert words(" -- * ") == []
