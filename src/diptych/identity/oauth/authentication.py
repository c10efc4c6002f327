"""Which client sends a request, and how it proves that (RFC 6749, §2.3).

A client proves itself in one way: by the Authorization header, by a secret in the form, or, if it has no secret, by its
id alone. Whoever says two things, or says one in a form that cannot be read, is refused; the reason is not told.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from urllib.parse import unquote_plus

from authlib.oauth2.rfc6749 import InvalidClientError

from diptych.identity.oauth.parties import OAuthClient
from diptych.identity.oauth.wire import OAuthRequest, is_plain


def authenticate(
    request: OAuthRequest, find: Callable[[str], OAuthClient | None], methods: Collection[str]
) -> OAuthClient:
    """The client that sends a request, by one of the methods."""
    method, id, secret = _claimed(request)
    client = find(id) if id and method in methods else None
    if client is None or not client.check_endpoint_auth_method(method, ""):
        raise _unproven()
    if method != "none" and not client.check_client_secret(secret):
        raise _unproven()
    request.auth_method = method
    return client


def _claimed(request: OAuthRequest) -> tuple[str, str, str]:
    """The method by which a client proves itself, its id and its secret."""
    header = request.headers.get("Authorization")
    id, secret = request.form.get("client_id", ""), request.form.get("client_secret", "")
    if header is None:
        return ("client_secret_post" if secret else "none"), id, secret
    named, proof = _read_basic(header)
    if secret or (id and id != named):
        raise _unproven()
    return "client_secret_basic", named, proof


def _read_basic(header: str) -> tuple[str, str]:
    """Id and secret, each encoded like a value of a form before they were joined."""
    scheme, _, text = header.partition(" ")
    try:
        joined = base64.b64decode(text.strip(), validate=True).decode("ascii")
    except ValueError:
        raise _unproven() from None
    id, colon, secret = joined.partition(":")
    id, secret = unquote_plus(id), unquote_plus(secret)
    if scheme.lower() != "basic" or not colon or not is_plain(id):
        raise _unproven()
    return id, secret


def _unproven() -> InvalidClientError:
    return InvalidClientError("The client is unknown, or did not prove who it is.", status_code=401)
