"""Dynamic client registration (RFC 7591): apps that register themselves, within narrow bounds.

It is off until the setting `registration_origins` names where their users may be led back to: every redirect URI must
have one of these origins. Registering is limited in rate (of an address and of all), in number, and in time: an app
that nobody signs in to is removed after an hour, any other after 90 days. Such an app acts for users only, and the
consent page says that nobody has verified its name.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.errors import Refusal
from diptych.identity.checks import checked_name
from diptych.identity.oauth.authlib_adapter import OAuthResponse
from diptych.identity.oauth.grant_store import REGISTERED_LIFETIME
from diptych.identity.records import (
    CLIENT_DETAILS,
    CLIENTS,
    CLIENTS_OWN,
    SETTINGS,
    ClientDetails,
    ClientRecord,
    ServiceSetting,
    hashed,
    new_secret,
    unix_time,
)
from diptych.identity.redirects import checked_redirect
from diptych.identity.revocation_list import revocation
from diptych.identity.revoke import revoke_grants
from diptych.identity.scopes import EMAIL, IDENTITY_SCOPES, OPENID, PROFILE
from diptych.identity.throttle import network_of

UNUSED_LIFETIME = 3600
_WINDOW = 3600
_MOST_OF_ONE, _MOST_OF_ALL, _MOST_ALIVE = 5, 50, 200
"""Registrations in an hour of one address and of all, and registered apps at a time."""
_MOST_URIS, _LONGEST_NAME = 5, 60
_SWEPT = 10
_METHODS = ("client_secret_basic", "client_secret_post", "none")
_GRANTS = ("authorization_code", "refresh_token")
_LITERAL = ("127.0.0.1", "::1")
_LOCK = "registrations"
_COUNT = """
    SELECT count(CASE WHEN created_at > {0}1 AND network = {0}2 THEN 1 END),
      count(CASE WHEN created_at > {0}1 THEN 1 END), count(CASE WHEN expires_at > {0}3 THEN 1 END)
    FROM diptych_client_details WHERE network IS NOT NULL
