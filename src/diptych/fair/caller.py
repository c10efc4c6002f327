"""The current caller: the name under which queues, permits and budgets are shared out.

    CALLER.set(caller.fairness_key or peer_name(request.peer))      once, when the caller is known
    CALLER.get()                                             wherever there is a queue, or something to meter

A caller who is signed in has a name of its own; an anonymous one is named by its address. The empty name, "", is the
service itself: work in the background, which is never limited. A task inherits the name from the task that started it,
so work that serves many callers sets it back to "".
"""

from __future__ import annotations

import hashlib
import ipaddress
from contextvars import ContextVar

from diptych.lru import memo

CALLER: ContextVar[str] = ContextVar("caller", default="")
UNKNOWN = "peer:"
_HOST, _NAME = 64, 128
"""The longest host, and the longest name, that are used as they are."""


def peer_name(peer: tuple[str, int] | None) -> str:
    """The name of an anonymous caller, by its address."""
    return host_name(peer[0]) if peer else UNKNOWN


@memo("names of hosts", 4_096, _HOST, entry_bytes=1_024)
def host_name(host: str) -> str:
    """The name of an anonymous caller, by its host. For IPv6 it is the /64 network, since one machine has all of it."""
    if len(host) > _HOST:  # not an address: all such hosts share one name
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
