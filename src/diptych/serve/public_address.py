"""The public address of the service: its issuer, the prefix of its paths, and where its metadata is.

It is `base_url`, or, for a service without one, the loopback address by which a request came.
"""

from __future__ import annotations

from diptych.api.reply import Reply
from diptych.errors import Code, Refusal, StartError
from diptych.identity.issuer import ascii_address, is_local_host, path_of
from diptych.model.model import Model
from diptych.model.read.name_clashes import RESERVED_PATHS
from diptych.serve.endpoint.oauth_paths import DOCUMENTS, RESOURCE
from diptych.serve.http.request import Request

_CHALLENGE = b"www-authenticate"


def with_resource_metadata(reply: Reply, base_url: str, request: Request) -> Reply:
    """A challenge for a bearer token, with the address of the document that says who issues them (RFC 9728, §5.1)."""
    sent = dict(reply.headers).get(_CHALLENGE, b"")
    if not sent.startswith(b"Bearer"):
        return reply
    try:
        address = f"{ascii_address(issuer_of(base_url, request))}{RESOURCE}"
    except Refusal:
        return reply
    more = f'resource_metadata="{address}"'.encode()
    others = tuple(pair for pair in reply.headers if pair[0] != _CHALLENGE)
    challenge = (_CHALLENGE, sent + (b", " if b" " in sent else b" ") + more)
    return Reply(reply.status, (*others, challenge), reply.body, reply.stream)


def issuer_of(base_url: str, request: Request) -> str:
    """The issuer. Without `base_url`, the Host header is trusted only if it names this machine."""
    if base_url:
        return base_url
    host = request.headers.get(b"host", b"").decode("latin-1")
    if not is_local_host(host):
        raise Refusal(Code.UNAVAILABLE, "The service does not know its public address: set base_url.")
    return f"http://{host}{request.root}"


def known_issuer(base_url: str, request: Request) -> str:
    """The issuer of a service for a request, or "" if it is not known."""
    try:
        return issuer_of(base_url, request)
    except Refusal:
        return ""


def prefix_of(model: Model, base_url: str) -> str:
    """The path of the public address, which is the prefix of all paths in responses."""
    prefix = path_of(base_url)
    first = prefix[1:].partition("/")[0]
    if first in RESERVED_PATHS or any(resource.path == first for resource in model.resources.values()):
        raise StartError(f"The path of base_url begins with /{first}, which is a path of the service itself.")
    return prefix


def without_prefix(path: str, prefix: str) -> str:
    """A path without the prefix of the public address, whether a proxy has removed that or not.

    The metadata path of an issuer with a path comes before that path (RFC 8414, §3.1; RFC 9728, §3.1).
    """
    if path.startswith("/.well-known/") and path.endswith(prefix) and path[: -len(prefix)] in DOCUMENTS:
        return path[: -len(prefix)]
    rest = path.removeprefix(prefix)
    return rest if len(rest) < len(path) and rest[:1] == "/" else path
