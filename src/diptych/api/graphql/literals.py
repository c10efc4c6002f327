"""Lifts literals out of documents, so that texts that differ only in them share one plan.

    { user(id: "7f…") { name } }    →    { user(id: ) { name } }, with the place of one string, and its value

Clients that write values into their documents send a new text with every request. `lift` replaces the strings and whole
numbers of a text by their places; what is left is a key for everything that has been planned. It is one pass of a
regular expression, in one part in a hundred of the time that a new document takes.

Which literals may be lifted is decided twice. Here, by what the text shows: a document stays whole if it has default
values or introspection, a block string, or anything unusual; page sizes are never lifted. Equal literals share an
index, because equal selections are merged and unequal ones conflict. Then by the plan (`Planner`): every lifted literal
must be the value of a slot, which is bound for each request, or a part of one. What is neither stays in the text.
"""

from __future__ import annotations

import re
import sys
from itertools import islice
from typing import Any

from msgspec import Struct

from diptych.api.graphql.tokens import unquote
from diptych.ask.measures import Limits

_LITERAL = re.compile(
    r"[^\"#0-9-]*+(?:(?P<string>\"(?!\"\")[^\"\\\n\r]*+(?:\\.[^\"\\\n\r]*+)*+\")"
    r"|(?P<int>(?<![\w.])-?(?:0|[1-9][0-9]{0,17})(?![\w.]))"
    r"|(?P<other>\")|#[^\n\r]*+|[0-9-]++\w*+|\Z)"
)
"""It matches everywhere, so each character is matched once."""
_SIZES = ("first", "last")
_BETWEEN = " \t\n\r,:\ufeff"
_LONGEST, _MOST = 16_384, 256
"""The longest text in characters, and the most literals (with comments and other numbers) of a text that is lifted."""
_ENTRY, _LITERAL_BYTES = 600, 350
"""Estimated bytes of the object, and of a literal besides its text."""


class Literals(Struct, frozen=True, eq=False):
    """The lifted literals of a text."""

    text: str
    rest: tuple[Any, ...]
    """The text without them, their places in it, kinds and indexes: equal for texts that differ only in values."""
    values: tuple[str | int, ...]
    places: dict[int, int]
    """Their places in the text itself, and their indexes."""
    longest: int
    """Characters of the longest, with its quotation marks."""

    @property
    def size(self) -> int:
        return _ENTRY + sys.getsizeof(self.rest[0]) + sys.getsizeof(self.text) + _LITERAL_BYTES * len(self.places)

    def fit(self, limits: Limits) -> bool:
        """Is the text surely within the limits on its bytes and those of its strings?"""
        width = 1 if self.text.isascii() else 4
        return width * self.longest <= limits.string and width * len(self.text) <= limits.document


def lift(text: str) -> Literals | None:
    """The literals of a text, and the rest of it; None if it has none, or none that may be lifted."""
    if len(text) > _LONGEST:
        return None
    pieces: list[str] = []
    marks: list[int] = []
    indexes: dict[str | tuple[str], int] = {}
    places: dict[int, int] = {}
    at = length = longest = 0
    for match in islice(_LITERAL.finditer(text), _MOST):
        kind = match.lastgroup
        if kind is None or (kind == "int" and _is_size(text, match.start(kind))):
            continue
        start, end = match.span(kind)
        value = _value(kind, text[start:end])
        if value is None:
            return None
        index = places[start] = indexes.setdefault(value, len(indexes))
        piece = text[at:start]
        pieces.append(piece)
        length += len(piece)
        marks += (length, index if kind == "string" else ~index)
        longest = max(longest, end - start)
        at = end
    if not places or match.end() < len(text):
        return None
    pieces.append(text[at:])
    rest = "".join(pieces)
    if "=" in rest or rest.count("__") != rest.count("__typename"):
        return None
    values = [value if isinstance(value, str) else int(value[0]) for value in indexes]
    return Literals(text, (rest, *marks), tuple(values), places, longest)


def _value(kind: str, token: str) -> str | tuple[str] | None:
    """The value of a string, or the digits of a number; None if it is neither, or uncommon."""
    if kind == "int":
        return (token,)
    if kind != "string" or "\\" not in token:
        return token[1:-1] if kind == "string" else None
    try:
        return unquote(token)
    except ValueError:
        return None


def _is_size(text: str, start: int) -> bool:
    """Is it the number of a page size?"""
    return text[max(0, start - 16) : start].rstrip(_BETWEEN).endswith(_SIZES)
