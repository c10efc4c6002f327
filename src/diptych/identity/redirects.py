"""Addresses to which the browser of a person is led back, with a code that opens the account.

An address is compared as it was registered, so it must be whole. It is one of `https`, of this machine (`http` on a
loopback host), or of an app on the person's device, whose scheme has a dot: `org.example.app:/done` (RFC 8252, §7).
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from diptych.errors import Code, Refusal

_CHARACTERS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()+,;=%-]{1,2000}")
"""Those of a URI (RFC 3986), without `#` and `*`."""
_LITERAL = ("127.0.0.1", "::1")
_LOOPBACK = (*_LITERAL, "localhost")
_PRIVATE = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+")


def checked_redirect(uri: str) -> str:
    """An address to lead back to; refused, with the reason, if it is not safe."""
    reason = _fault(uri)
    if reason is not None:
        raise Refusal(Code.BAD_USER_INPUT, f"{uri[:200]!r} cannot be led back to: {reason}.")
    return uri


def _fault(uri: str) -> str | None:
    if "#" in uri:
        return "it has a fragment"
    if "*" in uri:
        return "it has a wildcard, and addresses are compared as they are"
    if not _CHARACTERS.fullmatch(uri):
        return "it is no URI"
    try:
        found = urlsplit(uri)
        return _fault_of(found, found.port)
    except ValueError:
        return "it is no URI"


def _fault_of(found: SplitResult, port: int | None) -> str | None:
    if port == 0:
        return "it has no port that anyone could listen on"
    if "@" in found.netloc:
        return "it names a user"
    if found.scheme in ("http", "https") and not found.hostname:
        return "it is not absolute"
    if found.scheme == "https" or (found.scheme == "http" and found.hostname in _LOOPBACK):
        return None
    if found.scheme == "http":
        return "http is for 127.0.0.1, [::1] and localhost alone; use https"
    if not found.scheme:
        return "it is not absolute"
    return None if _PRIVATE.fullmatch(found.scheme) else "use https, or a scheme with a dot such as org.example.app"


def leads_to(registered: str, given: str) -> bool:
    """Equal, character by character; on a loopback address the port is free (RFC 8252, §7.3)."""
    if registered == given:
        return True
    try:
        one, other = urlsplit(registered), urlsplit(given)
        loopback = one.scheme == other.scheme == "http" and one.hostname in _LITERAL
        port = f":{other.port}" if other.port is not None else ""
    except ValueError:
        return False
    host = f"[{one.hostname}]" if one.hostname == "::1" else one.hostname
    return loopback and given == f"http://{host}{port}{registered.removeprefix(f'http://{one.netloc}')}"
