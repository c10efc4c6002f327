"""The client address behind trusted proxies: `Forwarded` (RFC 7239), `X-Forwarded-For` and `X-Forwarded-Host`.

    Proxies("10.0.0.0/8").seen("10.0.0.1", {b"forwarded": b'for="[2001:db8::7]:4711";host=x'})  →  ("2001:db8::7", "x")

Each proxy appends the address of its peer, so the headers are read from the end: the first address that is not a
trusted proxy is the client. Reading stops at an element that cannot be parsed: a client without an address (`unknown`,
`_hidden`) counts as the proxy that added it, since such names may change with every request. Most proxies set one of
the two headers and pass on the other as the client sent it. So if both are present they must name the same client, or
neither is trusted.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping

from diptych.lru import LRUCache, memo

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t -~\x80-\xff])*"'
_PAIR = re.compile(rf"[ \t]*+(?:({_TOKEN})=({_TOKEN}|{_QUOTED}))?[ \t]*+([;,]|\Z)")  # possessive, so it is linear
_NODE = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+;=%:\[\]-]+")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PEERS, _ADDRESS = 1_024, 1_024
"""The most cached peers, and the bytes of one of them."""


class Proxies:
    """The trusted proxies: a comma-separated list of addresses and networks, or `*` for all."""

    def __init__(self, text: str) -> None:
        entries = [entry.strip() for entry in text.split(",") if entry.strip()]
        self._networks = None if entries == ["*"] else [ipaddress.ip_network(entry) for entry in entries]
        self._known: LRUCache[bool] = LRUCache("trusted peers", _PEERS, _PEERS * _ADDRESS)

    def _trusts(self, address: Address) -> bool:
        if self._networks is None:
            return True
        trusted = self._known.get(address)
        if trusted is None:
            trusted = any(address in network for network in self._networks)
            self._known.put(address, trusted, _ADDRESS // 2)
        return trusted

    def seen(self, peer: str, headers: Mapping[bytes, bytes]) -> tuple[str, str]:
        """The client address behind a peer, and the host it requested, if a trusted proxy names one.

        A peer that is not trusted is the client itself.
        """
        address = _address(peer)
        if address is None or not self._trusts(address):
            return peer, ""
        claims = [claim for claim in (self._forwarded(address, headers), self._x_forwarded(address, headers)) if claim]
        if not claims or len({client for client, _ in claims}) > 1:
            return peer, ""
        hosts = {host for _, host in claims} - {""}
        return str(claims[0][0]), hosts.pop() if len(hosts) == 1 else ""

    def _forwarded(self, peer: Address, headers: Mapping[bytes, bytes]) -> tuple[Address, str] | None:
        """Client and host by `Forwarded`; None if it is absent or malformed."""
        sent = headers.get(b"forwarded")
        elements = None if sent is None else read_forwarded(sent.decode("latin-1"))
        if elements is None:
            return None
        return self._client(
            peer, ((_node(element.get("for", "")), element.get("host", "")) for element in elements[::-1])
        )

    def _x_forwarded(self, peer: Address, headers: Mapping[bytes, bytes]) -> tuple[Address, str] | None:
        sent = headers.get(b"x-forwarded-for")
        if sent is None:
            return None
        nodes = [node.strip() for node in reversed(sent.decode("latin-1").split(","))]
        host = headers.get(b"x-forwarded-host", b"").decode("latin-1").strip()
        return self._client(peer, ((_node(node) or _address(node), host) for node in nodes))

    def _client(self, peer: Address, nodes: Iterable[tuple[Address | None, str]]) -> tuple[Address, str]:
        """The first address that is not trusted, or the last that can be read, and the host beside it."""
        client, named = peer, ""
        for address, host in nodes:
            named = host
            if address is None:
                break
            client = address
            if not self._trusts(client):
                break
        return client, named if _HOST.fullmatch(named) else ""


def read_forwarded(text: str) -> list[dict[str, str]] | None:
    """The elements of a `Forwarded` header, as dicts by lower-case parameter name; None if it is malformed."""
    elements: list[dict[str, str]] = [{}]
    for name, value, end in _pairs(text):
        if name is None or name in elements[-1]:
            return None
        if name:
            elements[-1][name] = value
        if end == ",":
            elements.append({})
    return [element for element in elements if element]


def _pairs(text: str) -> Iterator[tuple[str | None, str, str]]:
    """Name, value and delimiter of every parameter; the name is "" for an empty one and None for a malformed one."""
    position = 0
    while True:
        match = _PAIR.match(text, position)
        if match is None:
            yield None, "", ""
            return
        name, value, end = match[1] or "", match[2] or "", match[3]
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        yield name.lower(), value, end
        position = match.end()
        if not end:
            return


def _node(text: str) -> Address | None:
    """The address of a node, with or without a port (RFC 7239, §6); None if it names none."""
    match = _NODE.fullmatch(text)
    return _address(match[1] or match[2]) if match else None


@memo("addresses of clients", 4_096, 64, entry_bytes=_ADDRESS)
def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text) if len(text) <= 64 else None
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
