"""refine with the providers of clients/refine: an app in Chromium, beside someone else who changes rows."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.fit.admin import bundle, check_types, compile_strictly, guide, install, opened
from tests.fit.admin_scene import Screen, walk
from tests.fit.scenario import Scenarios, Tool
from tests.support.running import Service

TOOL = Tool("refine", "Admin pages", npm=("@refinedev/core", "@refinedev/react-hook-form"))


class Refine(Screen):
    def sort_descending(self) -> None:
        self.page.get_by_role("button", name="Descending").click()

    def total(self, count: int) -> Locator:
        return self.page.get_by_text(f"{count} users")

    def turn(self) -> None:
        self.page.get_by_role("button", name="Page 2").click()

    def message(self) -> Locator:
        return self.page.get_by_role("status")

    def edit(self, path: str, old: str, new: str) -> None:
        self.page.get_by_role("link", name=old).click()
        name = self.page.get_by_label("Name", exact=True)
        expect(name).to_have_value(old)
        name.fill(new)

    def delete(self, name: str) -> None:
        self.page.get_by_role("button", name="Back").click()
        self.filter(name)
        self.shows([name])
        self.page.get_by_role("button", name="Delete").click()
        self.shows([])

    def authors(self) -> Locator:
        return self.page.get_by_role("list", name="authors").get_by_role("listitem")


def test_refine(own: Service, scenario: Scenarios, tmp_path: Path) -> None:
    app = install("refine", tmp_path)
    with scenario("compile"):
        compile_strictly(app)
        check_types("refine", tmp_path)
    other = own.token_of("admin")
    with opened(bundle(app), own, other.token) as page:
        walk(Refine(page, "ul[aria-label=users] a", "button", "icontains"), other, scenario)
        with scenario("nested"):
            posts = other.get("/posts?first=5&sort=title&fields=title,author(name)").json()["data"]
            nested = page.get_by_role("list", name="nested").get_by_role("listitem")
            expect(nested).to_have_text([post["author"]["name"] for post in posts])
    newest = other.get("/posts?sort=-createdAt&first=1&fields=title").json()["data"][0]["title"]
    with opened(guide("refine", app), own, other.token) as page:
        expect(page.get_by_role("listitem").first).to_have_text(newest)
