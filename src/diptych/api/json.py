"""JSON as clients send it: the bytes of a body → a value, or a Refusal that says what is wrong with them.

What comes out is plain (dict, list, str, int, float, bool, None): in UTF-8, without lone surrogates, with finite
numbers, at most MAX_NESTING levels deep, of at most MAX_VALUES values, and no object of it had a key twice.

    {"a": {"b": 1, "b": 2}}    →    Refusal: The body is not JSON: the key 'b' stands twice in one object.

Twice a key is a trap: who checks may see one value and who acts another. msgspec keeps the last and says nothing,
so that the keys are counted: written again, a text has one colon less for each key that was lost, and for nothing
else, since colons inside strings come back as they were (but for those that hid as `\\u003a`). A key that was
lost is then looked for by a slower parser, which can tell its name.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from diptych.api.limits import MAX_NESTING, check_commas, check_nesting, too_deep
from diptych.errors import Code, Refusal

_BOM = b"\xef\xbb\xbf"
HIDDEN = b"\\u003"
"""What a colon may begin with that hides in a string. (`find` is faster than `in`, which looks for a number first.)"""
_LONGEST = 100
"""Characters of a key that are told; a key may be as long as a body."""
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def read_json(body: bytes) -> Any:
    """The value of a body."""
    try:
        return parse_json(body)
    except ValueError as error:
        raise Refusal(Code.BAD_REQUEST, f"The body is not JSON: {error}.") from None


def parse_json(text: bytes) -> Any:
    """The value of a JSON text, wherever it stood; a ValueError says what is wrong. (Too much is a Refusal.)"""
    check_commas(text)
    try:
        found = _decode(text)
    except RecursionError:
        raise too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(_reason(error, text)) from None
    check_keys(text, found, found)
    return found


def check_keys(text: bytes, found: Any, nested: Any) -> None:
    """Refuse an object in which a key stands twice, and what is nested too deeply in a part of it.

    `found` is what was decoded of the text.
    """
    colons = text.count(b":")
    brackets = text.count(b"[") + colons + 1  # only with a colon does an object hold another level
    if brackets > MAX_NESTING:
        check_nesting(nested, brackets)
    if colons != _encode(found).count(b":") or text.find(HIDDEN) >= 0:
        json.loads(text.decode(), object_pairs_hook=_unique, parse_int=str, parse_float=str)


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Look at the keys of one object."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"the key '{key[:_LONGEST]}' stands twice in one object")
        seen.add(key)


def _reason(error: Exception, text: bytes) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if text.startswith(_BOM):
        return "it begins with a byte order mark"
    told = str(error).removeprefix("JSON is malformed: ")
    if told == "Input data was truncated":  # said of half a surrogate pair too, wherever it is
        return "it is not complete, or a surrogate pair in it is not"
    return told[:1].lower() + told[1:]
