"""Parses the conditional and preference headers of a write.

    If-Match: "12.0123abcd", W/"13.89ef"    versions         →  (12, 13)
    Prefer: return=minimal; x=1, wait=5     preferences      →  {"return=minimal", "wait=5"}
    Idempotency-Key: "8e03978e"             idempotency_key  →  "8e03978e"

No row is read here: `versions` become part of the statement that writes, so that no update is lost.
"""

from __future__ import annotations

import re

from diptych.errors import Code, Refusal
from diptych.lru import memo

NO_VERSION = (-1,)
"""Versions of a condition that no row meets."""
_MOST = 100
"""Tags of one header that are parsed. More may be refused, which never loses an update."""
_TAGS = re.compile(rb'(?:[ \t,]*+(?:W/)?"[\x21\x23-\x7e\x80-\xff]*+"[ \t]*+(?=,|\Z))++[ \t,]*+')
_TAG = re.compile(rb'"([^"]*)"')
_VERSION = re.compile(rb"(0|[1-9][0-9]{0,9})\..*", re.DOTALL)

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = r'"(?:[^"\\]++|\\.)*+"'
# Not all is possessive: Python before 3.11.5 goes on in the middle of what is repeated so and fails there.
_ITEM = re.compile(rf'[\s,]*+((?:[^,"]++|{_QUOTED})+)')
_PREFERENCE = re.compile(rf"({_TOKEN})\s*+(?:=\s*+({_TOKEN}|{_QUOTED})?\s*+)?(?:;.*)?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

_BARE_KEY = re.compile(rb"[!#-~][!-~]{0,254}")
_QUOTED_KEY = re.compile(rb'"((?:[!#-\[\]-~]|\\["\\])+)"')


def versions(if_match: bytes | None, if_none_match: bytes | None) -> tuple[int, ...] | None:
    """The versions of which a row must have one to be written; None if it may have any.

    Only the version in front of a tag counts; a tag without one, and a header that is not a list of tags, match
    nothing. `If-None-Match: *` requires that there is no row, which is never so for a row that is written.
    """
    if if_none_match is not None and if_none_match.strip() == b"*":
        return NO_VERSION
    if if_match is None or if_match.strip() == b"*":
        return None
    if not _TAGS.fullmatch(if_match):
        return NO_VERSION
    matches = (_VERSION.fullmatch(tag) for tag in _TAG.findall(if_match)[:_MOST])
    wanted = dict.fromkeys(int(match[1]) for match in matches if match)
    return tuple(number for number in wanted if number < 2**31) or NO_VERSION


@memo("Prefer headers", 256, entry_bytes=16 << 10)
def preferences(header: bytes | None) -> frozenset[str]:
    """The preferences of a client (RFC 7240), in lower case: `return=minimal`, or a bare name.

    Of a preference that occurs twice the first counts; parameters, malformed items, and those after very many are
    ignored.
    """
    text = (header or b"").decode("latin-1").lower()
    values: dict[str, str] = {}
    at = 0
    for _ in range(_MOST):
        item = _ITEM.match(text, at)
        if item is None:
            break
        at = item.end()
        if match := _PREFERENCE.fullmatch(item[1].strip()):
            values.setdefault(match[1], _unquoted(match[2] or ""))
    return frozenset(f"{name}={value}" if value else name for name, value in values.items())


def _unquoted(value: str) -> str:
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value


def idempotency_key(header: bytes | None) -> str | None:
    """The Idempotency-Key of a request: 1 to 255 visible characters, with or without quotation marks."""
    if header is None:
        return None
    text = header.strip(b" \t")
    quoted = _QUOTED_KEY.fullmatch(text)
    key = re.sub(rb"\\(.)", rb"\1", quoted[1]) if quoted else text
    if not (quoted or _BARE_KEY.fullmatch(text)) or len(key) > 255:
        raise Refusal(Code.BAD_REQUEST, "Idempotency-Key has to be 1 to 255 visible ASCII characters.")
    return key.decode("ascii")
