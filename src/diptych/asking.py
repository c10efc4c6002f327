"""Who asks: the name under which everything that is shared is shared out fairly.

    ASKER.set(caller.asker or peer_name(request.peer))      once, when the caller is known
    ASKER.get()                                             wherever there is a line to stand in, or something to meter

A caller who is signed in has a name of its own; whoever is not is known by the address that it comes from. Nobody, "",
is the service itself: work in the background, which is never limited. A task inherits the name of the task that started
it, so work that serves many sets it back to nobody.
"""

from __future__ import annotations

import hashlib
import ipaddress
from contextvars import ContextVar

from diptych.lru import memo

ASKER: ContextVar[str] = ContextVar("asker", default="")
UNKNOWN = "peer:"
_HOST, _NAME = 64, 128
"""Characters of a host, and of a name, that are kept as they are."""


def peer_name(peer: tuple[str, int] | None) -> str:
    """The name of whoever comes from an address."""
    return host_name(peer[0]) if peer else UNKNOWN


@memo("names of hosts", 4_096, _HOST, each=1_024)
def host_name(host: str) -> str:
    """The same of a host. Of IPv6, the network: one machine has all the addresses of a /64."""
    if len(host) > _HOST:  # no address: whatever sends it shares one name
        return UNKNOWN
    if ":" in host:
        try:
            address = ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return UNKNOWN + host
        mapped = address.ipv4_mapped
        host = str(mapped) if mapped else str(ipaddress.IPv6Network((address, 64), strict=False))
    return UNKNOWN + host


def short_name(name: str) -> str:
    """A name of bounded length: a long one is replaced by its digest."""
    return name if len(name) <= _NAME else "digest:" + hashlib.blake2b(name.encode(), digest_size=32).hexdigest()
