"""Parses the query string of a REST request: parameters, and the grammar of `fields`.

fields=name,recent:posts[first=5;sort=-createdAt](title,comments(author(name),body))

sel  = item *("," item)
item = "*" / [alias ":"] name ["[" arg *(";" arg) "]"] ["(" sel ")"]
arg  = key "=" value            a value has no ";" or "]" unless percent-encoded once more

A list may be sent in either of the two forms that clients know: `sort=a,b` and `sort=a&sort=b` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from msgspec import Struct

from diptych.api.json import parse_json
from diptych.ask.measures import RequestMeasures
from diptych.errors import Code, Fault, Refusal
from diptych.model.operators import OPERATORS, takes_list

LIST_PARAMETERS = ("fields", "sort", "first", "last", "after", "before", "offset", "count", "where", "search")
RESERVED = (*LIST_PARAMETERS, "by", "having", "onConflict", "most", "dryRun", "deleted")
"""The names of parameters that mean no field: those of a list, and those of coming features."""
MAX_PARAMETERS = 250
_MAX_PAIRS = 2 * MAX_PARAMETERS
"""The most pairs of a name and a value: a list may have as many items as there may be parameters."""
_LISTS = tuple(f"[{name}]" for name in OPERATORS if takes_list(name))
"""How the name of a parameter with a list of values ends."""
_MAX_ARGUMENTS = 20
_DEEPEST = 200
"""Levels that the recursive parser accepts at all."""
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NAME = re.compile(r"[_A-Za-z][_0-9A-Za-z]*", re.ASCII)
_FILTER = re.compile(r"([_A-Za-z][_0-9A-Za-z]*(?:\.[_A-Za-z][_0-9A-Za-z]*)?)(?:\[([A-Za-z]+)\])?", re.ASCII)


def bad_parameter(parameter: str, message: str) -> Refusal:
    """A Refusal for a fault in the query string."""
    return Refusal(Code.BAD_REQUEST, "The query string is not valid.", [Fault(("query", parameter), message)])


def json_of(text: str, parameter: str) -> Any:
    """The JSON in a parameter."""
    try:
        return parse_json(text.encode())
    except ValueError as error:
        raise bad_parameter(parameter, f"expected JSON: {error}") from None


def parse_query(raw: str) -> dict[str, str]:
    """The parameters by name, in the order given; none may occur twice."""
    parameters, repeated = parse_lists(raw)
    check_repeated(repeated, ())
    return parameters


def check_repeated(repeated: Iterable[str], lists: Collection[str]) -> None:
    """Refuse parameters that occur several times and are no lists."""
    for name in repeated:
        if name not in lists:
            raise bad_parameter(name, "the parameter occurs twice")


def parse_lists(raw: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The parameters by name, in the order given, and the names of those that occur several times: their values are
    joined by commas. A list of an operator (`in`) is not among these names, since it is a list everywhere."""
    parameters: dict[str, str] = {}
    repeated: list[str] = []
    if raw.count("&") >= _MAX_PAIRS:
        raise _too_many(raw.count("&") + 1)
    is_plain = raw.isascii() and "%" not in raw and "+" not in raw
    for pair in filter(None, raw.split("&")):
        name, _, value = pair.partition("=")
        if not is_plain:
            name, value = _decode(name, name), _decode(value, name)
        if name in parameters:
            if not name.endswith(_LISTS):
                repeated.append(name)
            value = f"{parameters[name]},{value}"
        parameters[name] = value
    if len(parameters) > MAX_PARAMETERS:
        raise _too_many(len(parameters))
    return parameters, tuple(repeated)


def _too_many(count: int) -> Refusal:
    cause = f"The query string has {count} parameters; {MAX_PARAMETERS} are allowed."
    return Refusal(Code.TOO_COMPLEX, cause)


def _decode(text: str, name: str) -> str:
    if not text.isascii():
        raise bad_parameter(name, "characters beyond ASCII must be percent-encoded")
    if "%" not in text and "+" not in text:
        return text
    if _BAD_ESCAPE.search(text):
        raise bad_parameter(name, "'%' must be followed by two hexadecimal digits")
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeDecodeError:
        raise bad_parameter(name, "the text is not UTF-8") from None


def _decode_again(text: str) -> str:
    """Decode a value inside `fields`: the whole was decoded before, and this is what was encoded once more."""
    if _BAD_ESCAPE.search(text):
        raise bad_parameter("fields", "'%' must be followed by two hexadecimal digits")
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise bad_parameter("fields", "the text is not UTF-8") from None


def filter_name(name: str) -> tuple[str, str]:
    """A filter parameter: `total[gte]` is the field total and the operator gte; a bare name means eq. The field may be
    a member of a value object, `address.city`."""
    match = _FILTER.fullmatch(name)
    if match is None:
        raise bad_parameter(name, "there is no such parameter")
    return match[1], match[2] or "eq"


class Item(Struct, frozen=True):
    """One item of `fields`: a name with its alias, arguments and selection; the name `*` is all plain fields."""

    name: str
    label: str
    arguments: tuple[tuple[str, str], ...] = ()
    inner: tuple[Item, ...] | None = None
    bracketed: bool = False


def parse_fields(text: str) -> tuple[Item, ...]:
    parser = _Parser(text)
    items = parser.selection(0)
    if parser.at < len(text):
        raise parser.wrong("expected ',' or the end")
    return items


def measure_fields(items: tuple[Item, ...], measures: RequestMeasures) -> None:
    """Measure the selections of `fields`: nesting, number, aliases, lengths."""
    left = [(items, 0)]
    while left:
        selection, deep = left.pop()
        measures.nesting = max(measures.nesting, deep)
        measures.selections = max(measures.selections, len(selection))
        for item in selection:
            measures.aliases += item.label != item.name
            measures.string = max(measures.string, len(item.label))
            if item.inner is not None:
                left.append((item.inner, deep + 1))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def wrong(self, message: str) -> Refusal:
        return bad_parameter("fields", f"{message} at position {self.at}")

    def take(self, mark: str) -> bool:
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def selection(self, depth: int) -> tuple[Item, ...]:
        if depth > _DEEPEST:
            raise Refusal(Code.TOO_DEEP, f"fields is nested more than {_DEEPEST} levels deep.")
        items = [self.item(depth)]
        while self.take(","):
            items.append(self.item(depth))
        return tuple(items)

    def item(self, depth: int) -> Item:
        if self.take("*"):
            return Item("*", "*")
        name = label = self.name()
        if self.take(":"):
            name = self.name()
        bracketed = self.take("[")
        arguments = self.arguments() if bracketed else ()
        inner = None
        if self.take("("):
            inner = self.selection(depth + 1)
            if not self.take(")"):
                raise self.wrong("expected ',' or ')'")
        return Item(name, label, arguments, inner, bracketed)

    def name(self) -> str:
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self.wrong("expected a name")
        self.at = match.end()
        return match[0]

    def arguments(self) -> tuple[tuple[str, str], ...]:
        end = self.text.find("]", self.at)
        if end < 0:
            raise self.wrong("expected ']'")
        pairs = []
        parts = self.text[self.at : end].split(";", _MAX_ARGUMENTS)
        if len(parts) > _MAX_ARGUMENTS:
            raise self.wrong(f"expected at most {_MAX_ARGUMENTS} arguments")
        for part in parts:
            key, equals, value = part.partition("=")
            if not equals:
                raise self.wrong("expected key=value")
            pairs.append((key, _decode_again(value)))
        self.at = end + 1
        return tuple(pairs)
