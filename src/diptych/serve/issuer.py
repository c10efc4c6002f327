"""The issuer as a request sees it: the public address, or the loopback address by which the request came."""

from __future__ import annotations

from diptych.errors import Code, Refusal
from diptych.identity.issuer import is_local_host
from diptych.serve.http.request import Request


def issuer_of(base_url: str, request: Request) -> str:
    """The issuer. Without `base_url`, the Host header is trusted only if it names this machine."""
    if base_url:
        return base_url
    host = request.headers.get(b"host", b"").decode("latin-1")
    if not is_local_host(host):
        raise Refusal(Code.UNAVAILABLE, "The service does not know its public address: set base_url.")
    return f"http://{host}{request.root}"
