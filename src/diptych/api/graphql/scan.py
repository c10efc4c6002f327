"""One pass over the tokens of a document that counts what each of its definitions contains.

All that the scan knows of the grammar is what a bracket opens: a selection set, or arguments and values. It stops at
the token limit. For a text that is not a document the numbers mean nothing; the parser rejects it afterwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct
from msgspec import field as default

from diptych.api.graphql.tokens import DocumentTokens, tokenize
from diptych.ask.measures import Limits, RequestMeasures

_QUOTES = {"string": 2, "block": 6}
_STEP = {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}
_WRAPPERS = ("nodes", "edges", "node", "pageInfo")
"""Fields of a page; they are not levels of relations."""
_AGGREGATES = ("Summary", "Groups", "GroupsConnection")
"""How the names of fields with numbers of rows end."""
_META = ("__schema", "__type")
_LISTS = ("types", "fields", "args", "inputFields", "enumValues", "interfaces", "possibleTypes", "directives")
_TIMES = 4
"""Introspection: the factor on a selection inside a list, and the divisor inside `ofType`."""
MOST = 100_000
"""Where counting introspection stops."""


class Spread(NamedTuple):
    """A fragment spread: its levels of relations and brackets, and whether and how often it counts as introspection."""

    name: str
    depth: int
    nesting: int
    about: bool
    weight: int
    share: float


class _Field:
    """A field with its response key; an inline fragment has no name."""

    __slots__ = ("is_open", "key", "name", "size")

    def __init__(self, name: str = "") -> None:
        self.name = self.key = name
        self.size = 1
        """The page size, if it is a literal."""
        self.is_open = False
        """Has it a directive, which may exclude it, or a list of ids, which may be empty?"""


class _Set(Struct):
    """An open selection set: its level of relations, whether it is introspection, and how often that counts."""

    depth: int
    about: bool
    weight: int
    """For the lists around it."""
    share: float
    """The part of it that counts, for each `ofType` since the last list. (Quarters are exact.)"""
    field: _Field
    selections: int = 0
    prices: dict[str, int] = default(default_factory=dict)
    """Lower bounds of the prices of its fields, by response key: fields with one key are merged."""
    most: int = 0
    """The largest lower bound among other selections, which may be merged with any."""
    is_flat: bool = False
    """Is it a summary or groups, by its name? Objects in it are no levels, and add nothing to the price."""

    @property
    def price(self) -> int:
        """A lower bound of its price."""
        return max(sum(self.prices.values()), self.most)


class Definition(Struct, eq=False):
    """An operation or a fragment: its selections, those of introspection, its levels of relations and brackets."""

    kind: str
    name: str = ""
    selections: int = 0
    described: float = 0.0
    weighed: float = 0.0
    """Its selections as they would count inside introspection: those outside lists,"""
    listed: float = 0.0
    """and those inside lists."""
    depth: int = 0
    nesting: int = 0
    price: int = 0
    """A lower bound of its price, without its fragment spreads."""
    spreads: list[Spread] = default(default_factory=list)
    lists: list[tuple[int, _Field, int]] = default(default_factory=list)
    """Its fields with literal page sizes, inner ones first: the level of each, and the price of one row."""


class Outline(Struct, eq=False):
    """The definitions of a document."""

    operations: list[Definition] = default(default_factory=list)
    fragments: dict[str, Definition] = default(default_factory=dict)
    cycle: str = ""
    """A fragment that spreads itself, if there is one."""
    tokens: DocumentTokens = default(default_factory=list)


class Scan:
    """One pass over the tokens of a text."""

    def __init__(self, measures: RequestMeasures, limits: Limits) -> None:
        self.measures = measures
        self.limits = limits
        self.outline = Outline()
        self.duplicates = 0
        """Fragments with the name of another."""
        self._part: Definition | None = None
        self._head: list[str] = []
        """The names before the selection set of a definition."""
        self._sets: list[_Set] = []
        """The open selection sets."""
        self._field = _Field()
        """The field or inline fragment whose selection set may open next."""
        self._before = ""
        """The mark before a name, if it determines what the name is."""

    def run(self, text: str) -> None:
        measures, limits = self.measures, self.limits
        tokens = longest = deep = deepest = 0
        values: _Values | None = None
        self.outline.tokens = tokenize(text, limits.tokens)
        for match in self.outline.tokens:
            kind = match.lastgroup
            if kind is None or kind == "end":
                break
            tokens += 1
            if tokens > limits.tokens:
                break
            token = match[kind]
            if kind == "mark":
                deep += _STEP.get(token, 0)
                deepest = max(deepest, deep)
            elif len(token) > longest:
                longest = max(longest, len(token.encode()) - _QUOTES.get(kind, 0))
            if values is not None:
                if values.take(token, kind):
                    if 0 < values.size <= limits.page:
                        self._field.size = values.size
                    self._field.is_open |= values.has_ids
                    values = None
            elif kind == "mark" and token in "([":
                values = _Values(token, measures)
            elif kind == "mark":
                self._mark(token)
            elif kind == "name":
                self._name(token)
        measures.tokens, measures.string, measures.nesting = tokens, longest, max(deepest, measures.nesting)

    def _mark(self, token: str) -> None:
        if token == "{":
            self._open()
        elif token == "}":
            self._close()
            self._before = ""
        elif token == "@":
            self.measures.directives += 1
            self._field.is_open = True
            self._before = "@"
        elif token == ":":
            self.measures.aliases += bool(self._sets)
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
        """Close a selection set, and add its price to the enclosing one."""
        if not self._sets:
            return
        closed = self._sets.pop()
        if not self._sets:
            if self._part is not None and self._part.kind != "subscription":
                self._part.price = closed.price
        elif not closed.about:
            price = closed.price
            _add_price(self._sets[-1], closed.field, price)
            if closed.field.size > 1 and self._part is not None:
                self._part.lists.append((len(self._sets), closed.field, price))

    def _begin(self) -> None:
        """Begin a definition: `query Name`, `fragment Name on Type`, or nothing at all."""
        head, self._head = self._head, []
        part = self._part = Definition(head[0] if head else "query", head[1] if len(head) > 1 else "")
        if part.kind != "fragment":
            self.outline.operations.append(part)
        elif len(head) > 1 and head[1] not in self.outline.fragments:
            self.outline.fragments[head[1]] = part
        else:
            self.duplicates += 1

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
        elif before == ":":  # the name before was an alias
            self._field.name = token
        elif before != "on":
            self._select()
            self._field = _Field(token)

    def _select(self) -> None:
        """Count a selection of the innermost selection set."""
        part, innermost = self._part, self._sets[-1]
        assert part is not None
        innermost.selections += 1
        self.measures.selections = max(self.measures.selections, innermost.selections)
        part.selections += 1
        counts = innermost.weight * innermost.share
        part.weighed += counts * (innermost.weight == 1)
        part.listed += counts * (innermost.weight > 1)
        part.described += counts * innermost.about
        part.depth = max(part.depth, innermost.depth)
        part.nesting = max(part.nesting, len(self._sets))


def _below(outer: _Set, field: _Field) -> _Set:
    """The selection set of a field or an inline fragment."""
    name, weight, share = field.name, outer.weight, outer.share
    if not name:
        return _Set(outer.depth, outer.about, weight, share, field, is_flat=outer.is_flat)
    about = outer.about or name in _META
    if name in _LISTS:  # also in a fragment, which may turn out to be introspection
        weight, share = min(weight * _TIMES, MOST), 1.0
    elif name == "ofType":
        share /= _TIMES
    is_level = not about and name not in _WRAPPERS and not outer.is_flat
    is_flat = outer.is_flat or name.endswith(_AGGREGATES)
    return _Set(outer.depth + is_level, about, weight, share, field, is_flat=is_flat)


def _add_price(outer: _Set, field: _Field, price: int) -> None:
    """Add the price of a selection set to the enclosing one. (A page has nodes, or edges, or both.)"""
    if field.is_open or field.name == "pageInfo" or outer.is_flat:
        return
    if field.name in ("", "edges"):
        outer.most = max(outer.most, price)
        return
    whole = field.size * (price + (not field.name.endswith("Connection")))
    outer.prices[field.key] = max(outer.prices.get(field.key, 0), whole)


class _Values:
    """The tokens of arguments or variables, up to the closing bracket."""

    __slots__ = ("_argument", "_before", "_frames", "_measures", "_terms", "has_ids", "size")

    def __init__(self, opened: str, measures: RequestMeasures) -> None:
        self._measures = measures
        self._frames: list[list[Any]] = [[opened, 0]]
        """The open brackets, with the number of items in each."""
        self._argument = ""
        self._before = ""
        self._terms = 0
        self.size = 0
        """The page size, if it is a literal."""
        self.has_ids = False

    def take(self, token: str, kind: str) -> bool:
        """Count a token; returns whether it is the last."""
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
                self._measures.directives += 1
            return False
        if kind == "name" and len(frames) == 1 and before not in (":", "$", "@"):
            self._argument, self._terms = token, 0
            self.has_ids |= token == "ids"
        elif kind == "number" and len(frames) == 1 and self._argument in ("first", "last"):
            self.size = int(token) if token.isdigit() and len(token) < 9 else 0
        if before != "@" and self._count(innermost, before) and self._argument == "where":
            self._terms += 1
            self._measures.filter_terms = max(self._measures.filter_terms, self._terms)
        return False

    def _colon(self, innermost: list[Any]) -> None:
        if innermost[0] == "(":  # an argument or a variable
            innermost[1] += 1
            self._measures.selections = max(self._measures.selections, innermost[1])

    def _count(self, innermost: list[Any], before: str) -> bool:
        """Count a value; returns whether it is a term of a filter: a single value, or the first of a list."""
        if innermost[0] == "[":
            innermost[1] += 1
            self._measures.listed = max(self._measures.listed, innermost[1])
            if self._argument == "orderBy" and len(self._frames) == 2:
                self._measures.sort_keys = max(self._measures.sort_keys, innermost[1])
            return bool(innermost[1] == 1)
        return bool(innermost[0] == "{" and before in (":", "$"))
