"""The `resource` for which a client wants a token (RFC 8707): this service is the only one that there is.

Tokens have it among their audiences, whether a client names it or not. So a client that was lured to another service
cannot get a token here that is meant for that one.
"""

from __future__ import annotations

from collections.abc import Mapping

from authlib.oauth2.rfc6749 import OAuth2Error

from diptych.identity.issuer import ascii_address


class InvalidTarget(OAuth2Error):
    """The client names a resource that this server has no tokens for."""

    error = "invalid_target"


def check_resource(parameters: Mapping[str, str], issuer: str) -> None:
    """Refuse a request for another resource than this service, which is named as in its metadata, or in ASCII."""
    in_ascii = ascii_address(issuer)
    if parameters.get("resource", issuer).removesuffix("/") not in (issuer, in_ascii):
        raise InvalidTarget(f"The only 'resource' is {in_ascii}.")  # a description is in ASCII (RFC 6749, §5.2)
