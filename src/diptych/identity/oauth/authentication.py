"""Client authentication (RFC 6749, §2.3): which client sends a request, and how it proves that.

A client uses one method: the Authorization header, a secret in the form, or, if it has no secret, its id alone. Two
methods at once, or one that is malformed, are refused, and the response does not say why.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from urllib.parse import unquote_plus

from authlib.oauth2.rfc6749 import InvalidClientError

from diptych.identity.oauth.authlib_adapter import OAuthRequest, is_allowed_text
from diptych.identity.oauth.authlib_models import OAuthClient


def authenticate(
    request: OAuthRequest, find: Callable[[str], OAuthClient | None], methods: Collection[str]
) -> OAuthClient:
    """The client of a request, authenticated by one of the methods."""
    method, id, secret = _credentials(request)
    client = find(id) if id and method in methods else None
    if client is None or not client.check_endpoint_auth_method(method, ""):
        raise _failed()
    if method != "none" and not client.check_client_secret(secret):
        raise _failed()
    request.auth_method = method
    return client


def _credentials(request: OAuthRequest) -> tuple[str, str, str]:
    """The authentication method of a request, with the id and secret that it sends."""
    header = request.headers.get("Authorization")
    id, secret = request.form.get("client_id", ""), request.form.get("client_secret", "")
    if header is None:
        return ("client_secret_post" if secret else "none"), id, secret
    named, proof = _read_basic(header)
    if secret or (id and id != named):
        raise _failed()
    return "client_secret_basic", named, proof


def _read_basic(header: str) -> tuple[str, str]:
    """Id and secret of HTTP Basic, each form-encoded before they were joined."""
    scheme, _, text = header.partition(" ")
    try:
        joined = base64.b64decode(text.strip(), validate=True).decode("ascii")
    except ValueError:
        raise _failed() from None
    id, colon, secret = joined.partition(":")
    id, secret = unquote_plus(id), unquote_plus(secret)
    if scheme.lower() != "basic" or not colon or not is_allowed_text(id):
        raise _failed()
    return id, secret


def _failed() -> InvalidClientError:
    return InvalidClientError("The client is unknown, or did not prove who it is.", status_code=401)
