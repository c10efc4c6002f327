"""A first hour with the help desk, whose rules show rows to its users only: from an empty database to a hidden ticket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.running import ROOT, Client, NewDatabase, Service, running
from tests.system.console.opening import Console, console


@pytest.fixture(scope="module")
def desk(new_sqlite: NewDatabase) -> Iterator[Service]:
    folder = ROOT / "examples" / "helpdesk"
    with running("dev", "helpdesk:model", database=new_sqlite(), cwd=folder, noise="INFO") as found:
        yield found


def new_user(page: Page, name: str) -> None:
    """Create a user in the dialog that is open, and view as that one."""
    page.get_by_role("button", name="New user").click()
    form = page.get_by_role("dialog", name="New user")
    form.get_by_label("name").fill(name)
    form.get_by_label("email").fill(f"{name.lower()}@example.org")
    form.get_by_role("button", name="Create, and view as this user").click()
    expect(form).to_be_hidden()
    expect(page.get_by_label("View as")).to_contain_text(name)


def create(page: Console, path: str, **texts: str) -> None:
    """Create a row by the form of its page; a value that begins with `→` is picked."""
    page.tab.get_by_role("navigation").get_by_role("link", name=path, exact=True).click()
    page.tab.get_by_role("button", name=f"New {path[:-1]}").first.click()
    form = page.tab.get_by_role("dialog", name=f"New {path[:-1]}")
    for label, text in texts.items():
        field = form.get_by_label(label, exact=False).first
        if not text.startswith("→"):
            field.fill(text)
            continue
        field.press_sequentially(text[1:])
        form.get_by_role("option", name=text[1:]).first.click()
    form.get_by_role("button", name="Create", exact=True).click()
    expect(form).to_be_hidden()


def test_one_who_sees_nothing_is_told_why_and_what_to_do(desk: Service, browser: Browser) -> None:
    with console(browser, Client(desk.url)) as page:
        tab = page.tab
        tab.goto(desk.out.wait(r"Console\s+(\S+#code=\S+)")[1])
        notice = tab.get_by_role("region", name="You see nothing yet")
        expect(notice).to_contain_text("its rules show rows to users only")
        notice.get_by_role("button", name="View as a user").click()
        expect(tab.get_by_role("dialog")).to_contain_text("There are no users yet")
        new_user(tab, "Ann")
        expect(notice).to_have_count(0)
        tab.get_by_role("navigation").get_by_role("link", name="Data", exact=True).click()
        tab.get_by_role("navigation").get_by_role("link", name="organisations").click()
        expect(tab.get_by_role("heading", name="There are no organisations yet")).to_be_visible()
        tab.get_by_role("button", name="found").first.click()
        act = tab.get_by_role("dialog")
        act.get_by_label("name").fill("Acme")
        act.get_by_role("button", name="found").click()
        expect(tab.get_by_role("cell", name="Acme", exact=True)).to_be_visible()
        create(page, "projects", name="Website", organisation="→Acme")
        create(page, "tickets", title="The page is empty", project="→Website")
        expect(tab.get_by_role("cell", name="The page is empty", exact=True)).to_be_visible()
        tab.get_by_label("View as").select_option("A user…")
        expect(tab.get_by_role("dialog").get_by_role("button", name="Ann")).to_be_visible()
        new_user(tab, "Bob")
        tab.get_by_role("navigation").get_by_role("link", name="tickets", exact=True).click()
        expect(tab.get_by_role("heading", name="One row is hidden from Bob")).to_be_visible()
        expect(tab.locator(".why-hidden")).to_contain_text("Ticket.own (helpdesk.py:")
        tab.get_by_label("View as").select_option("")
        expect(notice).to_be_visible()
