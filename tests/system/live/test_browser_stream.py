"""A browser's own EventSource: it follows changes without a token, and after the service was killed and came back, it is
told exactly what it missed, without a line of script for that.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import apsw
import pytest
from playwright.sync_api import Browser, Page
from uuid_utils import uuid7

from tests.proof.long_running.parts import Mortal, mortal, token
from tests.support.running import PATIENCE, Client, NewDatabase
from tests.system.oauth.browsing import chromium

NUMBERS = itertools.count()
OPEN = 1
FOLLOW = """() => {
  window.told = []; window.opened = 0; window.failed = 0;
  window.source = new EventSource("/users/changes?fields=name");
  source.onopen = () => { opened += 1 };
  source.onerror = () => { failed += 1 };
  source.onmessage = event => { told.push([event.lastEventId, JSON.parse(event.data)]) };
}"""


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Mortal]:
    with mortal(new_sqlite(), DIPTYCH_HEARTBEAT="0.5") as service:
        yield service


@pytest.fixture(scope="module")
def writer(service: Mortal) -> Client:
    return Client(f"http://127.0.0.1:{service.port}", token(service.database, "--role", "admin"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, service: Mortal) -> Iterator[Page]:
    """A page of the service's own origin that follows changes."""
    found = browser.new_page()
    found.set_default_timeout(PATIENCE * 1000)
    found.goto(f"http://127.0.0.1:{service.port}/health/live")
    found.evaluate(FOLLOW)
    found.wait_for_function("opened == 1")
    yield found
    found.close()


def add(writer: Client, count: int = 1) -> list[str]:
    """Make changes; gives the names of the new users."""
    names = [f"user{next(NUMBERS)}" for _ in range(count)]
    for name in names:
        answer = writer.post("/users", {"name": name, "email": f"{name}@example.org"})
        assert answer.status == 201, answer.body
    return names


def told(page: Page, count: int) -> list[tuple[str, Any]]:
    """The cursor and the change of every event, once there are so many."""
    page.wait_for_function(f"told.length >= {count}")
    return [(cursor, change) for cursor, change in page.evaluate("told")]


def names_of(events: list[tuple[str, Any]]) -> list[str]:
    assert all(cursor == change["cursor"] for cursor, change in events)
    assert {change["kind"] for _, change in events} <= {"CREATED"}
    return [change["user"]["name"] for _, change in events]


def add_past_the_service(database: str, count: int) -> list[str]:
    """The same by SQL, while there is no service."""
    names = [f"user{next(NUMBERS)}" for _ in range(count)]
    moment = "2026-01-31T12:00:00.000000Z"
    connection = apsw.Connection(database.removeprefix("sqlite:///"))
    try:
        for name in names:
            connection.execute(
                "INSERT INTO users (id, version, created_at, updated_at, name, email) VALUES (?, 1, ?, ?, ?, ?)",
                (str(uuid7()), moment, moment, name, f"{name}@example.org"),
            )
    finally:
        connection.close()
    return names


def forget_all_but_the_newest(database: str) -> None:
    """As if the feed had been trimmed."""
    connection = apsw.Connection(database.removeprefix("sqlite:///"))
    try:
        connection.execute("DELETE FROM diptych_feed WHERE position < (SELECT max(position) FROM diptych_feed)")
    finally:
        connection.close()


def beats(page: Page, count: int) -> None:
    """Wait until so many pieces of the stream have come, which are heart-beats if nothing happens meanwhile."""
    seen: list[int] = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.dataReceived", lambda piece: seen.append(piece["dataLength"]))
    deadline = time.monotonic() + PATIENCE
    while len(seen) < count:
        assert time.monotonic() < deadline, "no heart-beat came"
        page.wait_for_timeout(50)  # while which the browser tells what came
    session.detach()


def test_an_event_source_resumes_by_itself_after_the_service_was_killed(
    page: Page, service: Mortal, writer: Client
) -> None:
    known = add(writer)
    assert names_of(told(page, 1)) == known
    for times in (1, 2):
        service.kill()
        page.wait_for_function(f"failed >= {times}")  # it knows, and comes again on its own
        known += add_past_the_service(service.database, 5)
        service.start()
        known += add(writer, 2)
        page.wait_for_function(f"opened >= {times + 1}")
        known += add(writer, 2)
        assert names_of(told(page, len(known))) == known
    assert page.evaluate("source.readyState") == OPEN


def test_a_heart_beat_moves_the_place_from_which_it_resumes(page: Page, service: Mortal, writer: Client) -> None:
    """What is not told moves the cursor, too: else an idle page would find one day that its last one is too old."""
    known = add(writer)
    told(page, 1)
    user = writer.get("/users?first=1&fields=id").json()["data"][0]["id"]
    assert writer.post("/orders", {"customerId": user, "total": "1.00", "currency": "EUR"}).status == 201
    beats(page, 3)  # the first may have been on its way
    service.kill()
    forget_all_but_the_newest(service.database)
    service.start()
    page.wait_for_function("opened >= 2 || source.readyState == 2")
    known += add(writer)
    assert names_of(told(page, 2)) == known
    assert page.evaluate("source.readyState") == OPEN


def test_a_gap_closes_an_event_source_for_good(page: Page, service: Mortal, writer: Client) -> None:
    add(writer)
    told(page, 1)
    service.kill()
    add_past_the_service(service.database, 3)
    forget_all_but_the_newest(service.database)
    service.start()
    page.wait_for_function("source.readyState == 2")
    assert page.evaluate("[opened, told.length]") == [1, 1]  # nothing was told with a hole in it
