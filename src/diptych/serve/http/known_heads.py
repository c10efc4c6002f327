"""An LRU cache of request heads: a client sends the same headers with every request.

The lines of a head after the request line are looked up by their bytes. Those that the parser and `head_rules.py` have
accepted once are accepted again, so only the request line is parsed, by a stricter pattern than the parser's. What does
not match (another method, a body that has not arrived or is followed by more, an unusual target) goes to the parser.

Mostly the head is that of the request before on the same connection: then it is compared, and not looked up. Only
heads with traits are remembered for that, since other ones may have very many headers, and connections last long.
"""

from __future__ import annotations

import re

from msgspec import Struct

from diptych.lru import LRUCache
from diptych.serve.http.head_rules import HeaderList
from diptych.serve.http.head_traits import HeadTraits, traits_of

_ENTRIES, _BYTES = 1_000, 8 << 20
_LONGEST = 1_024
"""Bytes up to which the lines of a head are cached."""
_PER_HEADER = 250
_CHARACTERS = rb"/[A-Za-z0-9_\-.~!$&'()*+,;=:@/%?\[\]]{0,4096}"
"""Those of a target. (A class like `\\w` among them would take longer.)"""
_is_target = re.compile(b" " + _CHARACTERS).fullmatch
_LINE = re.compile(b"(GET|HEAD|POST|PUT|PATCH|DELETE) (" + _CHARACTERS + rb") HTTP/1\.1(?=\r\n)")
_VERSION, _END = b" HTTP/1.1", b"\r\n\r\n"


class KnownHead(Struct, frozen=True, eq=False):
    """The headers of a request that took the direct path."""

    method: str
    line: bytes
    """The method, as it begins the request line."""
    rest: bytes
    """What is behind the target, up to the body."""
    headers: HeaderList
    by_name: dict[bytes, bytes]
    length: int
    """Bytes of the body."""
    traits: HeadTraits | None

    def target(self, data: bytes) -> bytes | None:
        """The target of a request, if the data is exactly one with this head."""
        begin, end = len(self.line), len(data) - self.length - len(self.rest)
        if end > begin and data.startswith(self.rest, end) and data.startswith(self.line):
            return data[begin + 1 : end] if _is_target(data, begin, end) else None
        return None


KnownRequest = tuple[bytes, KnownHead]
"""A whole request with a known head: its URL and its head."""


class KnownHeads:
    """The heads that are known to one server process."""

    __slots__ = ("_heads",)

    def __init__(self) -> None:
        self._heads: LRUCache[KnownHead] = LRUCache("request heads", _ENTRIES, _BYTES)

    def find(self, data: bytes, last: KnownHead | None = None) -> KnownRequest | None:
        """The request, if the data is exactly one with a known head; `last` is the head that it probably has."""
        if last is not None and (target := last.target(data)) is not None:
            return target, last
        line = _LINE.match(data)
        if line is None:
            return None
        begin = line.end()
        end = data.find(_END, begin, begin + _LONGEST + 4)
        head = self._heads.get(data[begin:end]) if end > 0 else None
        if head is None or head.length != len(data) - end - 4:
            return None
        method, url = line.groups()
        return (url, head) if method == head.line else None

    def keep(self, data: bytes, method: bytes, headers: HeaderList, by_name: dict[bytes, bytes]) -> None:
        """Remember the head of a request that the parser has accepted, and that is all of the data."""
        line = _LINE.match(data)
        if line is None:
            return
        begin = line.end()
        end = data.find(_END, begin, begin + _LONGEST + 4)
        lines = data[begin:end]
        if end < 0 or lines.count(b"\r\n") != len(headers) or lines.count(b"\n") != len(headers):
            return  # not one line for each header
        length = len(data) - end - 4
        if int(by_name.get(b"content-length", b"0")) == length:
            rest, traits = b"".join((_VERSION, lines, _END)), traits_of(method, by_name)
            head = KnownHead(method.decode("ascii"), method, rest, headers, by_name, length, traits)
            self._heads.put(lines, head, 4 * len(lines) + _PER_HEADER * len(headers))
