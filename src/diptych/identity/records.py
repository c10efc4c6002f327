"""The records of accounts, clients, grants, tokens, API keys and signing keys. Moments are in seconds.

No record but the keys of the service has a secret that could be used: passwords are kept as argon2id, all other
secrets as SHA-256 of many random bits.
"""

from __future__ import annotations

import hashlib
import secrets
import time

from msgspec import Struct

from diptych.db.system_records import Records


class Account(Struct, frozen=True):
    """A person who can sign in. `user_id` is the id of its user in the model, which `viewer.id` will be."""

    id: str
    email: str
    password: str | None
    user_id: str | None
    roles: tuple[str, ...]
    disabled_at: int | None
    created_at: int


class ClientRecord(Struct, frozen=True):
    """An OAuth client. One without a secret is public; `roles` are those of its own tokens."""

    id: str
    name: str
    secret: str | None
    redirects: tuple[str, ...]
    roles: tuple[str, ...]
    scopes: tuple[str, ...]
    created_at: int


class ClientDetails(Struct, frozen=True):
    """What else is known of a client: may it use the device flow, and if it registered itself, whence and until when.

    A client without this has redirect URIs and no end.
    """

    client_id: str
    device: int
    network: str | None
    created_at: int
    expires_at: int | None


class Grant(Struct, frozen=True):
    """A consent of an account to a client, or what a client has by itself; its tokens end with it."""

    id: str
    account_id: str | None
    client_id: str
    scope: str
    created_at: int
    expires_at: int
    revoked_at: int | None


class AuthorizationCode(Struct, frozen=True):
    """An authorization code: a client exchanges it for tokens, once."""

    hash: str
    client_id: str
    account_id: str
    redirect: str
    scope: str
    challenge: str
    expires_at: int
    used_at: int | None
    grant_id: str | None


class CodeSignIn(Struct, frozen=True):
    """The sign-in behind a code of the scope `openid`, for its ID token."""

    hash: str
    auth_time: int
    nonce: str | None
    expires_at: int


class DeviceCode(Struct, frozen=True):
    """A program that waits for a user to type its code elsewhere; `state` is pending, allowed, denied or used."""

    hash: str
    user_hash: str
    client_id: str
    scope: str
    network: str
    interval: int
    polled_at: int
    expires_at: int
    state: str
    account_id: str | None
    auth_time: int | None


class RefreshToken(Struct, frozen=True):
    """A refresh token of a grant. Using one twice shows that it was stolen."""

    hash: str
    grant_id: str
    expires_at: int
    used_at: int | None


class LoginSession(Struct, frozen=True):
    """A browser that is signed in to the pages of the authorization server, and to nothing else."""

    hash: str
    account_id: str
    created_at: int
    expires_at: int


class EmailLink(Struct, frozen=True):
    """A link that was sent by mail, by the hash of its token. `state` is that of its account, which it ends with;
    `goes_on` is the authorization request to which its page leads on."""

    hash: str
    purpose: str
    email: str
    account_id: str | None
    state: str
    goes_on: str
    expires_at: int


class VerifiedEmail(Struct, frozen=True):
    """The address of an account that its owner has proven; it is verified while the account has it."""

    account_id: str
    email: str
    verified_at: int


class TotpKey(Struct, frozen=True):
    """The key of the authenticator app of an account, encrypted (`second_factor.py`); `last_step` is the period of the
    last code that was used, and until one was, the last period whose code is too old for the key."""

    account_id: str
    secret: str
    confirmed_at: int | None
    last_step: int


class RecoveryCode(Struct, frozen=True):
    """A code that replaces the authenticator app once."""

    hash: str
    account_id: str


class SecondStep(Struct, frozen=True):
    """A browser whose user has given the password, and not the second factor yet; `location` is where it goes on."""

    hash: str
    account_id: str
    state: str
    location: str
    expires_at: int


class SessionMethods(Struct, frozen=True):
    """How the user of a login session, or of a code, proved who it is: `pwd`, and `otp` (RFC 8176)."""

    hash: str
    methods: tuple[str, ...]
    expires_at: int


class Attempts(Struct, frozen=True):
    """Failed sign-ins of an account or from an address, and until when no further attempt is accepted."""

    who: str
    failures: int
    until_at: int


class Revocation(Struct, frozen=True):
    """Revoked tokens: one (`jti`), those of a grant, or those of an account that were issued before `at`."""

    id: str
    kind: str
    what: str
    at: int
    expires_at: int


class ApiKey(Struct, frozen=True):
    """An API key: a secret of a machine, used as a bearer token."""

    id: str
    name: str
    hash: str
    user_id: str | None
    roles: tuple[str, ...]
    scopes: tuple[str, ...] | None
    created_at: int
    expires_at: int | None
    used_at: int | None


class ServiceKey(Struct, frozen=True):
    """A secret of the service itself: `kind` is what it is for."""

    kid: str
    kind: str
    secret: str
    created_at: str


class ServiceSetting(Struct, frozen=True):
    """What a database remembers of its service, by name: its issuer."""

    name: str
    value: str


ACCOUNTS = Records("diptych_accounts", Account)
CLIENTS = Records("diptych_clients", ClientRecord)
CLIENT_DETAILS = Records("diptych_client_details", ClientDetails)
GRANTS = Records("diptych_grants", Grant)
CODES = Records("diptych_codes", AuthorizationCode)
CODE_SIGN_INS = Records("diptych_code_sign_ins", CodeSignIn)
DEVICE_CODES = Records("diptych_device_codes", DeviceCode)
REFRESHES = Records("diptych_refreshes", RefreshToken)
LOGIN_SESSIONS = Records("diptych_browsers", LoginSession)
EMAIL_LINKS = Records("diptych_email_links", EmailLink)
TOTP_KEYS = Records("diptych_totp_keys", TotpKey)
RECOVERY_CODES = Records("diptych_recovery_codes", RecoveryCode)
SECOND_STEPS = Records("diptych_second_steps", SecondStep)
SESSION_METHODS = Records("diptych_session_methods", SessionMethods)
VERIFIED_EMAILS = Records("diptych_verified_emails", VerifiedEmail)
ATTEMPTS = Records("diptych_attempts", Attempts)
REVOCATIONS = Records("diptych_revocations", Revocation)
API_KEYS = Records("diptych_api_keys", ApiKey)
KEYS = Records("diptych_keys", ServiceKey)
SETTINGS = Records("diptych_settings", ServiceSetting)

CLIENTS_OWN = "client:"
"""Prefix of the grant of a client's own tokens, followed by its id; the grant ends with the client."""


def unix_time() -> int:
    return int(time.time())


def new_secret() -> str:
    """A random secret of 256 bits."""
    return secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """The hash under which a secret is stored; it has 256 random bits, so no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()
