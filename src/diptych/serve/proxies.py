"""Who sent a request, as trusted proxies tell: `Forwarded` (RFC 7239) and `X-Forwarded-For`, `X-Forwarded-Host`.

    Proxies("10.0.0.0/8").seen("10.0.0.1", {b"forwarded": b'for="[2001:db8::7]:4711";host=x'})  →  ("2001:db8::7", "x")

Each proxy adds who came to it at the end, so the headers are read from there, for as long as the one who tells is
trusted: the first address that is no proxy of ours is the client. What cannot be read ends the way where it stands: a
client without an address (`unknown`, `_hidden`) counts as the proxy that told of it, since such names may be new with
each request. Most proxies set one of the two headers and pass on the other as the client sent it. So where both are
there, they must name the same client; else neither is believed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping

from diptych.lru import LRUCache, memo

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t -~\x80-\xff])*"'
_PAIR = re.compile(rf"[ \t]*+(?:({_TOKEN})=({_TOKEN}|{_QUOTED}))?[ \t]*+([;,]|\Z)")  # possessive, so it is linear
_NODE = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+;=%:\[\]-]+")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PEERS, _ADDRESS = 1_024, 1_024
"""Peers that are remembered, and bytes of each of them."""


class Proxies:
    """The proxies that are trusted: addresses and networks with commas between them, or `*` for all."""

    def __init__(self, text: str) -> None:
        given = [each.strip() for each in text.split(",") if each.strip()]
        self._networks = None if given == ["*"] else [ipaddress.ip_network(each) for each in given]
        self._known: LRUCache[bool] = LRUCache("trusted peers", _PEERS, _PEERS * _ADDRESS)

    def _trusts(self, address: Address) -> bool:
        if self._networks is None:
            return True
        found = self._known.get(address)
        if found is None:
            found = any(address in network for network in self._networks)
            self._known.put(address, found, _ADDRESS // 2)
        return found

    def seen(self, peer: str, headers: Mapping[bytes, bytes]) -> tuple[str, str]:
        """The address of the client behind a peer, and the host that it asked for, if a proxy says so.

        A peer that is not trusted is the client itself.
        """
        address = _address(peer)
        if address is None or not self._trusts(address):
            return peer, ""
        told = [each for each in (self._forwarded(address, headers), self._x_forwarded(address, headers)) if each]
        if not told or len({client for client, _ in told}) > 1:
            return peer, ""
        hosts = {host for _, host in told} - {""}
        return str(told[0][0]), hosts.pop() if len(hosts) == 1 else ""

    def _forwarded(self, peer: Address, headers: Mapping[bytes, bytes]) -> tuple[Address, str] | None:
        """What `Forwarded` says; None if it is not there, or not well-formed."""
        sent = headers.get(b"forwarded")
        elements = None if sent is None else read_forwarded(sent.decode("latin-1"))
        if elements is None:
            return None
        client, host = peer, ""
        for element in reversed(elements):
            host = element.get("host", "")
            found = _node(element.get("for", ""))
            if found is None:
                break
            client = found
            if not self._trusts(client):
                break
        return client, host if _HOST.fullmatch(host) else ""

    def _x_forwarded(self, peer: Address, headers: Mapping[bytes, bytes]) -> tuple[Address, str] | None:
        sent = headers.get(b"x-forwarded-for")
        if sent is None:
            return None
        client = peer
        for each in reversed(sent.decode("latin-1").split(",")):
            found = _node(each.strip()) or _address(each.strip())
            if found is None:
                break
            client = found
            if not self._trusts(client):
                break
        host = headers.get(b"x-forwarded-host", b"").decode("latin-1").strip()
        return client, host if _HOST.fullmatch(host) else ""


def read_forwarded(text: str) -> list[dict[str, str]] | None:
    """The elements of a `Forwarded` header, each by the lower-case names of its parameters; None if it has no form."""
    found: list[dict[str, str]] = [{}]
    for name, value, end in _pairs(text):
        if name is None or name in found[-1]:
            return None
        if name:
            found[-1][name] = value
        if end == ",":
            found.append({})
    return [element for element in found if element]


def _pairs(text: str) -> Iterator[tuple[str | None, str, str]]:
    """Each parameter with what ends it; an empty one is "", and what has no form is None."""
    place = 0
    while True:
        found = _PAIR.match(text, place)
        if found is None:
            yield None, "", ""
            return
        name, value, end = found[1] or "", found[2] or "", found[3]
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        yield name.lower(), value, end
        place = found.end()
        if not end:
            return


def _node(text: str) -> Address | None:
    """The address of a node, with or without a port (RFC 7239, §6); None if it has none."""
    found = _NODE.fullmatch(text)
    return _address(found[1] or found[2]) if found else None


@memo("addresses of clients", 4_096, 64, each=_ADDRESS)
def _address(text: str) -> Address | None:
    try:
        found = ipaddress.ip_address(text) if len(text) <= 64 else None
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
