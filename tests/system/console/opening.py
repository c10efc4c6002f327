"""The console in a browser, as a person opens it.

    with console(browser, service) as page:
        page.goto("data/orders")
        expect(page.tab.get_by_role("heading", name="orders")).to_be_visible()

At its end, the page must have said nothing to the browser's console, broken no policy, and asked nobody else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request

from tests.support.running import PATIENCE, Client

PAGES = ("request", "data", "data/orders", "live", "model", "model?tab=both", "reference", "rules", "activity", "admin")

T = TypeVar("T")


class Console:
    """A tab with the console, and what it complained about."""

    def __init__(self, tab: Page, url: str) -> None:
        self.tab, self.url = tab, url
        self.complaints: list[str] = []
        tab.on("console", self._said)
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("request", self._asked)
        tab.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))

    def _said(self, message: ConsoleMessage) -> None:
        # Chromium itself notes every answer of 400 and above.
        if not message.text.startswith("Failed to load resource: the server responded with a status of 4"):
            self.complaints.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.url, "blob:", "data:")):
            self.complaints.append(f"asked {request.url}")

    def goto(self, path: str) -> Page:
        """Open a page of the console, and wait until it is there."""
        self.tab.goto(f"{self.url}/console/{path}")
        self.tab.wait_for_selector("main h1")
        return self.tab

    def write(self, label: str, text: str) -> None:
        """Replace what an editor contains."""
        editor = self.tab.get_by_label(label, exact=True)
        editor.focus()
        self.tab.keyboard.press("Control+a")
        self.tab.keyboard.press("Delete")
        self.tab.keyboard.insert_text(text)

    def check_shows(self, read: Callable[[], T], expected: T) -> None:
        """Assert what the page shows, as soon as it has drawn it: a page is drawn anew in steps."""
        end = time.monotonic() + PATIENCE
        while (found := read()) != expected and time.monotonic() < end:
            self.tab.wait_for_timeout(50)
        assert found == expected

    def editor(self, label: str) -> Locator:
        return self.tab.get_by_label(label, exact=True)


@contextmanager
def console(browser: Browser, client: Client, **options: Any) -> Iterator[Console]:
    """A tab of its own, signed in with the token of a client, as a reload finds it."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(PATIENCE * 1000)
    kept = json.dumps({"token": client.token, "until": (time.time() + 3600) * 1000, "name": "admin"})
    if client.token:
        context.add_init_script(
            f"sessionStorage['diptych.began'] ??= (sessionStorage['diptych.session'] = {json.dumps(kept)})"
        )
    found = Console(context.new_page(), client.url)
    yield found
    assert not found.complaints, found.complaints
    context.close()
