"""What the service publishes about itself: as authorization server, as OpenID provider, and as protected resource.

/.well-known/oauth-authorization-server    RFC 8414
/.well-known/openid-configuration          OpenID Connect Discovery 1.0: the same document
/.well-known/oauth-protected-resource      RFC 9728
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from diptych.identity.oauth.openid import CLAIMS
from diptych.identity.scopes import IDENTITY_SCOPES
from diptych.identity.tokens import ALGORITHM

GRANT_TYPES = (
    "authorization_code",
    "refresh_token",
    "client_credentials",
    "urn:ietf:params:oauth:grant-type:device_code",
)


def server_metadata(issuer: str, scopes: Sequence[str], *, registers: bool = False) -> dict[str, Any]:
    """The metadata of the authorization server and OpenID provider."""
    registration = {"registration_endpoint": f"{issuer}/oauth/register"} if registers else {}
    methods = ["none", "client_secret_basic", "client_secret_post"]
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "userinfo_endpoint": f"{issuer}/oauth/userinfo",
        "device_authorization_endpoint": f"{issuer}/oauth/device_authorization",
        "end_session_endpoint": f"{issuer}/oauth/end_session",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "introspection_endpoint": f"{issuer}/oauth/introspect",
        **registration,
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "scopes_supported": [*IDENTITY_SCOPES, *scopes],
        "claims_supported": ["iss", "aud", "exp", "iat", "auth_time", "amr", "nonce", "at_hash", *CLAIMS],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "prompt_values_supported": ["none", "login", "consent", "select_account"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "introspection_endpoint_auth_methods_supported": methods[1:],
        "authorization_response_iss_parameter_supported": True,
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "protected_resources": [issuer],
    }


def resource_metadata(issuer: str, title: str, scopes: Sequence[str], others: Iterable[str]) -> dict[str, Any]:
    """The metadata of the API as a protected resource; `others` are the issuers that it trusts besides itself."""
    return {
        "resource": issuer,
        "resource_name": title,
        "authorization_servers": [issuer, *others],
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
    }
