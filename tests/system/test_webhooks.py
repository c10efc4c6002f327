"""Webhooks of a real service: added by command, delivered by `diptych serve`, verified by the receivers of the guide."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import Command, NewDatabase, node, served
from tests.support.webhooks import Message, Receiver

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "webhooks.md"
ALLOWED = ("--webhook-networks", "127.0.0.1")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver in a thread of its own."""
    found, ready, done = Receiver(), threading.Event(), threading.Event()

    async def run() -> None:
        async with found:
            ready.set()
            while not done.is_set():
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait(10)
    yield found
    done.set()
    thread.join()


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.05)


def sent(message: Message, secret: str) -> dict[str, Any]:
    return {"secret": secret, "headers": dict(message.headers), "body": message.body.decode()}


def guide() -> Callable[[str, dict[str, str], bytes], Any]:
    """The receiver in Python of the guide."""
    (code,) = [
        block for block in re.findall(r"```python\n(.+?)```", PAGE.read_text(), re.DOTALL) if "def receive" in block
    ]
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    receive: Callable[[str, dict[str, str], bytes], Any] = names["receive"]
    return receive


def test_the_guide_from_the_first_command_to_verified_messages(
    command: Command, new_database: NewDatabase, receiver: Receiver
) -> None:
    database = new_database()
    on = ("--database", database)
    with served(database, "--sample", *ALLOWED) as service:
        added = command(
            *("webhook", "add", "erp", receiver.url("good"), "--on", "users", "--query", "fields=name"), *ALLOWED, *on
        )
        assert (added.returncode, added.stderr) == (0, "") and added.stdout.startswith("whsec_")
        old = added.stdout.strip()
        tested = command("webhook", "test", "erp", *ALLOWED, *on)
        assert tested.stdout == "The message was delivered: the response is 200.\n"
        assert "no webhook named 'crm'" in command("webhook", "test", "crm", *ALLOWED, *on).stderr
        admin = service.token_of("admin")
        admin.post("/users", {"name": "Vera", "email": "vera@example.org"})
        until(lambda: len(receiver.messages["good"]) == 2)
        rotated = command("webhook", "rotate", "erp", *on)
        new = rotated.stdout.strip()
        assert new.startswith("whsec_") and new != old
        time.sleep(2.5)  # the service reads the table every second
        admin.post("/users", {"name": "Olga", "email": "olga@example.org"})
        until(lambda: len(receiver.messages["good"]) == 3)
        listed = command("webhook", "list", *on).stdout.splitlines()
        assert listed[0].split()[:4] == ["NAME", "ON", "URL", "STATE"]
        assert listed[1].split()[:4] == ["erp", "User", receiver.url("good"), "active"]
        assert old not in "".join(listed) and "POSITION" in command("webhook", "dead", "erp", *on).stdout
        assert command("webhook", "replay", "erp", *on).stdout == "erp sends 0 again.\n"
        assert command("webhook", "remove", "erp", *on).stdout == "erp is removed.\n"
    test, first, second = receiver.messages["good"]
    assert [test.event["type"], first.event["type"]] == ["webhook.test", "users.created"]
    assert first.event["data"]["user"] == {"name": "Vera"}
    receive = guide()
    assert receive(old, dict(first.headers), first.body) == first.event
    assert receive(old, dict(first.headers), first.body) is None
    for secret in (old, new):
        assert guide()(secret, dict(second.headers), second.body) == second.event
    with pytest.raises(Exception, match="signature"):
        receive(new, dict(first.headers), first.body)
    given = [sent(first, old), sent(first, old), sent(second, new), sent(first, new)]
    given.append({**sent(second, new), "body": second.body.decode().replace("Olga", "Olgi")})
    answered = json.loads(node("webhook.mjs", str(PAGE), given=json.dumps(given)))
    assert answered == ["users.created", None, "users.created", "refused", "refused"]


def test_what_is_refused_is_refused_in_one_sentence(command: Command, new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with served(database, "--sample"):
        pass
    on = ("--database", database)
    for url, options, words in (
        ("http://example.org/", ("--on", "users"), "expected https"),
        ("https://127.0.0.1/", ("--on", "users"), "not on the public internet"),
        ("https://user@example.org/", ("--on", "users"), "no user"),
        ("https://example.org/", ("--on", "nothing"), "There is no resource 'nothing'"),
        ("https://example.org/", ("--on", "users", "--query", "fields=nothing"), "nothing"),
        ("https://example.org/", ("--on", "users", "--query", "after=x"), "after"),
        ("https://example.org/", ("--on", "users", "--role", "nobody"), "nobody"),
    ):
        done = command("webhook", "add", "one", url, *options, *on)
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
