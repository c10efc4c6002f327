"""A SystemObject: one thing that a database has besides the tables of the model.

A store lists those that are there and creates those that are not, so that a database of an earlier form gets them
when it is opened, and one that has them all is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal

from msgspec import Struct

DialectName = Literal["sqlite", "postgres"]

NOW: Mapping[DialectName, str] = {"sqlite": "(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))", "postgres": "now()"}
"""The moment of a statement, in the form of a DateTime column. SQLite's clock has three fraction digits of six."""


FORM = 3
"""The form of triggers and functions. Raised when their text changes: an older process leaves those of a newer one."""
MARK = f"-- diptych {FORM}\n"
"""The comment in the text of each trigger and function that says its form; those of earlier versions have none."""
_MARKED = re.compile(r"-- diptych (\d+)\n")
LONG_VALUE = 1_024
"""Characters of a value from which on the feed does not repeat it in changes that leave it as it is."""
KEYED = "coalesce((SELECT secret FROM diptych_keys WHERE kid = 'cursor'), '') || ' version ' || {}"
"""A text {} with the secret of the service, for a digest that nobody else can make. (Of a row that shows all but one
field, one could else try the values of that.)"""


def short_name(name: str, longest: int) -> str:
    """A name that fits into that of a trigger, table or function: a long one ends in a hash of all of it."""
    return name if len(name) <= longest else f"{name[: longest - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


class SystemObject(Struct, frozen=True):
    """A table, index, function or trigger that is not the model's.

    `text` is its definition in the catalogue of the database; without it, one of that name is taken as it is.
    """

    name: str
    create: tuple[str, ...]
    text: str | None = None

    def is_in(self, have: Mapping[str, str | None]) -> bool:
        """Does a database have this object, by name and text, or in a later form?"""
        if self.name not in have:
            return False
        there = have[self.name]
        return self.text in (None, there) or _form(there) > FORM


def _form(text: str | None) -> int:
    marked = _MARKED.search(text or "")
    return int(marked[1]) if marked else 0


class FeedTable(Struct, frozen=True):
    """A table of the model, as its triggers need it."""

    name: str
    columns: Sequence[str]
    unique: Sequence[tuple[str, ...]] = ()
    """The columns besides the id, alone or together, in which no two rows may be equal."""
    texts: Sequence[str] = ()
    """The columns of text, which may be long."""
    counters: Sequence[tuple[str, str]] = ()
    """The columns that count, each with the column within which it does, or ""."""
    textual: Sequence[str] = ()
    """The columns of SQLite whose declared type converts numbers to text: they hold nothing but text and blobs."""
    key: Sequence[str] = ()
    """The columns of the primary key of a table that Diptych did not make; none of one that has `id` and `version`."""
