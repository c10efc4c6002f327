"""Parses JSON of clients strictly: bytes → a value, or a Refusal that says what is wrong.

The result is plain (dict, list, str, int, float, bool, None): from UTF-8, without lone surrogates, with finite numbers,
at most MAX_NESTING levels deep, of at most MAX_VALUES values, and without duplicate keys.

    {"a": {"b": 1, "b": 2}}    →    Refusal: The body is not JSON: the key 'b' occurs twice in one object.

Duplicate keys are dangerous: a check may see one value and the action another. msgspec keeps the last silently. So keys
are counted: encoded again, a text has one colon less for each key that was lost, and for nothing else, since colons
inside strings come back as they were (but for those written as `\\u003a`). Then a slower parser finds the duplicate.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from diptych.errors import Code, Refusal

MAX_NESTING = 64
"""Levels of JSON: what reads it further on is recursive."""
MAX_VALUES = 10_000
"""Values of all objects and lists of one JSON text: what reads them further on looks at each."""
_TO_COMMA = re.compile(rb'[^",]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^",]*+)*+,', re.DOTALL)
"""Everything up to the next comma outside of a string."""
_BOM = b"\xef\xbb\xbf"
HIDDEN = b"\\u003"
"""Beginning of an escaped colon in a string. (`find` is faster than `in`, which looks for a number first.)"""
_LONGEST = 100
"""Characters of a key that are quoted; a key may be as long as a body."""
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def read_json(body: bytes) -> Any:
    try:
        return parse_json(body)
    except ValueError as error:
        raise Refusal(Code.BAD_REQUEST, f"The body is not JSON: {error}.") from None


def parse_json(text: bytes) -> Any:
    """Parse a JSON text of any origin; ValueError says what is wrong. (Exceeding a limit is a Refusal.)"""
    check_commas(text)
    try:
        value = _decode(text)
    except RecursionError:
        raise too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(_reason(error, text)) from None
    check_keys(text, value, value)
    return value


def check_keys(text: bytes, value: Any, nested: Any) -> None:
    """Refuse duplicate keys in a text, and too deep nesting in a part of it.

    `value` is what was decoded from the text.
    """
    colons = text.count(b":")
    brackets = text.count(b"[") + colons + 1  # only with a colon does an object hold another level
    if brackets > MAX_NESTING:
        check_nesting(nested, brackets)
    if colons != _encode(value).count(b":") or text.find(HIDDEN) >= 0:
        json.loads(text.decode(), object_pairs_hook=_unique, parse_int=str, parse_float=str)


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Raise if one object has a duplicate key."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"the key '{key[:_LONGEST]}' occurs twice in one object")
        seen.add(key)


def _reason(error: Exception, text: bytes) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if text.startswith(_BOM):
        return "it begins with a byte order mark"
    message = str(error).removeprefix("JSON is malformed: ")
    if message == "Input data was truncated":  # also reported for half a surrogate pair, wherever it is
        return "it is not complete, or a surrogate pair in it is not"
    return message[:1].lower() + message[1:]


# limits, looked at before anyone walks through a value


def check_commas(text: bytes) -> None:
    """Refuse a text that has too many values, before it is parsed. (Commas in strings are no values.)"""
    if len(text) < MAX_VALUES or text.count(b",") < MAX_VALUES:
        return
    commas = at = 0
    while part := _TO_COMMA.match(text, at):
        at = part.end()
        commas += 1
        if commas >= MAX_VALUES:
            raise Refusal(Code.TOO_COMPLEX, f"The JSON holds more than {MAX_VALUES} values.")


def check_nesting(value: Any, brackets: int) -> None:
    """Refuse JSON that is nested too deeply; `brackets` opened in its text, and few cannot nest deep."""
    if brackets <= MAX_NESTING:
        return
    deep = -1
    level: list[Any] = [value]
    while level:
        deep += 1
        level = [inner for part in level if isinstance(part, dict | list) for inner in _inside(part)]
    if deep > MAX_NESTING:
        raise Refusal(Code.TOO_DEEP, f"The JSON is nested {deep} levels deep; {MAX_NESTING} are allowed.")


def _inside(part: dict[str, Any] | list[Any]) -> list[Any]:
    """What a value holds; what is empty holds nothing, and is a level nonetheless."""
    return (list(part.values()) if isinstance(part, dict) else part) or [None]


def too_deep() -> Refusal:
    """JSON that is nested too deeply even to be parsed."""
    return Refusal(Code.TOO_DEEP, f"The JSON is nested too deeply to be read; {MAX_NESTING} levels are allowed.")
