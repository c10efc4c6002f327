"""The text of a full-text search, and what each database is given of it.

    déjà vu*        every word must be in one of the fields; one with `*` is the beginning of a word

    SQLite          {a b} : ("deja" AND "vu" *)
    PostgreSQL      ('adeja'|'bdeja')&('avu':*|'bvu':*)

There is no other syntax, and words have nothing but letters and digits: so nothing that a client sends is syntax of a
database. A field is known by its place in `Search(…)`, as a letter.
"""

from __future__ import annotations

import functools

from msgspec.structs import replace

from diptych.model.folding import words
from diptych.model.operators import MAX_SEARCHED
from diptych.model.scalar_parsers import parse_string
from diptych.model.scalars import STRING, Scalar

MOST_WORDS = 16
"""The most words of a search."""
MOST_FIELDS = 8
MARKS = "abcdefgh"
"""The letters of the fields."""


def parse_search(value: object) -> str:
    """A search that has words, and not too many."""
    text = parse_string(value)
    if len(text) > MAX_SEARCHED:
        raise ValueError(f"expected at most {MAX_SEARCHED} characters")
    count = len(words(text))
    if not count:
        raise ValueError("expected words, of letters or digits")
    if count > MOST_WORDS:
        raise ValueError(f"expected at most {MOST_WORDS} words")
    return text


SEARCH = replace(STRING, parse=parse_search, parse_text=parse_search)
"""The text of a search."""


@functools.cache
def search_scalar(marks: str) -> Scalar:
    """A search in these fields, as it is bound."""
    return replace(
        SEARCH,
        postgres_param="text::tsquery",
        to_sqlite=functools.partial(to_fts5, marks),
        to_postgres=functools.partial(to_tsquery, marks),
    )


def to_fts5(marks: str, text: str) -> str:
    """A search as SQLite takes it."""
    query = " AND ".join(f'"{word}"{" *" * beginning}' for word, beginning in words(text))
    return f"{{{' '.join(marks)}}} : ({query})"


def to_tsquery(marks: str, text: str) -> str:
    """A search as PostgreSQL takes it."""
    return "&".join(
        "(" + "|".join(f"'{mark}{word}'{':*' * beginning}" for mark in marks) + ")" for word, beginning in words(text)
    )
