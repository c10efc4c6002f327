"""Checks the addresses of webhooks, so that nobody can reach the network behind the service (SSRF).

    parts_of("https://example.org/hooks")              Endpoint("https", "example.org", 443, "/hooks", "example.org")
    await Resolver(allowed).resolve(endpoint)          "93.184.215.14", if that is a public address

A name is resolved once, and the connection is made to exactly the address that was checked: a name that resolves to
another address a moment later (DNS rebinding) gains nothing. An IPv6 address that embeds an IPv4 address is judged by
that one. If any address of a name is refused, the name is.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LONGEST = 2_000
"""Characters of the address of a webhook."""
_URL = re.compile(r"https?://[!-~]+")
_HOST = re.compile(r"(?=.{1,253}$)(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_LOOKUPS = 16
"""Names that are resolved at a time."""
_REFUSED = tuple(
    ipaddress.ip_network(text)
    for text in (
        # special-purpose addresses of IPv4 (RFC 6890 and its registry)
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        # of IPv6: all that is not global unicast (2000::/3), and in it tunnels, documentation and benchmarks
        *("::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16"),
    )
)
_EMBEDDING = (ipaddress.IPv6Network("::ffff:0:0/96"), ipaddress.IPv6Network("64:ff9b::/96"))
"""Networks whose last 32 bits are an IPv4 address: mapped addresses and NAT64."""
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


class RefusedAddress(ValueError):
    """An address to which no webhook may be sent, and why."""


class Endpoint(Struct, frozen=True):
    """The parts of the address of a webhook."""

    scheme: str
    host: str
    port: int
    path: str
    authority: str
    """The Host header."""


def parts_of(url: str) -> Endpoint:
    """The parts of an address; RefusedAddress if it is none that a webhook may have."""
    if len(url) > LONGEST or not _URL.fullmatch(url) or "\\" in url:
        raise RefusedAddress(f"expected an address https://…, of at most {LONGEST} visible ASCII characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise RefusedAddress("it is not a valid address") from None
    host = (parts.hostname or "").rstrip(".")
    if "@" in parts.netloc or parts.fragment or "#" in url:
        raise RefusedAddress("an address has no user, no password and no fragment")
    if not _literal(host) and not _HOST.fullmatch(host):
        raise RefusedAddress("it has no valid host")
    if port == 0:
        raise RefusedAddress("it has no valid port")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), path, parts.netloc)


def is_public(address: Address) -> bool:
    """Is it an address on the internet, and not one of this machine or of a network that it is in?"""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id:
            return False
        number = int(address)
        if any(address in network for network in _EMBEDDING):
            return is_public(ipaddress.IPv4Address(number & 0xFFFF_FFFF))
        if (number >> 32) & 0xFFFF_FFFF in _ISATAP:
            return False
    return address.is_global and not any(
        address in network for network in _REFUSED if network.version == address.version
    )


Lookup = Callable[[str, int], Iterable[str]]


def system_lookup(host: str, port: int) -> list[str]:
    """All addresses of a name, as this machine resolves it."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Resolver:
    """Resolves the hosts of webhooks to addresses that may be connected to.

    `allowed` are networks that may be reached although they are not public, also without TLS, or `*`.
    """

    def __init__(self, allowed: str = "", lookup: Lookup = system_lookup) -> None:
        texts = [text.strip() for text in allowed.split(",") if text.strip()]
        self._allows_all = texts == ["*"]
        self._allowed = [] if self._allows_all else [ipaddress.ip_network(text) for text in texts]
        self._lookup = lookup
        self._threads: ThreadPoolExecutor | None = None

    async def resolve(self, endpoint: Endpoint) -> str:
        """The address to connect to; RefusedAddress if there is none, OSError if the name does not resolve."""
        literal = _literal(endpoint.host)
        if literal is None:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_LOOKUPS, "webhook-names")
            loop = asyncio.get_running_loop()
            texts = await loop.run_in_executor(self._threads, self._lookup, endpoint.host, endpoint.port)
            addresses: list[Any] = [_parsed(text) for text in texts]
        else:
            addresses = [literal]
        if not addresses:
            raise OSError("the name has no address")
        for address in addresses:
            self.check(address, endpoint.scheme)
        return str(addresses[0])

    def check(self, address: Address, scheme: str) -> None:
        """Raise RefusedAddress unless it may be connected to by this scheme."""
        if self._allows_all or any(address in network for network in self._allowed):
            return
        if not is_public(address):
            raise RefusedAddress("its host is not on the public internet")
        if scheme != "https":
            raise RefusedAddress("expected https://…")

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _parsed(text: str) -> Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise RefusedAddress("its host resolves to no IP address") from None


def _literal(host: str) -> Address | None:
    """The address that a host is, in any form that resolvers take: 127.1, 0x7f000001 and 2130706433 are 127.0.0.1."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if re.fullmatch(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}", host):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            raise RefusedAddress("it has no valid host") from None
    return None
