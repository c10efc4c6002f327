"""One pass over the tokens of a document: what it holds, definition by definition.

One regular expression finds the tokens. The scan knows of each bracket what it opens: selections, or arguments and
values; that is all of the grammar that it needs. It stops where there are more tokens than may be. Of a text that is no
document the numbers mean nothing, and its parser says so afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from dataclasses import field as default
from typing import Any, NamedTuple

from diptych.ask.asked import Asked, Limits

# A string that does not end is a token too, so that the scan goes over every character once.
_TOKEN = re.compile(
    r"(?:[\s,\ufeff]|\#[^\n\r]*)++|(?P<number>-?[0-9][\w.]*+(?:(?<=[eE])[+-][\w.]*+)?)|(?P<name>\w++)|(?P<mark>[{}()\[\]:@$]|\.\.\.)"
    r"""|(?P<block>\"""(?:\\\"""|[^"]|"(?!""))*+(?:\""")?)|(?P<string>"(?:[^"\\\n\r]|\\.)*+"?)"""
    r"|(?P<other>\S)"
)
_QUOTES = {"string": 2, "block": 6}
_STEP = {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}
_WRAPPERS = ("nodes", "edges", "node", "pageInfo")
"""The parts of a page, which are no level of their own."""
_META = ("__schema", "__type")
_LISTS = ("types", "fields", "args", "inputFields", "enumValues", "interfaces", "possibleTypes", "directives")
_TIMES = 4
"""What is asked of each of a list of what a schema has counts so often. What a type is made of counts so much less, but
for the lists in it: those are lists of a whole type again."""
MOST = 100_000
"""Nobody counts further."""


class Spread(NamedTuple):
    """Where a fragment is spread: below how many relations and brackets, and how often it counts in a question about
    the schema, if it is in one."""

    name: str
    depth: int
    nesting: int
    about: bool
    weight: int
    share: float


class _Field:
    """A field, with its key in the answer; an inline fragment has no name."""

    __slots__ = ("is_open", "key", "name", "size")

    def __init__(self, name: str = "") -> None:
        self.name = self.key = name
        self.size = 1
        """The page size, if it is written there."""
        self.is_open = False
        """Is there a directive that may leave it out?"""


@dataclass(slots=True)
class _Set:
    """A selection set that is open: its level of relations, is it about the schema, and how often that counts."""

    depth: int
    about: bool
    weight: int
    """By the lists on the way."""
    share: float
    """What of that counts, by the types that the last of them is made of. (Quarters are exact.)"""
    field: _Field
    selections: int = 0
    prices: dict[str, int] = default(default_factory=dict)
    """What the fields in it cost at least, by their keys: those that have one key are one."""
    most: int = 0
    """What others in it cost at least, any of which may be the same again."""

    @property
    def price(self) -> int:
        """What it costs at least."""
        return max(sum(self.prices.values()), self.most)


@dataclass(slots=True, eq=False)
class Part:
    """An operation or a fragment: its selections, those about the schema, its levels of relations and of brackets."""

    kind: str
    name: str = ""
    selections: int = 0
    described: float = 0.0
    weighed: float = 0.0
    """Its selections as they count below a question about the schema: those in no list,"""
    listed: float = 0.0
    """and those in one."""
    depth: int = 0
    nesting: int = 0
    price: int = 0
    """What it costs at least, without what is spread in it."""
    spreads: list[Spread] = default(default_factory=list)


@dataclass(slots=True, eq=False)
class Outline:
    """The definitions of a document."""

    operations: list[Part] = default(default_factory=list)
    fragments: dict[str, Part] = default(default_factory=dict)
    circle: str = ""
    """A fragment that is spread within itself, if there is one."""


