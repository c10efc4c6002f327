"""Clients: programs that ask for tokens, for people or for themselves.

A client on a person's device cannot keep a secret: it is public, and gets tokens for people alone. One with a secret is
confidential; it may have roles, which its own tokens carry.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.errors import Code, Refusal
from diptych.identity.checks import checked_name
from diptych.identity.endings import end_client
from diptych.identity.records import CLIENTS, CLIENTS_OWN, Client, Revocation, hashed, new_secret, now
from diptych.identity.redirects import checked_redirect
from diptych.identity.revoked import Revoked, revocation


class Clients:
    """The clients of a store."""

    def __init__(self, store: Store, revoked: Revoked) -> None:
        self._store = store
        self._dialect = store.dialect
        self._revoked = revoked

    async def find(self, name: str) -> Client | None:
        """The client of this name."""
        name = checked_name(name)
        return await self._store.write(lambda: CLIENTS.find(self._dialect, name=name))

    async def all(self) -> list[Client]:
        return await CLIENTS.all(self._store, "name")

    async def add(
        self, name: str, redirects: Iterable[str] = (), *, confidential: bool = False, roles: Iterable[str] = (),
        scopes: Iterable[str] = (),
    ) -> tuple[Client, str | None]:  # fmt: skip
        """A new client, and its secret, which is shown once and kept nowhere; scopes are the most that it gets."""
        leads = tuple(dict.fromkeys(map(checked_redirect, redirects)))
        held = tuple(sorted(roles))
        if not confidential and not leads:
            raise Refusal(Code.BAD_USER_INPUT, "A client without a secret needs an address to lead people back to.")
        if not confidential and held:
            raise Refusal(Code.BAD_USER_INPUT, "A client without a secret gets no tokens of its own, so no roles.")
        secret = new_secret() if confidential else None
        kept = None if secret is None else hashed(secret)
        client = Client(
            secrets.token_hex(8), checked_name(name), kept, leads, held, tuple(sorted(set(scopes))), now()
        )
        if not await self._store.write(lambda: CLIENTS.add(self._dialect, client)):
            raise Refusal(Code.CONFLICT, f"There is a client named {name!r} already.")
        return client, secret

    async def remove(self, name: str) -> Client:
        """Remove a client; with it end its grants, and all tokens that it got."""
        name = checked_name(name)

        def script() -> Script[tuple[Client, Revocation]]:
            client = yield from CLIENTS.remove(self._dialect, name=name)
            if client is None:
                raise Refusal(Code.NOT_FOUND, f"There is no client named {name!r}.")
            own = revocation("grant", CLIENTS_OWN + client.id)
            yield from end_client(self._store, client.id, own)
            return client, own

        client, own = await self._store.write(script)
        self._revoked.take([own])
        await self._revoked.look()
        return client
