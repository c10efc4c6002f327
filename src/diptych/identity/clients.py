"""OAuth clients: programs that request tokens, for people or for themselves.

A client without a secret is public, and gets tokens for people only. One with a secret is confidential; it may have
roles, which the tokens of its own (client credentials) carry.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.checks import checked_name
from diptych.identity.records import (
    CLIENT_DETAILS,
    CLIENTS,
    CLIENTS_OWN,
    ClientDetails,
    ClientRecord,
    Revocation,
    hashed,
    new_secret,
    unix_time,
)
from diptych.identity.redirects import checked_redirect
from diptych.identity.revocation_list import RevocationList, revocation
from diptych.identity.revoke import revoke_grants


class Clients:
    """The clients of a store."""

    def __init__(self, store: Store, revoked: RevocationList) -> None:
        self._store = store
        self._dialect = store.dialect
        self._revoked = revoked

    async def find(self, name: str) -> ClientRecord | None:
        """The client of this name."""
        name = checked_name(name)
        return await self._store.write(lambda: CLIENTS.find(self._dialect, name=name))

    async def all(self) -> list[ClientRecord]:
        return await CLIENTS.all(self._store, "name")

    async def add(
        self,
        name: str,
        redirects: Iterable[str] = (),
        *,
        confidential: bool = False,
        roles: Iterable[str] = (),
        scopes: Iterable[str] = (),
        device: bool = False,
    ) -> tuple[ClientRecord, str | None]:
        """Add a client. Its secret is returned once, and only its hash is stored. `scopes` are the most that it may
        request. `device` allows it the device flow."""
        redirect_uris = tuple(dict.fromkeys(map(checked_redirect, redirects)))
        own_roles = tuple(sorted(roles))
        if not confidential and not redirect_uris and not device:
            raise Refusal(Code.BAD_USER_INPUT, "A client without a secret needs a redirect URI, or the device flow.")
        if not confidential and own_roles:
            raise Refusal(Code.BAD_USER_INPUT, "A client without a secret gets no tokens of its own, so no roles.")
        secret = new_secret() if confidential else None
        hash = None if secret is None else hashed(secret)
        client = ClientRecord(
            secrets.token_hex(8),
            checked_name(name),
            hash,
            redirect_uris,
            own_roles,
            tuple(sorted(set(scopes))),
            unix_time(),
        )
        details = ClientDetails(client.id, 1, None, client.created_at, None) if device else None
        if not await self._store.write(lambda: self._add(client, details)):
            raise Refusal(Code.CONFLICT, f"There is a client named {name!r} already.")
        return client, secret

    def _add(self, client: ClientRecord, details: ClientDetails | None) -> Script[bool]:
        if not (yield from CLIENTS.add(self._dialect, client)):
            return False
        return details is None or (yield from CLIENT_DETAILS.add(self._dialect, details))

    async def details(self) -> dict[str, ClientDetails]:
        """What else is known of clients, by their ids."""
        return {details.client_id: details for details in await CLIENT_DETAILS.all(self._store, "client_id")}

    async def remove(self, name: str) -> ClientRecord:
        """Remove a client, and revoke its grants and all tokens that it got."""
        name = checked_name(name)

        def script() -> Script[tuple[ClientRecord, Revocation]]:
            client = yield from CLIENTS.remove(self._dialect, name=name)
            if client is None:
                raise Refusal(Code.NOT_FOUND, f"There is no client named {name!r}.")
            yield from CLIENT_DETAILS.remove(self._dialect, client_id=client.id)
            own = revocation("grant", CLIENTS_OWN + client.id)
            yield from revoke_grants(self._store, "client_id", client.id, own)
            return client, own

        return await self._revoked.write(script)
