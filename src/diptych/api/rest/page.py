"""The body of a REST list, from its parts, or from the bytes of its connection.

Where the database returns {"pageInfo":{…},"nodes":[…]}, the cursors are read from its short head, and the rows are
passed on as they are.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec

from diptych.api.reply import Header


class _Info(msgspec.Struct, frozen=True):
    hasNextPage: bool
    hasPreviousPage: bool
    startCursor: str | None
    endCursor: str | None


class _Head(msgspec.Struct, frozen=True):
    pageInfo: _Info
    totalCount: int | None = None


_decoder = msgspec.json.Decoder(_Head)
_NODES = b',"nodes":['
_LONGEST = 12_288
"""Longest Link header in bytes: many clients and proxies limit headers to 16 KiB. The body has the cursors."""
_PAGING = ("first", "last", "after", "before", "offset")
_ONLY_PAGING = re.compile(rf"(?:(?:{'|'.join(_PAGING)})=[^&]*(?:&|$))*").fullmatch
"""Most lists have no other parameters."""


ListParts = tuple[bytes | memoryview, str | None, str | None, bytes | None]
"""The rows of a list, separated by commas, the cursors of the next and the previous page, and the total, if any."""


def list_parts(connection: bytes) -> ListParts:
    """The parts of a list, from the bytes of its connection."""
    cut = connection.index(_NODES)
    head = _decoder.decode(connection[:cut] + b"}")
    info = head.pageInfo
    return (
        memoryview(connection)[cut + len(_NODES) : -2],
        info.endCursor if info.hasNextPage else None,
        info.startCursor if info.hasPreviousPage else None,
        None if head.totalCount is None else b"%d" % head.totalCount,
    )


def list_body(
    rows: bytes | memoryview, following: str | None, previous: str | None, total: bytes | None, size: int
) -> bytes:
    """The body of a list."""
    onward = "null" if following is None else f'"{following}"'
    back = "null" if previous is None else f'"{previous}"'
    tail = f'],"page":{{"size":{size},"next":{onward},"previous":{back}'.encode()
    count = b"" if total is None else b',"total":' + total
    return b"".join((b'{"data":[', rows, tail, count, b"}}"))


def _is_paging(name: str) -> bool:
    """Does a parameter select a page? Its name is as it was sent, and may be percent-encoded."""
    return name in _PAGING or ("%" in name and unquote(name) in _PAGING)


def _without_paging(query: str) -> str:
    """The query string without the parameters that select a page, for a URL in angle brackets."""
    others = [pair for pair in query.split("&") if pair and not _is_paging(pair.partition("=")[0])]
    return "&".join(others).replace("<", "%3C").replace(">", "%3E")


def link_header(path: str, query: str, size: int, following: str | None, previous: str | None) -> tuple[Header, ...]:
    """The Link header (RFC 8288) of a list: the same request, on the next and on the previous page."""
    if following is None and previous is None:
        return ()
    others = "" if _ONLY_PAGING(query) else _without_paging(query)
    base = f"{path}?{others}&" if others else f"{path}?"
    text = "" if following is None else f'<{base}first={size}&after={following}>; rel="next"'
    if previous is not None:
        separator = ", " if text else ""
        text += f'{separator}<{base}last={size}&before={previous}>; rel="prev"'
    header = text.encode()
    return ((b"link", header),) if len(header) <= _LONGEST else ()