class Scan:
    """One pass over the tokens of a text."""

    def __init__(self, asked: Asked, limits: Limits) -> None:
        self.asked = asked
        self.limits = limits
        self.outline = Outline()
        self.again = 0
        """Fragments whose name was there already."""
        self._part: Part | None = None
        self._head: list[str] = []
        """The names before the selections of a definition."""
        self._sets: list[_Set] = []
        """The selection sets that are open."""
        self._field = _Field()
        """The field or inline fragment whose set may open next."""
        self._before = ""
        """The mark before a name, where that tells what the name is."""

    def run(self, text: str) -> None:
        asked, limits = self.asked, self.limits
        tokens = longest = deep = deepest = 0
        values: _Values | None = None
        for found in _TOKEN.finditer(text):
            kind = found.lastgroup
            if kind is None:
                continue
            tokens += 1
            if tokens > limits.tokens:
                break
            token = found[0]
            if kind == "mark":
                deep += _STEP.get(token, 0)
                deepest = max(deepest, deep)
            elif len(token) > longest:
                longest = max(longest, len(token.encode()) - _QUOTES.get(kind, 0))
            if values is not None:
                if values.take(token, kind):
                    if 0 < values.size <= limits.page:
                        self._field.size = values.size
                    values = None
            elif kind == "mark" and token in "([":
                values = _Values(token, asked)
            elif kind == "mark":
                self._mark(token)
            elif kind == "name":
                self._name(token)
        asked.tokens, asked.string, asked.nesting = tokens, longest, max(deepest, asked.nesting)

    def _mark(self, token: str) -> None:
        if token == "{":
            self._open()
        elif token == "}":
            self._close()
            self._before = ""
        elif token == "@":
            self.asked.directives += 1
            self._field.is_open = True
            self._before = "@"
        elif token == ":":
            self.asked.aliases += bool(self._sets)
            self._before = ":"
        elif token == "..." and self._sets:
            self._select()
            self._field = _Field()
            self._before = "..."

    def _open(self) -> None:
        if self._sets:
            self._sets.append(_below(self._sets[-1], self._field))
        else:
            self._begin()
            self._sets.append(_Set(0, False, 1, 1.0, _Field()))
        self._before = ""

    def _close(self) -> None:
        """Add what a set costs at least to the one that it stands in."""
        if not self._sets:
            return
        done = self._sets.pop()
        if not self._sets:
            if self._part is not None and self._part.kind != "subscription":
                self._part.price = done.price
        elif not done.about:
            _add_price(self._sets[-1], done.field, done.price)

    def _begin(self) -> None:
        """A definition begins: `query Name`, `fragment Name on Type`, or nothing at all."""
        head, self._head = self._head, []
        part = self._part = Part(head[0] if head else "query", head[1] if len(head) > 1 else "")
        if part.kind != "fragment":
            self.outline.operations.append(part)
        elif len(head) > 1 and head[1] not in self.outline.fragments:
            self.outline.fragments[head[1]] = part
        else:
            self.again += 1

    def _name(self, token: str) -> None:
        before, self._before = self._before, ""
        if before == "@":
            return
        if not self._sets:
            self._head.append(token)
        elif before == "...":
            if token == "on":
                self._before = "on"
                return
            assert self._part is not None
            outer = self._sets[-1]
            spread = Spread(token, outer.depth, len(self._sets), outer.about, outer.weight, outer.share)
            self._part.spreads.append(spread)
        elif before == ":":  # what stood there before was an alias
            self._field.name = token
        elif before != "on":
            self._select()
            self._field = _Field(token)

    def _select(self) -> None:
        """Count a selection of the innermost set."""
        part, innermost = self._part, self._sets[-1]
        assert part is not None
        innermost.selections += 1
        self.asked.selections = max(self.asked.selections, innermost.selections)
        part.selections += 1
        counts = innermost.weight * innermost.share
        part.weighed += counts * (innermost.weight == 1)
        part.listed += counts * (innermost.weight > 1)
        part.described += counts * innermost.about
        part.depth = max(part.depth, innermost.depth)
        part.nesting = max(part.nesting, len(self._sets))


def _below(outer: _Set, field: _Field) -> _Set:
    """The set that a field or an inline fragment opens."""
    name, weight, share = field.name, outer.weight, outer.share
    if not name:
        return _Set(outer.depth, outer.about, weight, share, field)
    about = outer.about or name in _META
    if name in _LISTS:  # also in a fragment, which may turn out to be about the schema
        weight, share = min(weight * _TIMES, MOST), 1.0
    elif name == "ofType":
        share /= _TIMES
    return _Set(outer.depth + (not about and name not in _WRAPPERS), about, weight, share, field)


def _add_price(outer: _Set, field: _Field, price: int) -> None:
    """Add what a set costs at least to the one that it stands in. (A page has nodes, or edges, or both.)"""
    if field.is_open or field.name == "pageInfo":
        return
    if field.name in ("", "edges"):
        outer.most = max(outer.most, price)
        return
    whole = field.size * (price + (not field.name.endswith("Connection")))
    outer.prices[field.key] = max(outer.prices.get(field.key, 0), whole)


class _Values:
    """What stands in the brackets of arguments or variables, from the first to the last of them."""

    __slots__ = ("_argument", "_asked", "_before", "_frames", "_terms", "size")

    def __init__(self, opened: str, asked: Asked) -> None:
        self._asked = asked
        self._frames: list[list[Any]] = [[opened, 0]]
        """The brackets that are open, and how much stands in each."""
        self._argument = ""
        self._before = ""
        self._terms = 0
        self.size = 0
        """The page size, if one is written there."""

    def take(self, token: str, kind: str) -> bool:
        """Count a token; is it the last?"""
        frames = self._frames
        innermost = frames[-1]
        before, self._before = self._before, token if kind == "mark" else ""
        if kind == "mark":
            if token in "([{":
                self._count(innermost, before)
                frames.append([token, 0])
            elif token in ")]}":
                frames.pop()
                return not frames
            elif token == ":":
                self._colon(innermost)
            elif token == "@":
                self._asked.directives += 1
            return False
        if kind == "name" and len(frames) == 1 and before not in (":", "$", "@"):
            self._argument, self._terms = token, 0
        elif kind == "number" and len(frames) == 1 and self._argument in ("first", "last"):
            self.size = int(token) if token.isdigit() and len(token) < 9 else 0
        if before != "@" and self._count(innermost, before) and self._argument == "where":
            self._terms += 1
            self._asked.filter_terms = max(self._asked.filter_terms, self._terms)
        return False

    def _colon(self, innermost: list[Any]) -> None:
        if innermost[0] == "(":  # one more argument, or variable
            innermost[1] += 1
            self._asked.selections = max(self._asked.selections, innermost[1])

    def _count(self, innermost: list[Any], before: str) -> bool:
        """Count a value; is it by itself, or the first of a list, below a name of a filter?"""
        if innermost[0] == "[":
            innermost[1] += 1
            self._asked.listed = max(self._asked.listed, innermost[1])
            if self._argument == "orderBy" and len(self._frames) == 2:
                self._asked.sort_keys = max(self._asked.sort_keys, innermost[1])
            return bool(innermost[1] == 1)
        return bool(innermost[0] == "{" and before in (":", "$"))
