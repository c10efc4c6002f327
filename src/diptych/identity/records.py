"""What the service keeps about who may sign in, and about what was given to them. Moments are in seconds.

No secret is kept that would let its reader in: passwords as argon2id, all other secrets as SHA-256 of many random bits.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass

from diptych.db.records import Records


@dataclass(frozen=True, slots=True)
class Account:
    """Someone who can sign in. `user_id` is the id of its user in the model, which is what `viewer.id` will be."""

    id: str
    email: str
    password: str | None
    user_id: str | None
    roles: tuple[str, ...]
    disabled_at: int | None
    created_at: int


@dataclass(frozen=True, slots=True)
class Client:
    """A program that asks for tokens. One without a secret is public; roles are those of its own tokens."""

    id: str
    name: str
    secret: str | None
    redirects: tuple[str, ...]
    roles: tuple[str, ...]
    scopes: tuple[str, ...]
    created_at: int


@dataclass(frozen=True, slots=True)
class Grant:
    """What an account allowed a client, or a client has by itself: all tokens that come of it end with it."""

    id: str
    account_id: str | None
    client_id: str
    scope: str
    created_at: int
    expires_at: int
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """A code that a client exchanges for tokens, once."""

    hash: str
    client_id: str
    account_id: str
    redirect: str
    scope: str
    challenge: str
    expires_at: int
    used_at: int | None
    grant_id: str | None


@dataclass(frozen=True, slots=True)
class Refresh:
    """A refresh token of a grant. One that is used again tells that it was stolen."""

    hash: str
    grant_id: str
    expires_at: int
    used_at: int | None


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser in which an account is signed in to the pages of the authorization server, and to nothing else."""

    hash: str
    account_id: str
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Attempts:
    """Failed attempts to sign in, of an account or from an address, and until when no other is taken."""

    who: str
    failures: int
    until_at: int


@dataclass(frozen=True, slots=True)
class Revocation:
    """Tokens that hold no longer: one (`jti`), those of a grant, or those of an account that were made before `at`."""

    id: str
    kind: str
    what: str
    at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of a machine, used as a bearer token."""

    id: str
    name: str
    hash: str
    user_id: str | None
    roles: tuple[str, ...]
    scopes: tuple[str, ...] | None
    created_at: int
    expires_at: int | None
    used_at: int | None


ACCOUNTS = Records("diptych_accounts", Account)
CLIENTS = Records("diptych_clients", Client)
GRANTS = Records("diptych_grants", Grant)
CODES = Records("diptych_codes", AuthorizationCode)
REFRESHES = Records("diptych_refreshes", Refresh)
BROWSERS = Records("diptych_browsers", Browser)
ATTEMPTS = Records("diptych_attempts", Attempts)
REVOCATIONS = Records("diptych_revocations", Revocation)
API_KEYS = Records("diptych_api_keys", ApiKey)


CLIENTS_OWN = "client:"
"""Tokens that a client has by itself belong to a grant of this name and its id, which ends with the client."""


def now() -> int:
    return int(time.time())


def new_secret() -> str:
    """A secret that cannot be guessed."""
    return secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """What is kept of a secret; it has so many random bits that no slower hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()
