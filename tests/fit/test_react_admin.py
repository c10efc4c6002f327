"""react-admin with the provider of clients/react-admin: an app in Chromium, beside someone else who changes rows."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.fit.admin import bundle, check_types, compile_strictly, guide, install, opened
from tests.fit.admin_scene import Screen, walk
from tests.fit.scenario import Scenarios, Tool
from tests.support.running import Service

TOOL = Tool("react-admin", "Admin pages", npm=("react-admin",))


class ReactAdmin(Screen):
    def sort_descending(self) -> None:
        self.page.locator("thead .column-name").get_by_role("button").click()

    def total(self, count: int) -> Locator:
        return self.page.get_by_text(f"1-10 of {count}")

    def turn(self) -> None:
        self.page.get_by_role("button", name="Go to page 2").click()

    def message(self) -> Locator:
        return self.page.locator(".ra-input-email")

    def edit(self, path: str, old: str, new: str) -> None:
        """The form is filled from the list first, and anew when the row has been read."""
        with self.page.expect_response(lambda response: response.url.endswith(path)):
            self.page.get_by_text(old).click()
        name, save = self.page.get_by_label("Name", exact=True), self.page.get_by_role("button", name="Save")
        for _ in range(10):
            name.fill(new)
            self.page.wait_for_timeout(300)
            if save.is_enabled():
                return

    def delete(self, name: str) -> None:
        self.page.reload()
        self.page.get_by_role("button", name="Delete").click()
        self.page.get_by_role("button", name="Confirm").click()

    def authors(self) -> Locator:
        self.page.get_by_role("menuitem", name="Posts").click()
        return self.page.locator("tbody .column-authorId")


def test_react_admin(own: Service, scenario: Scenarios, tmp_path: Path) -> None:
    app = install("react-admin", tmp_path)
    with scenario("compile"):
        compile_strictly(app)
        check_types("react-admin", tmp_path)
    other = own.token_of("admin")
    with opened(bundle(app), own, other.token) as page:
        walk(ReactAdmin(page, "tbody .column-name", "link", "contains"), other, scenario)
        with scenario("nested"):
            author = other.get("/posts?first=1&fields=author(id,name)").json()["data"][0]["author"]
            titles = other.get(f"/users/{author['id']}/posts?first=5&sort=-id&fields=title").json()["data"]
            page.goto(re.sub(r"#.*", "", page.url) + f"#/users/{author['id']}")
            expect(page.locator("tbody .column-title")).to_have_text([post["title"] for post in titles])
    newest = other.get("/posts?sort=-createdAt&first=1&fields=title").json()["data"][0]["title"]
    with opened(guide("react-admin", app), own, other.token) as page:
        expect(page.locator("tbody .column-title").first).to_have_text(newest)
