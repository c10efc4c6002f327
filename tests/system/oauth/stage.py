"""A service with accounts and clients, without a socket between."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from argon2 import PasswordHasher

from diptych.demo.model import model
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.passwords import Passwords
from diptych.identity.records import Account
from tests.contract.http import data
from tests.support.in_process import Answer, Service, in_process
from tests.system.oauth.flow import PASSWORD, App, Browser

HERE = "https://api.example.org"
BACK = "https://app.example/back"
_numbers = itertools.count()


class Stage:
    """A service whose passwords are hashed quickly, so that many can sign in."""

    def __init__(self, service: Service) -> None:
        self.service = service
        store, revoked = service.app.store, service.handler.context.revoked
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        self.accounts = service.handler.oauth.accounts = Accounts(store, revoked, Passwords(quick))
        self.clients = Clients(store, revoked)
        self.run = service.runner.run
        self.app = self.add_app()
        self.backend = self.add_app(confidential=True, roles=("staff",))
        self.browser = Browser(self.send)
        assert self.browser.sign_in(self.app, self.add_account().email).status == 200

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        return self.service.send(method, url, headers=headers, body=body)

    def add_account(self, *roles: str, user: str = data.ANN) -> Account:
        """An account of a test's own."""
        return self.run(self.accounts.add(f"person{next(_numbers)}@example.org", PASSWORD, roles, user))

    def add_app(self, redirect: str = BACK, **given: Any) -> App:
        """A client of a test's own."""
        client, secret = self.run(self.clients.add(f"App {next(_numbers)}", [redirect], **given))
        return App(self.send, client.id, secret, redirect)

    def forget_attempts(self) -> None:
        """Nobody has failed to sign in so far."""
        self.service.execute("DELETE FROM diptych_attempts")

    def signed_in(self, account: Account) -> Browser:
        """A browser in which someone is signed in."""
        browser = Browser(self.send)
        assert browser.sign_in(self.app, account.email).status == 200
        return browser

    def tokens(self, app: App | None = None, browser: Browser | None = None, **asked: Any) -> dict[str, Any]:
        """What a client gets for a code."""
        app = app or self.app
        answer = app.exchange((browser or self.browser).decide(app, **asked)["code"])
        assert answer.status == 200, answer.body
        return dict(answer.json())

    def holds(self, token: str) -> bool:
        """Is a token taken? Both styles must say the same."""
        answers = [self.service.get("/users?first=1", token=token), self.service.query("{ __typename }", token=token)]
        (status,) = {answer.status for answer in answers}
        assert status in (200, 401)
        if status == 401:
            assert {answer.headers["www-authenticate"] for answer in answers} == {'Bearer error="invalid_token"'}
        return status == 200


@contextmanager
def staged(database: str, runner: asyncio.Runner, **settings: Any) -> Iterator[Stage]:
    """A stage on a database."""
    with in_process(model, database, runner, data.ROWS, **{"base_url": HERE, **settings}) as service:
        yield Stage(service)
