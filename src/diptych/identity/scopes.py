"""The scopes of identity (OpenID Connect Core, §5.4): they select claims about a user, and allow nothing in the API."""

from __future__ import annotations

from collections.abc import Iterable

OPENID, PROFILE, EMAIL = "openid", "profile", "email"
IDENTITY_SCOPES = (OPENID, PROFILE, EMAIL, "offline_access")
"""With `offline_access`, which many clients request: it adds nothing, since every code has a refresh token."""


def without_covered(scopes: Iterable[str]) -> list[str]:
    """Scopes without those that a wider one among them covers: `read` is all of `posts:read`."""
    words = list(scopes)
    return [word for word in words if ":" not in word or word.rpartition(":")[2] not in words]