"""
_EXPIRED = "SELECT client_id FROM diptych_client_details WHERE expires_at <= {0}1 LIMIT 1"


class Invalid(ValueError):
    """A registration that is refused: its error code, and why."""

    def __init__(self, why: str, error: str = "invalid_client_metadata") -> None:
        super().__init__(why)
        self.error = error


class Registration:
    """The registration endpoint of one service; `scopes` are those of the model."""

    def __init__(self, store: Store, origins: Sequence[str], scopes: Collection[str]) -> None:
        self._store = store
        self._dialect = store.dialect
        self.origins = tuple(origins)
        self._scopes = (*IDENTITY_SCOPES, *scopes)

    async def register(self, body: object, address: str) -> OAuthResponse:
        """Register a client; the response has its metadata as they are kept."""
        try:
            client, secret, method = self._read(body)
        except Invalid as invalid:
            return OAuthResponse(400, {"error": invalid.error, "error_description": str(invalid)})
        created = client.created_at
        details = ClientDetails(client.id, 0, network_of(address), created, created + UNUSED_LIFETIME)
        if not await self._store.write(lambda: self._add(client, details)):
            body = {"error": "temporarily_unavailable", "error_description": "Too many apps register; try later."}
            return OAuthResponse(429, body, {"Retry-After": str(_WINDOW)})
        return OAuthResponse(201, _metadata(client, secret, method))

    def _add(self, client: ClientRecord, details: ClientDetails) -> Script[bool]:
        """Add a client within the limits. Registrations run one after another: all of them change one record."""
        now = unix_time()
        lock = {"name": _LOCK}
        if (yield from SETTINGS.change(self._dialect, lock, value=str(now))) is None:
            yield from SETTINGS.add(self._dialect, ServiceSetting(_LOCK, str(now)))
            yield from SETTINGS.change(self._dialect, lock, value=str(now))
        yield from self._sweep(now)
        row = yield Step(_COUNT.format(self._dialect.placeholder), (now - _WINDOW, details.network, now))
        if row is None or row[0] >= _MOST_OF_ONE or row[1] >= _MOST_OF_ALL or row[2] >= _MOST_ALIVE:
            return False
        added = yield from CLIENTS.add(self._dialect, client)
        return added and (yield from CLIENT_DETAILS.add(self._dialect, details))

    def _sweep(self, now: int) -> Script[None]:
        """Remove a few apps whose time is over, with all that they were allowed."""
        for _ in range(_SWEPT):
            row = yield Step(_EXPIRED.format(self._dialect.placeholder), (now,))
            if row is None:
                return
            id = str(row[0])
            yield from CLIENT_DETAILS.remove(self._dialect, client_id=id)
            yield from CLIENTS.remove(self._dialect, id=id)
            yield from revoke_grants(self._store, "client_id", id, revocation("grant", CLIENTS_OWN + id))

    # reading

    def _read(self, body: object) -> tuple[ClientRecord, str | None, str]:
        if not isinstance(body, dict):
            raise Invalid("Send a JSON object.")
        method = body.get("token_endpoint_auth_method", _METHODS[0])
        if method not in _METHODS:
            raise Invalid(f"token_endpoint_auth_method is {', '.join(_METHODS[:-1])} or none.")
        _check_list(body, "grant_types", _GRANTS)
        _check_list(body, "response_types", ("code",))
        id, secret = secrets.token_hex(8), None if method == "none" else new_secret()
        hash = None if secret is None else hashed(secret)
        scope = tuple(sorted(self._scope(body.get("scope"))))
        name = _name(body.get("client_name", "An app"), id)
        return (
            ClientRecord(id, name, hash, self._redirects(body.get("redirect_uris")), (), scope, unix_time()),
            secret,
            method,
        )

    def _scope(self, asked: object) -> set[str]:
        if asked is None:
            return {OPENID, PROFILE, EMAIL, "read"}
        words = set(asked.split()) if isinstance(asked, str) else set()
        if not words or not words <= set(self._scopes):
            raise Invalid("scope has words that are no scopes of this service.")
        return words

    def _redirects(self, asked: object) -> tuple[str, ...]:
        if not isinstance(asked, list) or not 0 < len(asked) <= _MOST_URIS:
            raise Invalid(f"redirect_uris has 1 to {_MOST_URIS} addresses.", "invalid_redirect_uri")
        for uri in asked:
            try:
                known = isinstance(uri, str) and _origin(checked_redirect(uri)) in self.origins
            except Refusal:
                known = False
            if not known:
                raise Invalid("A redirect URI has an origin that is not allowed here.", "invalid_redirect_uri")
        return tuple(dict.fromkeys(asked))


def _origin(uri: str) -> str:
    """The origin of a redirect URI; on a loopback address the port is free, as when it is matched."""
    parts = urlsplit(uri)
    if parts.scheme == "http" and parts.hostname in _LITERAL:
        return "http://[::1]" if parts.hostname == "::1" else f"http://{parts.hostname}"
    default = {"http": 80, "https": 443}.get(parts.scheme)
    host = parts.netloc.lower()
    return f"{parts.scheme}://{host.removesuffix(f':{default}')}"


def _check_list(body: Mapping[str, Any], name: str, known: Sequence[str]) -> None:
    """Refuse a list with a word that is not offered to apps that register themselves."""
    words = body.get(name, list(known))
    if not isinstance(words, list) or not words or not all(word in known for word in words):
        raise Invalid(f"{name} has no other words than {' and '.join(known)}.")


def _name(asked: object, id: str) -> str:
    """The name of a client, which is unique by the beginning of its id."""
    try:
        if not isinstance(asked, str) or len(asked) > _LONGEST_NAME:
            raise Invalid(f"client_name has at most {_LONGEST_NAME} characters.")
        return f"{checked_name(asked)} ({id[:8]})"
    except Refusal as refusal:
        raise Invalid(f"client_name: {refusal.message}") from None


def _metadata(client: ClientRecord, secret: str | None, method: str) -> dict[str, Any]:
    """The metadata of a client (RFC 7591, §3.2.1)."""
    of_secret = {"client_secret": secret, "client_secret_expires_at": client.created_at + REGISTERED_LIFETIME}
    return {
        "client_id": client.id,
        "client_id_issued_at": client.created_at,
        **({} if secret is None else of_secret),
        "client_name": client.name,
        "redirect_uris": list(client.redirects),
        "grant_types": list(_GRANTS),
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "scope": " ".join(client.scopes),
    }
