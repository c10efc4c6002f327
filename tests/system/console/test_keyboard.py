"""A journey by keyboard alone: sign in, find a row, change its state, see the event, see why a colleague cannot."""

from __future__ import annotations

import subprocess
import sys

from playwright.sync_api import Browser, Page, expect

from tests.support.running import Client, NewDatabase, served
from tests.system.console.opening import Console, console

PASSWORD, MOST_TABS = "correct horse battery", 80
FOCUSED = """() => {
    const at = document.activeElement
    return (at?.getAttribute('aria-label') || at?.labels?.[0]?.innerText || at?.innerText || at?.name || '').replace(/\\s+/g, ' ').trim()
}"""


def tab_to(page: Page, name: str) -> None:
    """Press Tab until what begins with this name has the focus."""
    for _ in range(MOST_TABS):
        if str(page.evaluate(FOCUSED)).startswith(name):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {name!r}")


def palette(page: Page, words: str, title: str) -> None:
    """Go somewhere by Ctrl+K."""
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Go to").get_by_role("combobox")).to_be_focused()
    page.keyboard.type(words)
    expect(page.get_by_role("listbox", name="Places").get_by_role("option").first).to_contain_text(title)
    page.keyboard.press("Enter")


def sign_in(page: Console, email: str) -> None:
    page.tab.goto(f"{page.url}/console/data")
    page.tab.get_by_role("button", name="Sign in", exact=True).wait_for()
    tab_to(page.tab, "Sign in")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_url("**/oauth/authorize?**")
    expect(page.tab.get_by_label("E-mail")).to_be_focused()
    page.tab.keyboard.type(email)
    tab_to(page.tab, "Password")
    page.tab.keyboard.type(PASSWORD)
    page.tab.keyboard.press("Enter")
    expect(page.tab.get_by_role("heading", level=1, name="Data")).to_be_visible()


def choose(page: Page, name: str, first_letters: str, value: str) -> None:
    """Choose an option by its first letters."""
    tab_to(page, name)
    page.keyboard.type(first_letters)
    expect(page.locator("select:focus")).to_have_value(value)


def test_a_state_is_changed_seen_and_explained_without_a_mouse(new_sqlite: NewDatabase, browser: Browser) -> None:
    database, email = new_sqlite(), "boss@example.org"
    with served(database, "--console", "--sample") as service:
        words = ("account", "add", email, "--role", "admin", "--password-stdin", "--database", database)
        subprocess.run([sys.executable, "-m", "diptych", *words], input=f"{PASSWORD}\n", text=True, check=True)
        with console(browser, Client(service.url)) as page, console(browser, Client(service.url)) as live:
            sign_in(live, email)
            with live.tab.expect_response("**/orders/changes*"):
                palette(live.tab, "changes as they", "Live")
            sign_in(page, email)
            tab = page.tab
            palette(tab, "orders", "orders")
            expect(tab.get_by_role("heading", level=1, name="orders")).to_be_visible()
            tab.locator("tbody tr").first.wait_for()
            tab.keyboard.press("/")
            tab_to(tab, "Filter status")
            tab.keyboard.type("pe")
            expect(tab.locator("tbody tr td:has-text('pending')").first).to_be_visible()
            expect(tab.locator("tbody tr td:has-text('shipped')")).to_have_count(0)
            tab_to(tab, "Open ")
            tab.keyboard.press("Enter")
            tab.get_by_role("button", name="status paid").wait_for()
            tab_to(tab, "status paid")
            tab.keyboard.press("Enter")
            expect(tab.get_by_text("Saved as version")).to_be_visible()
            expect(tab.get_by_role("button", name="status shipped")).to_be_visible()
            expect(live.tab.get_by_role("log")).to_contain_text("paid")
            tab_to(tab, "Why?")
            tab.keyboard.press("Enter")
            why = tab.get_by_role("dialog", name="Why?")
            expect(why).to_be_visible()
            choose(tab, "May", "si", "signed_in")
            choose(tab, "do", "u", "update")
            expect(why).to_contain_text("Order: update")
            expect(why).to_contain_text("model.py:")
            tab.keyboard.press("Escape")
            expect(why).to_be_hidden()
