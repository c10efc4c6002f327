"""refine with the providers of clients/refine: an app in Chromium, beside someone else who changes rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.fit.admin import bundle, check_types, compile_strictly, guide, install, opened, patch
from tests.fit.scenario import Scenarios, Tool
from tests.support.running import Client, NewDatabase, Service, served

TOOL = Tool("refine", "Admin pages", npm=("@refinedev/core", "@refinedev/react-hook-form"))


@pytest.fixture
def own(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample", "--cors-origins", "localhost") as service:
        yield service


def shows(page: Page, wanted: list[str]) -> None:
    expect(page.get_by_role("list", name="users").get_by_role("link")).to_have_text(wanted)


def asked(client: Client, query: str) -> list[str]:
    return [row["name"] for row in client.get(f"/users?fields=name&{query}").json()["data"]]


def test_refine(own: Service, scenario: Scenarios, tmp_path: Path) -> None:
    app = install("refine", tmp_path)
    with scenario("compile"):
        compile_strictly(app)
        check_types("refine", tmp_path)
    other = own.token_of("admin")
    with opened(bundle(app), own, other.token) as page:
        walk(page, other, scenario)
    newest = other.get("/posts?sort=-createdAt&first=1&fields=title").json()["data"][0]["title"]
    with opened(guide("refine", app), own, other.token) as page:
        expect(page.get_by_role("listitem").first).to_have_text(newest)


def walk(page: Page, other: Client, scenario: Scenarios) -> None:
    with scenario("read"):
        shows(page, asked(other, "sort=name&first=10"))
    with scenario("sort"):
        page.get_by_role("button", name="Descending").click()
        shows(page, asked(other, "sort=-name&first=10"))
    with scenario("page"):
        total = other.get("/users?count=exact&first=1").json()["page"]["total"]
        expect(page.get_by_text(f"{total} users")).to_be_visible()
        page.get_by_role("button", name="Page 2").click()
        shows(page, asked(other, "sort=-name&first=10&offset=10"))
    with scenario("where"):
        page.get_by_label("Name contains").fill("an")
        shows(page, asked(other, "sort=-name&first=10&name[contains]=an"))
    with scenario("in"):
        posts = other.get("/posts?first=5&sort=title&fields=title,author(name)").json()["data"]
        authors = page.get_by_role("list", name="authors").get_by_role("listitem")
        expect(authors).to_have_text([post["author"]["name"] for post in posts])
    with scenario("error"):
        page.get_by_role("button", name="Create").click()
        page.get_by_label("Name").fill("Aaron")
        page.get_by_label("Email").fill("nowhere")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("expected a match of")
    with scenario("create"):
        page.get_by_label("Email").fill("aaron@example.org")
        page.get_by_role("button", name="Save").click()
        shows(page, asked(other, "sort=name&first=10"))
    row = other.get("/users?email=aaron@example.org").json()["data"][0]
    path = f"/users/{row['id']}"
    with scenario("stream"):
        page.get_by_label("Name contains").fill("Aaron")
        shows(page, ["Aaron"])
        patch(other, path, {"name": "Aaron II"})
        shows(page, ["Aaron II"])
    with scenario("update"):
        page.get_by_role("link", name="Aaron II").click()
        expect(page.get_by_label("Name")).to_have_value("Aaron II")
        page.get_by_label("Name").fill("Aaron III")
        with page.expect_request(lambda request: request.method == "PATCH") as sent:
            page.get_by_role("button", name="Save").click()
        assert sent.value.post_data_json == {"name": "Aaron III"}, "what has not changed is not sent"
        assert sent.value.headers["if-match"] == '"2."'
        page.get_by_label("Name contains").fill("Aaron")
        shows(page, ["Aaron III"])
    with scenario("conflict"):
        page.get_by_role("link", name="Aaron III").click()
        expect(page.get_by_label("Name")).to_have_value("Aaron III")
        page.get_by_label("Name").fill("Aaron IV")
        patch(other, path, {"email": "aaron@example.net"})
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("Someone else has changed it meanwhile")
        assert other.get(f"{path}?fields=name,email").json() == {"name": "Aaron III", "email": "aaron@example.net"}
    with scenario("delete"):
        page.get_by_role("button", name="Back").click()
        page.get_by_label("Name contains").fill("Aaron")
        shows(page, ["Aaron III"])
        page.get_by_role("button", name="Delete").click()
        shows(page, [])
        assert other.get(path).status == 404
