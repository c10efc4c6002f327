"""What a person does with any admin page, beside someone else who changes rows: the scene of react-admin and refine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from playwright.sync_api import Locator, Page, expect

from tests.fit.admin import patch
from tests.fit.scenario import Scenarios
from tests.support.running import Client


@dataclass
class Screen(ABC):
    """A page with a list of users, and forms to create and edit them; where a tool has what."""

    page: Page

    names: str
    """The selector of the names in the list."""
    create: Literal["button", "link"]
    """The role of what opens the form of a new user."""
    contains: str
    """The operator that the filter of the list means."""

    @abstractmethod
    def sort_descending(self) -> None: ...

    @abstractmethod
    def total(self, count: int) -> Locator:
        """What says how many users there are."""

    @abstractmethod
    def turn(self) -> None:
        """Go to the second page."""

    @abstractmethod
    def message(self) -> Locator:
        """What is said of the e-mail address in the form."""

    @abstractmethod
    def edit(self, path: str, old: str, new: str) -> None:
        """Open the form of a user in the list, and type a new name."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete the user whose form is open."""

    @abstractmethod
    def authors(self) -> Locator:
        """The authors of five posts, by title."""

    def filter(self, text: str) -> None:
        self.page.get_by_label("Name contains").fill(text)

    def save(self) -> None:
        self.page.get_by_role("button", name="Save").click()

    def shows(self, wanted: list[str]) -> None:
        expect(self.page.locator(self.names)).to_have_text(wanted)


def walk(screen: Screen, other: Client, scenario: Scenarios) -> None:
    """Walk through the scenarios."""
    page = screen.page
    with scenario("read"):
        screen.shows(_names(other, "sort=name"))
    with scenario("sort"):
        screen.sort_descending()
        screen.shows(_names(other, "sort=-name"))
    with scenario("page"):
        total = other.get("/users?count=exact&first=1").json()["page"]["total"]
        expect(screen.total(total)).to_be_visible()
        screen.turn()
        screen.shows(_names(other, "sort=-name&offset=10"))
    with scenario("where"):
        screen.filter("an")
        screen.shows(_names(other, f"sort=-name&name[{screen.contains}]=an"))
        screen.filter("")
        expect(screen.total(total)).to_be_visible()
    with scenario("error"):
        page.get_by_role(screen.create, name="Create").click()
        page.get_by_label("Name", exact=True).fill("Aaron")
        page.get_by_label("Email").fill("nowhere")
        screen.save()
        expect(screen.message()).to_contain_text("expected a match of")
    with scenario("create"):
        page.get_by_label("Email").fill("aaron@example.org")
        screen.save()
        screen.filter("Aaron")
        screen.shows(["Aaron"])
        (row,) = other.get("/users?email=aaron@example.org").json()["data"]
        assert row["name"] == "Aaron"
    path = f"/users/{row['id']}"
    with scenario("stream"):
        patch(other, path, {"name": "Aaron II"})
        screen.shows(["Aaron II"])
    with scenario("update"):
        screen.edit(path, "Aaron II", "Aaron III")
        with page.expect_request(lambda request: request.method == "PATCH") as sent:
            screen.save()
        assert sent.value.post_data_json == {"name": "Aaron III"}, "what has not changed is not sent"
        assert sent.value.headers["if-match"] == '"2."'
        screen.filter("Aaron")
        screen.shows(["Aaron III"])
    with scenario("conflict"):
        screen.edit(path, "Aaron III", "Aaron IV")
        patch(other, path, {"email": "aaron@example.net"})
        screen.save()
        expect(page.get_by_role("alert")).to_contain_text("Someone else has changed it meanwhile")
        assert other.get(f"{path}?fields=name,email").json() == {"name": "Aaron III", "email": "aaron@example.net"}
    with scenario("delete"):
        screen.delete("Aaron III")
        expect(page.get_by_label("Name contains")).to_be_visible()
        assert other.get(path).status == 404
    with scenario("in"):
        posts = other.get("/posts?first=5&sort=title&fields=title,author(name)").json()["data"]
        expect(screen.authors()).to_have_text([post["author"]["name"] for post in posts])


def _names(client: Client, query: str) -> list[str]:
    return [row["name"] for row in client.get(f"/users?fields=name&first=10&{query}").json()["data"]]
