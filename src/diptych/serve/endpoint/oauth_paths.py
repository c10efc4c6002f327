"""The paths of the OAuth authorization server and OpenID provider."""

from __future__ import annotations

from diptych.serve.endpoint.account_paths import ACCOUNT_PATHS

METADATA = "/.well-known/oauth-authorization-server"
OPENID_METADATA = "/.well-known/openid-configuration"
RESOURCE = "/.well-known/oauth-protected-resource"
KEYS = "/.well-known/jwks.json"
USERINFO = "/oauth/userinfo"
REGISTER = "/oauth/register"
DOCUMENTS = (METADATA, OPENID_METADATA, RESOURCE)
"""Documents that are also found before the path of an issuer (RFC 8414, §3.1; RFC 9728, §3.1)."""
PATHS = {
    METADATA: ("GET", "HEAD"),
    OPENID_METADATA: ("GET", "HEAD"),
    RESOURCE: ("GET", "HEAD"),
    KEYS: ("GET", "HEAD"),
    USERINFO: ("GET", "HEAD", "POST"),
    REGISTER: ("POST",),
    "/oauth/authorize": ("GET", "HEAD", "POST"),
    "/oauth/device": ("GET", "HEAD", "POST"),
    "/oauth/device_authorization": ("POST",),
    "/oauth/end_session": ("GET", "HEAD", "POST"),
    "/oauth/login": ("POST",),
    "/oauth/logout": ("POST",),
    "/oauth/token": ("POST",),
    "/oauth/revoke": ("POST",),
    "/oauth/introspect": ("POST",),
    **ACCOUNT_PATHS,
}
"""The methods of every path."""
