"""`diptych serve --console` in a browser: OAuth, a reload, a first visit without rows, and signing out."""

from __future__ import annotations

import subprocess
import sys

from playwright.sync_api import Browser, expect

from tests.support.running import Client, NewDatabase, served
from tests.system.console.opening import console

PASSWORD = "correct horse battery"


def test_one_signs_in_by_oauth_and_a_first_visit_shows_three_steps(new_sqlite: NewDatabase, browser: Browser) -> None:
    database = new_sqlite()
    with served(database, "--console") as service, console(browser, Client(service.url)) as page:
        # In a process of its own: the browser has the event loop of this one.
        words = ("account", "add", "boss@example.org", "--role", "admin", "--password-stdin", "--database", database)
        subprocess.run([sys.executable, "-m", "diptych", *words], input=f"{PASSWORD}\n", text=True, check=True)
        page.tab.goto(f"{service.url}/console/data")
        page.tab.get_by_role("button", name="Sign in", exact=True).click()
        page.tab.locator("input[name=email]").fill("boss@example.org")
        page.tab.locator("input[type=password]").fill(PASSWORD)
        page.tab.keyboard.press("Enter")
        expect(page.tab.get_by_role("heading", name="Three steps to a first answer")).to_be_visible()
        assert page.tab.url == f"{service.url}/console/data"
        stored = "JSON.stringify([{...localStorage}, {...sessionStorage}])"
        assert "eyJ" not in page.tab.evaluate(stored)
        page.tab.reload()
        expect(page.tab.get_by_role("link", name="Create the first user")).to_be_visible()
        page.tab.get_by_role("button", name="Sign out").click()
        page.tab.reload()
        expect(page.tab.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
