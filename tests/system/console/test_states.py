"""axe on every state of the pages, in both themes: rows, tabs, dialogs, forms with faults, merges, answers, streams.

The short form looks at each fifth state of a page.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.axe import COLOURS, inject, violations
from tests.support.effort import sampled
from tests.support.running import Client
from tests.system.console.opening import Console, console
from tests.system.console.test_pages import an_order, begin_edit, patched

PICTURES = os.environ.get("CONSOLE_PICTURES")
"""A folder for a picture of each state, to look at."""
State = Callable[[Console, Client], object]


def in_row(tab: str) -> State:
    """A tab of a row's page."""

    def open_tab(page: Console, admin: Client) -> None:
        page.goto(f"data/users/{admin.get('/users?first=1&sort=name&fields=id').json()['data'][0]['id']}")
        page.tab.get_by_role("tab", name=tab).click()
        expect(page.tab.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        expect(page.tab.locator(".loading")).to_have_count(0)

    return open_tab


def on(path: str, *buttons: str, name: str = "") -> State:
    """A page after some buttons; `name` is that of the dialog that opens."""

    def press(page: Console, admin: Client) -> None:
        page.goto(path)
        for button in buttons:
            page.tab.get_by_role("button", name=button).first.click()
        if name:
            expect(page.tab.get_by_role("dialog", name=name)).to_be_visible()
        expect(page.tab.locator(".loading")).to_have_count(0)

    return press


def create_with_faults(page: Console, admin: Client) -> None:
    page.goto("data/orders?new=1")
    form = page.tab.get_by_role("dialog", name="New order")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_role("alert").first).to_be_visible()


def import_with_faults(page: Console, admin: Client) -> None:
    on("data/posts", "Copy · CSV", name="posts: copy, export, import")(page, admin)
    page.tab.get_by_role("button", name="Import", exact=True).click()
    expect(page.tab.get_by_role("alert")).to_be_visible()


def deletion(page: Console, admin: Client) -> None:
    page.goto(f"data/orders/{an_order(admin)['id']}")
    page.tab.get_by_role("button", name="Delete").click()
    expect(page.tab.get_by_role("dialog")).to_contain_text("it would work")


def merging(page: Console, admin: Client) -> None:
    row = patched(admin, an_order(admin), note="Both of us.")
    begin_edit(page, row, "Mine.")
    patched(admin, row, note="Theirs.", internalNote="Checked.")
    expect(page.tab.get_by_text("Someone else changed this row meanwhile.")).to_be_visible()
    page.tab.get_by_label(re.compile("^note of")).press("Enter")
    expect(page.tab.get_by_role("dialog", name="Someone else changed this row")).to_be_visible()


def editing(page: Console, admin: Client) -> None:
    begin_edit(page, patched(admin, an_order(admin), note="An edit."), "Typed")


def row_state(page: Console, admin: Client) -> None:
    page.goto(f"data/orders/{an_order(admin)['id']}")
    expect(page.tab.get_by_role("button", name="status paid")).to_be_visible()


def groups(page: Console, admin: Client) -> None:
    page.goto("data/orders")
    page.tab.get_by_label("Group by").select_option("status")
    page.tab.locator(".bars rect").first.wait_for()


def preview(page: Console, admin: Client) -> None:
    page.goto("data/orders")
    page.tab.locator("tbody tr").first.get_by_role("link").nth(1).focus()
    expect(page.tab.get_by_role("tooltip")).to_contain_text("name")


def sent(label: str, text: str, shown: str) -> State:
    """A request that was sent."""

    def send(page: Console, admin: Client) -> None:
        page.goto("request")
        with page.tab.expect_response("**/console/api/twin"):
            page.write(label, text)
        page.tab.keyboard.press("Control+Enter")
        expect(page.tab.get_by_role("region", name="Answer")).to_contain_text(shown)

    return send


def explained(tab: str) -> State:
    def show(page: Console, admin: Client) -> None:
        sent("GraphQL document", "{ users(first: 2) { name } }", "200")(page, admin)
        page.tab.get_by_role("region", name="Explanation").get_by_role("tab", name=tab).click()

    return show


