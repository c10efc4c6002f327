"""Redirect URIs of clients: which may be registered, and which match.

A URI is compared as it was registered, so it must be complete. Its scheme is `https`, `http` on a loopback host, or the
private one of an app on the person's device, which has a dot: `org.example.app:/done` (RFC 8252, §7).
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from diptych.errors import Code, Refusal

_CHARACTERS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()+,;=%-]{1,2000}")
"""Characters of a URI (RFC 3986), without `#` and `*`."""
_LITERAL = ("127.0.0.1", "::1")
_LOOPBACK = (*_LITERAL, "localhost")
_PRIVATE = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+")


def checked_redirect(uri: str) -> str:
    """A redirect URI that may be registered; a Refusal with the reason otherwise."""
    reason = _fault(uri)
    if reason is not None:
        raise Refusal(Code.BAD_USER_INPUT, f"{uri[:200]!r} cannot be a redirect URI: {reason}.")
    return uri


def _fault(uri: str) -> str | None:
    if "#" in uri:
        return "it has a fragment"
    if "*" in uri:
        return "it has a wildcard, and addresses are compared as they are"
    if not _CHARACTERS.fullmatch(uri):
        return "it is no URI"
    try:
        parts = urlsplit(uri)
        return _fault_of(parts, parts.port)
    except ValueError:
        return "it is no URI"


def _fault_of(parts: SplitResult, port: int | None) -> str | None:
    if port == 0:
        return "it has no port that anyone could listen on"
    if "@" in parts.netloc:
        return "it names a user"
    if parts.scheme in ("http", "https") and not parts.hostname:
        return "it is not absolute"
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return None
    if parts.scheme == "http":
        return "http is for 127.0.0.1, [::1] and localhost alone; use https"
    if not parts.scheme:
        return "it is not absolute"
    return None if _PRIVATE.fullmatch(parts.scheme) else "use https, or a scheme with a dot such as org.example.app"


def matches_redirect(registered: str, requested: str) -> bool:
    """Does a redirect URI equal a registered one? On a loopback address the port is free (RFC 8252, §7.3)."""
    if registered == requested:
        return True
    try:
        one, other = urlsplit(registered), urlsplit(requested)
        loopback = one.scheme == other.scheme == "http" and one.hostname in _LITERAL
        port = f":{other.port}" if other.port is not None else ""
    except ValueError:
        return False
    host = f"[{one.hostname}]" if one.hostname == "::1" else one.hostname
    return loopback and requested == f"http://{host}{port}{registered.removeprefix(f'http://{one.netloc}')}"
