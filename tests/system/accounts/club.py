"""A model whose people sign up, served with a real mail server, without a socket between."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

from argon2 import PasswordHasher

from diptych import Model
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.passwords import Passwords
from tests.support.in_process import Answer, Service, in_process
from tests.support.mailbox import Mailbox, link_of, mailbox
from tests.system.accounts.club_model import model
from tests.system.oauth.flow import App, Browser, Heard

HERE = "https://club.example"
PASSWORD = "correct horse"
_numbers = itertools.count()


class Club:
    """A service, its mailbox, and an app of it."""

    def __init__(self, service: Service, box: Mailbox) -> None:
        self.service = service
        self.box = box
        store, revoked = service.app.store, service.handler.context.revoked
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        self.accounts = service.handler.oauth.accounts = Accounts(store, revoked, Passwords(quick))
        self.run = service.runner.run
        client, secret = self.run(Clients(store, revoked).add("App", ["https://app.example/back"]))
        self.app = App(self.send, client.id, secret, "https://app.example/back")

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        return self.service.send(method, url, headers=headers, body=body)

    def json(self, path: str, body: Any, **headers: str) -> Answer:
        """A request of a program."""
        sent = {"content-type": "application/json", **headers}
        return self.send("POST", f"/oauth/{path}", sent, json.dumps(body).encode())

    def browser(self) -> Browser:
        return Browser(self.send)

    def address(self) -> str:
        """One that nobody has."""
        return f"person{next(_numbers)}@example.org"

    def settle(self) -> None:
        """Until the queue of mails is empty."""
        outbox = self.service.handler.oauth.account.outbox
        assert outbox is not None

        async def wait() -> None:
            for _ in range(2_000):
                if outbox.waiting == 0:
                    return
                await asyncio.sleep(0.005)
            raise AssertionError("mails are still waiting")

        self.run(wait())

    def mails(self, email: str) -> list[Any]:
        """The mails to an address."""
        self.settle()
        return [mail for mail in self.box.mails if mail["To"] == email]

    def link(self, email: str) -> str:
        """The path of the link in the newest mail to an address."""
        whole = link_of(self.mails(email)[-1])
        assert whole.startswith(HERE + "/oauth/confirm?token=")
        parts = urlsplit(whole)
        return f"{parts.path}?{parts.query}"

    def token(self, email: str) -> str:
        return self.link(email).partition("token=")[2]

    def member(self, email: str | None = None, name: str = "Zoe") -> str:
        """Someone who has signed up; gives the address."""
        email = email or self.address()
        assert self.json("sign-up", {"email": email}).status == 202
        answer = self.json("confirm", {"token": self.token(email), "password": PASSWORD, "fields": {"name": name}})
        assert answer.status == 200, answer.body
        return email

    def signed_in(self, email: str, password: str = PASSWORD) -> Browser:
        """A browser at the page of an account."""
        browser = self.browser()
        answer = browser.submit(browser.get("/oauth/account"), "account", email=email, password=password)
        assert answer.status == 303, answer.body
        assert follow(browser, answer).status == 200
        return browser

    def forget_limits(self) -> None:
        self.service.execute("DELETE FROM diptych_attempts")


def follow(browser: Browser, answer: Heard) -> Heard:
    """The page to which an answer leads."""
    return browser.get(urljoin("/oauth/x", answer.headers["location"]))


@contextmanager
def clubbed(database: str, runner: asyncio.Runner, served: Model = model, **settings: Any) -> Iterator[Club]:
    with mailbox() as box:
        given = {"base_url": HERE, "smtp": box.url, "mail_from": "The Club <club@example.org>", **settings}
        with in_process(served, database, runner, **given) as service:
            yield Club(service, box)
