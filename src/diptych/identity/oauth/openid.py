"""OpenID Connect: the scopes of identity, ID tokens, and the claims about a user.

    scope     an app that has it learns
    openid    who the user is: `sub`, in the ID token and from /oauth/userinfo
    profile   the fields of the user's own row that are named as standard claims, as far as the user may read them
    email     the e-mail address of the account

An ID token is for the client alone. It has another type (`JWT`) and another audience (the client) than an access token,
so neither is ever taken for the other.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Collection, Coroutine, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from diptych.identity.records import Account, unix_time
from diptych.identity.tokens import TOKEN_LIFETIME, Tokens
from diptych.model.defs import ResourceDef

PROFILE_CLAIMS = (
    "name",
    "given_name",
    "family_name",
    "middle_name",
    "nickname",
    "preferred_username",
    "profile",
    "picture",
    "website",
    "zoneinfo",
    "locale",
)
"""Standard claims that a text field of the same name gives (OpenID Connect Core, §5.1)."""
CLAIMS = ("sub", *PROFILE_CLAIMS, "updated_at", "email", "email_verified")


TellUser = Callable[[Account, Collection[str]], Coroutine[Any, Any, dict[str, Any]]]
"""Gets the claims about an account that scopes allow."""


class SignIn(Struct, frozen=True):
    """When a user signed in, the nonce of the app that asks, and how the user proved who it is (RFC 8176)."""

    auth_time: int
    nonce: str | None = None
    methods: tuple[str, ...] = ()


def subject_of(account: Account) -> str:
    """The `sub` of an account: its user in the model, or else itself."""
    return account.user_id or account.id


def id_token(
    tokens: Tokens,
    issuer: str,
    client: str,
    account: Account,
    access_token: str,
    sign_in: SignIn,
    more: Mapping[str, Any],
) -> str:
    """An ID token for a client (OpenID Connect Core, §2); `more` are the claims of other scopes than `openid`."""
    now = unix_time()
    claims: dict[str, Any] = {
        **more,
        "iss": issuer,
        "sub": subject_of(account),
        "aud": client,
        "iat": now,
        "exp": now + TOKEN_LIFETIME,
        "auth_time": sign_in.auth_time,
        "at_hash": _half_hash(access_token),
    }
    if sign_in.methods:
        claims["amr"] = [*sign_in.methods, *(["mfa"] if len(sign_in.methods) > 1 else [])]
    if sign_in.nonce is not None:
        claims["nonce"] = sign_in.nonce
    return tokens.sign(claims, "JWT")


def email_claims(account: Account, is_verified: bool) -> dict[str, Any]:
    """The claims of the scope `email`."""
    return {"email": account.email, "email_verified": is_verified}


def profile_claims(row: bytes, resource: ResourceDef) -> dict[str, Any]:
    """The claims of the scope `profile`, from the row of the user as the user may read it."""
    found: Mapping[str, Any] = json.loads(row)
    names = {field.attr: name for name, field in resource.fields.items() if field.attr in PROFILE_CLAIMS}
    claims = {claim: found.get(names[claim]) for claim in PROFILE_CLAIMS if claim in names}
    profile: dict[str, Any] = {claim: value for claim, value in claims.items() if isinstance(value, str) and value}
    if isinstance(changed := found.get("updatedAt"), str):
        profile["updated_at"] = int(datetime.fromisoformat(changed).timestamp())
    return profile


def _half_hash(token: str) -> str:
    """The left half of the SHA-256 of an access token, which binds it to its ID token."""
    digest = hashlib.sha256(token.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")
