"""The pages Activity and Admin in a browser: requests of both styles with their price and time, and migrations."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Browser, expect

from tests.support.running import Client
from tests.system.console.opening import console


def ask(client: Client, query: str) -> int:
    body = json.dumps({"query": query}).encode()
    return client.request("POST", "/graphql", {"content-type": "application/json"}, body).status


def test_requests_of_both_styles_lead_back_to_the_page_request(admin: Client, browser: Browser) -> None:
    assert ask(admin, 'query Cheap { users(first: 3, where: {name: {ne: "hidden words"}}) { name } }') == 200
    ask(admin, "query Dear { users(first: 100) { posts(first: 100) { comments(first: 100) { body } } } }")
    admin.get("/posts?first=2")
    with console(browser, admin) as page:
        tab = page.goto("activity")
        requests = tab.get_by_role("region", name="Requests")
        cheap = requests.get_by_role("row", name=re.compile("query Cheap: users"))
        expect(cheap.get_by_role("cell").nth(4)).to_have_text("3")
        expect(requests.get_by_role("row", name="GET /posts")).to_be_visible()
        expect(tab.get_by_role("img", name="Price against time").locator("canvas")).to_be_visible()
        tab.get_by_label("Style of requests").select_option("GraphQL")
        expect(requests.get_by_role("row", name="GET /posts")).to_have_count(0)
        tab.get_by_role("tab", name="Refused").click()
        dear = requests.get_by_role("row", name=re.compile("Dear"))
        expect(dear).to_contain_text("TOO_COMPLEX")
        expect(dear.get_by_role("cell").nth(4)).to_have_text(re.compile(r"^\d{7}$"))
        tab.get_by_role("tab", name="By statement").click()
        expect(tab.get_by_role("tabpanel")).to_contain_text("query Cheap: users")
        tab.get_by_role("tab", name="Recent").click()
        cheap.get_by_role("link").click()
        expect(page.editor("GraphQL document")).to_contain_text("query Cheap")
        assert "hidden words" not in page.editor("GraphQL document").inner_text()
        expect(tab.get_by_role("status").filter(has_text="Price")).to_contain_text("Price 3")


def test_the_migrations_of_the_project_have_a_page(admin: Client, browser: Browser) -> None:
    with console(browser, admin) as page:
        tab = page.goto("admin?tab=migrations")
        expect(tab.get_by_role("heading", name="This project has no migrations yet")).to_be_visible()
        expect(tab.get_by_role("tab", name="Migrations")).to_have_attribute("aria-selected", "true")
