"""react-admin with the provider of clients/react-admin: an app in Chromium, beside someone else who changes rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.fit.admin import bundle, check_types, compile_strictly, guide, install, opened, patch
from tests.fit.scenario import Scenarios, Tool
from tests.support.running import Client, NewDatabase, Service, served

TOOL = Tool("react-admin", "Admin pages", npm=("react-admin",))


@pytest.fixture
def own(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample", "--cors-origins", "localhost") as service:
        yield service


def shows(page: Page, wanted: list[str]) -> None:
    expect(page.locator("tbody .column-name")).to_have_text(wanted)


def asked(client: Client, query: str) -> list[str]:
    return [row["name"] for row in client.get(f"/users?fields=name&{query}").json()["data"]]


def edit(page: Page, path: str, old: str, new: str) -> None:
    """Open the form and type a name. The form is filled from the list first, and anew when the row has been read."""
    with page.expect_response(lambda response: response.url.endswith(path)):
        page.get_by_text(old).click()
    name, save = page.get_by_label("Name", exact=True), page.get_by_role("button", name="Save")
    for _ in range(10):
        name.fill(new)
        page.wait_for_timeout(300)
        if save.is_enabled():
            return


def test_react_admin(own: Service, scenario: Scenarios, tmp_path: Path) -> None:
    app = install("react-admin", tmp_path)
    with scenario("compile"):
        compile_strictly(app)
        check_types("react-admin", tmp_path)
    other = own.token_of("admin")
    with opened(bundle(app), own, other.token) as page:
        walk(page, other, scenario)
    newest = other.get("/posts?sort=-createdAt&first=1&fields=title").json()["data"][0]["title"]
    with opened(guide("react-admin", app), own, other.token) as page:
        expect(page.locator("tbody .column-title").first).to_have_text(newest)


def walk(page: Page, other: Client, scenario: Scenarios) -> None:
    with scenario("read"):
        shows(page, asked(other, "sort=name&first=10"))
    with scenario("sort"):
        page.locator("thead .column-name").get_by_role("button").click()
        shows(page, asked(other, "sort=-name&first=10"))
    with scenario("page"):
        total = other.get("/users?count=exact&first=1").json()["page"]["total"]
        expect(page.get_by_text(f"1-10 of {total}")).to_be_visible()
        page.get_by_role("button", name="Go to page 2").click()
        shows(page, asked(other, "sort=-name&first=10&offset=10"))
    with scenario("where"):
        page.get_by_label("Name contains").fill("an")
        shows(page, asked(other, "sort=-name&first=10&name[contains]=an"))
        page.get_by_label("Name contains").fill("")
        expect(page.get_by_text(f"1-10 of {total}")).to_be_visible()
    with scenario("error"):
        page.get_by_role("link", name="Create").click()
        page.get_by_label("Name", exact=True).fill("Aaron")
        page.get_by_label("Email").fill("nowhere")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".ra-input-email")).to_contain_text("expected a match of")
    with scenario("create"):
        page.get_by_label("Email").fill("aaron@example.org")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_label("Name contains")).to_be_visible()
        (row,) = other.get("/users?email=aaron@example.org").json()["data"]
        assert row["name"] == "Aaron"
        page.get_by_label("Name contains").fill("Aaron")
        shows(page, ["Aaron"])
    path = f"/users/{row['id']}"
    with scenario("stream"):
        patch(other, path, {"name": "Aaron II"})
        shows(page, ["Aaron II"])
    with scenario("update"):
        edit(page, path, "Aaron II", "Aaron III")
        with page.expect_request(lambda request: request.method == "PATCH") as sent:
            page.get_by_role("button", name="Save").click()
        assert sent.value.post_data_json == {"name": "Aaron III"}, "what has not changed is not sent"
        assert sent.value.headers["if-match"] == '"2."'
        shows(page, ["Aaron III"])
    with scenario("conflict"):
        edit(page, path, "Aaron III", "Aaron IV")
        patch(other, path, {"email": "aaron@example.net"})
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("Someone else has changed it meanwhile")
        assert other.get(f"{path}?fields=name,email").json() == {"name": "Aaron III", "email": "aaron@example.net"}
    with scenario("delete"):
        page.reload()
        page.get_by_role("button", name="Delete").click()
        confirm = page.get_by_role("button", name="Confirm")
        confirm.click()
        expect(page.get_by_label("Name contains")).to_be_visible()
        assert other.get(path).status == 404
    with scenario("in"):
        page.get_by_role("menuitem", name="Posts").click()
        posts = other.get("/posts?first=5&sort=title&fields=title,author(name)").json()["data"]
        expect(page.locator("tbody .column-authorId")).to_have_text([post["author"]["name"] for post in posts])
    with scenario("nested"):
        author = other.get("/posts?first=1&fields=author(id,name)").json()["data"][0]["author"]
        titles = other.get(f"/users/{author['id']}/posts?first=5&sort=-id&fields=title").json()["data"]
        page.goto(re.sub(r"#.*", "", page.url) + f"#/users/{author['id']}")
        expect(page.locator("tbody .column-title")).to_have_text([post["title"] for post in titles])
