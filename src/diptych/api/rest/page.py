"""The body of a REST list, from its parts, or from the bytes of its connection.

Where the database returns {"pageInfo":{…},"nodes":[…]}, the cursors are read from its short head, and the rows are
passed on as they are.
"""

from __future__ import annotations

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
    count = b"" if total is None else b',"total":%b' % total
    tail = b'],"page":{"size":%d,"next":%b,"previous":%b%b}}' % (size, _quoted(following), _quoted(previous), count)
    return b"".join((b'{"data":[', rows, tail))


def _quoted(cursor: str | None) -> bytes:
    return b"null" if cursor is None else b'"' + cursor.encode() + b'"'


def _is_paging(name: str) -> bool:
    """Does a parameter select a page? Its name is as it was sent, and may be percent-encoded."""
    return name in _PAGING or ("%" in name and unquote(name) in _PAGING)


def link_header(path: str, query: str, size: int, following: str | None, previous: str | None) -> tuple[Header, ...]:
    """The Link header (RFC 8288) of a list: the same request, on the next and on the previous page."""
    if following is None and previous is None:
        return ()
    other_parameters = "&".join([pair for pair in query.split("&") if pair and not _is_paging(pair.partition("=")[0])])
    other_parameters = other_parameters.replace("<", "%3C").replace(">", "%3E")
    base = f"{path}?{other_parameters}&" if other_parameters else f"{path}?"
    links = []
    if following is not None:
        links.append(f'<{base}first={size}&after={following}>; rel="next"')
    if previous is not None:
        links.append(f'<{base}last={size}&before={previous}>; rel="prev"')
    text = ", ".join(links).encode()
    return ((b"link", text),) if len(text) <= _LONGEST else ()
