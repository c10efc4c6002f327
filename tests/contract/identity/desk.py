"""A desk: the accounts, clients and keys of one database, as one process has them. Several can share a database.

with desk(database, runner) as one:
    one.run(one.accounts.add("ann@example.org", PASSWORD))
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from argon2 import PasswordHasher, extract_parameters

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.store import Store
from diptych.demo.model import model
from diptych.errors import Code, Refusal
from diptych.identity.accounts import Accounts
from diptych.identity.api_keys import ApiKeys
from diptych.identity.clients import Clients
from diptych.identity.passwords import Passwords
from diptych.identity.records import (
    CODES,
    GRANTS,
    LOGIN_SESSIONS,
    AuthorizationCode,
    Grant,
    LoginSession,
    unix_time,
)
from diptych.identity.revocation_list import RevocationList
from tests.support.running import with_tables

T = TypeVar("T")
ANN, BEN = "ann@example.org", "ben@example.org"
PASSWORD, WRONG = "correct horse", "wrong horse"
HOME = "192.0.2.1"


class Hasher(PasswordHasher):
    """A quick one, which notes what it was asked to verify. While `door` is shut, it waits."""

    def __init__(self, time_cost: int = 1) -> None:
        super().__init__(time_cost=time_cost, memory_cost=8, parallelism=1)
        self.verified: list[Any] = []
        self.made = 0
        self.came = threading.Event()
        self.door = threading.Event()
        self.door.set()

    def verify(self, hash: str | bytes, password: str | bytes) -> Any:
        assert isinstance(hash, str)
        self.verified.append(extract_parameters(hash))
        self.came.set()
        self.door.wait(60)
        return super().verify(hash, password)

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        self.made += 1
        return super().hash(password, salt=salt)


@dataclass
class Desk:
    """What one process has."""

    store: Store
    revoked: RevocationList
    hasher: Hasher
    accounts: Accounts
    clients: Clients
    api_keys: ApiKeys
    runner: asyncio.Runner

    def run(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self.runner.run(wait())

    def gather(self, *work: Awaitable[T]) -> list[T]:
        """All of them at once."""

        async def wait() -> list[T]:
            return list(await asyncio.gather(*work))

        return self.runner.run(wait())

    def sign_in(self, email: str = ANN, password: str = PASSWORD, address: str = HOME) -> Any:
        return self.run(self.accounts.authenticate(email, password, address))

    def refused(self, work: Awaitable[Any]) -> tuple[Code, str]:
        """Why something cannot be done."""
        try:
            found = self.run(work)
        except Refusal as refusal:
            return refusal.code, refusal.message
        raise AssertionError(f"it was done: {found}")

    # what the authorization server would have given

    def give(self, account: str, client: str, number: int) -> Grant:
        """A grant, a code that is not used yet, and a browser that is signed in."""
        grant = Grant(f"grant-{number}", account, client, "read", unix_time(), unix_time() + 900, None)
        code = AuthorizationCode(
            f"code-{number}", client, account, "https://a.example/", "read", "x", unix_time() + 60, None, None
        )
        browser = LoginSession(f"browser-{number}", account, unix_time(), unix_time() + 900)
        self.run(self.store.write(lambda: GRANTS.add(self.store.dialect, grant)))
        self.run(self.store.write(lambda: CODES.add(self.store.dialect, code)))
        self.run(self.store.write(lambda: LOGIN_SESSIONS.add(self.store.dialect, browser)))
        return grant

    def given(self) -> tuple[set[str], set[str], set[str]]:
        """The grants that hold, the codes and the browsers that are there."""
        grants = self.run(GRANTS.all(self.store, "id", revoked_at=None))
        codes, browsers = self.run(CODES.all(self.store, "hash")), self.run(LOGIN_SESSIONS.all(self.store, "hash"))
        return {each.id for each in grants}, {each.hash for each in codes}, {each.hash for each in browsers}


@contextmanager
def desk(database: str, runner: asyncio.Runner, hasher: Hasher | None = None, waiting: int = 64) -> Iterator[Desk]:
    """A desk at a database, from its opening to its closing."""
    hasher = hasher or Hasher()
    store = connect(Config(database=with_tables(database, model)))
    runner.run(store.open(model))
    try:
        yield desk_of(store, runner, hasher, RevocationList(store), waiting)
    finally:
        runner.run(store.close())


def desk_of(store: Store, runner: asyncio.Runner, hasher: Hasher, revoked: RevocationList, waiting: int = 64) -> Desk:
    """A desk at a store that is open."""
    accounts = Accounts(store, revoked, Passwords(hasher, waiting))
    return Desk(store, revoked, hasher, accounts, Clients(store, revoked), ApiKeys(store, revoked), runner)


NewDesk = Callable[..., Desk]
"""Another desk at the same database."""
