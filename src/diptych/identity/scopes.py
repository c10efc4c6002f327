"""The scopes of identity (OpenID Connect Core, §5.4): they select claims about a user, and allow nothing in the API."""

from __future__ import annotations

OPENID, PROFILE, EMAIL = "openid", "profile", "email"
IDENTITY_SCOPES = (OPENID, PROFILE, EMAIL, "offline_access")
"""With `offline_access`, which many clients request: it adds nothing, since every code has a refresh token."""
