"""The paths of the OAuth authorization server."""

from __future__ import annotations

METADATA = "/.well-known/oauth-authorization-server"
PATHS = {
    METADATA: ("GET", "HEAD"),
    "/.well-known/jwks.json": ("GET", "HEAD"),
    "/oauth/authorize": ("GET", "HEAD", "POST"),
    "/oauth/login": ("POST",),
    "/oauth/logout": ("POST",),
    "/oauth/token": ("POST",),
    "/oauth/revoke": ("POST",),
    "/oauth/introspect": ("POST",),
}
"""The methods of every path."""