def following(page: Console, admin: Client) -> None:
    page.goto("request")
    page.write("REST request", "GET /users/changes?fields=name")
    expect(page.tab.get_by_role("button", name=re.compile("^Follow"))).to_be_visible()
    page.tab.keyboard.press("Control+Enter")
    expect(page.tab.get_by_role("log", name="Events")).to_be_visible()


def live(page: Console, admin: Client) -> None:
    with page.tab.expect_response("**/orders/changes"):
        page.goto("live")
    patched(admin, an_order(admin), note="Seen live.")
    expect(page.tab.get_by_role("log")).to_contain_text("Seen live.")


def activity(tab: str) -> State:
    def show(page: Console, admin: Client) -> None:
        body = json.dumps({"query": "query Mine { nothing }"}).encode()
        admin.request("POST", "/graphql", {"content-type": "application/json"}, body)
        page.goto("activity")
        page.tab.get_by_role("tab", name=tab).click()

    return show


def viewing_as(page: Console, admin: Client) -> None:
    page.goto("data/posts")
    page.tab.get_by_label("View as").select_option("A user…")
    expect(page.tab.get_by_role("dialog").get_by_role("button", name="New user")).to_be_visible()


def pressed(key: str, name: str) -> State:
    def press(page: Console, admin: Client) -> None:
        page.goto("model")
        page.tab.get_by_role("heading", level=1).click()
        page.tab.keyboard.press(key)
        expect(page.tab.get_by_role("dialog", name=name)).to_be_visible()

    return press


def signed_out(page: Console, admin: Client) -> None:
    on("request", "Sign out")(page, admin)
    expect(page.tab.get_by_text("a code for one use")).to_be_visible()


STATES: dict[str, State] = {
    **{f"row: {tab}": in_row(tab) for tab in ("Fields", "Relations", "History", "As JSON", "As GraphQL")},
    "row: state": row_state,
    "table: groups": groups,
    "table: preview": preview,
    "table: nothing matches": on("data/orders?f.note=nothing-like-it"),
    "table: edit": editing,
    "dialog: merge": merging,
    "dialog: create": on("data/posts?new=1", name="New post"),
    "dialog: create with faults": create_with_faults,
    "dialog: delete": deletion,
    "dialog: import": import_with_faults,
    "dialog: view as": viewing_as,
    "dialog: palette": pressed("Control+k", "Go to"),
    "dialog: keys": pressed("?", "Keys"),
    "request: answer": sent("GraphQL document", "{ users(first: 2) { name posts(first: 2) { title } } }", "200"),
    "request: fault": sent("REST request", 'POST /users\n\n{"name": ""}', "422"),
    "request: refused": sent(
        "GraphQL document",
        "{ users(first: 100) { posts(first: 100) { comments(first: 100) { body } } } }",
        "TOO_COMPLEX",
    ),
    **{f"request: {tab}": explained(tab) for tab in ("Statement", "Plan", "curl", "Code")},
    "request: stream": following,
    "request: fields": on("request", "Fields"),
    "request: history": on("request", "History", name="History"),
    "live: events": live,
    **{f"activity: {tab}": activity(tab) for tab in ("Recent", "Slowest", "Refused", "By statement")},
    **{
        f"admin: {tab}": on(f"admin?tab={tab}")
        for tab in ("accounts", "clients", "keys", "signing-keys", "documents", "webhooks", "migrations")
    },
    "admin: new account": on("admin", "New account", name="New account"),
    "signed out": signed_out,
}


def picture(page: Console, state: str, theme: str) -> None:
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^a-z]+", "-", state.lower())
        page.tab.screenshot(path=f"{PICTURES}/{name}-{theme}.png")


@pytest.mark.parametrize("page_of", ["row", "table", "dialog", "request", "live", "activity", "admin", "signed out"])
def test_every_state_is_accessible_in_both_themes(admin: Client, browser: Browser, page_of: str) -> None:
    found: list[object] = []
    with console(browser, admin, bypass_csp=True, reduced_motion="reduce") as page:
        for state in sampled([state for state in STATES if state.partition(":")[0] == page_of], 5):
            STATES[state](page, admin)
            inject(page.tab)
            for theme in ("light", "dark"):
                page.tab.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
                picture(page, state, theme)
                found += [(state, theme, each) for each in violations(page.tab, COLOURS if theme == "dark" else "{}")]
    assert found == []
