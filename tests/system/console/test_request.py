"""The page Request in a browser, mostly by keyboard: completion, lint, both leaves, variables, streams, history, links."""

from __future__ import annotations

import json
import re
import time

from playwright.sync_api import Browser, expect

from tests.support.running import Client
from tests.system.console.opening import Console, console

GRAPHQL, REST, VARIABLES = "GraphQL document", "REST request", "Variables as JSON"


def text(page: Console, label: str) -> str:
    """What an editor contains, without line ends and spaces."""
    return re.sub(r"\s+", "", page.editor(label).inner_text())


def expect_text(page: Console, label: str, expected: str) -> None:
    """Wait until an editor contains a text, but for line ends and spaces."""
    end = time.monotonic() + 10
    while (found := text(page, label)) != expected:
        assert time.monotonic() < end, found
        page.tab.wait_for_timeout(50)


def test_either_leaf_follows_the_other_with_price_rules_and_statement(admin: Client, browser: Browser) -> None:
    with console(browser, admin) as page:
        page.goto("request")
        page.write(GRAPHQL, '{ orders(first: 3, where: {total: {gte: "100"}}) { total customer { name } } }')
        expect(page.editor(REST)).to_contain_text("GET /orders?fields=total,customer(name)")
        expect(page.tab.get_by_role("status").filter(has_text="Depth")).to_contain_text(
            "Price 6 of 5000 = 3 orders × 2"
        )
        explanation = page.tab.get_by_role("region", name="Explanation")
        expect(explanation).to_contain_text("Order: read")
        explanation.get_by_role("tab", name="Statement").click()
        expect(explanation).to_contain_text("SELECT")
        explanation.get_by_role("tab", name="Plan").click()
        expect(explanation).to_contain_text("SCAN", ignore_case=True)
        explanation.get_by_role("tab", name="curl").click()
        expect(explanation).to_contain_text("--data")
        page.write(REST, "GET /users?fields=name&first=2&sort=name")
        expect(page.editor(GRAPHQL)).to_contain_text("usersConnection")
        expect(page.editor(GRAPHQL)).to_contain_text("name: ASC")
        page.tab.keyboard.press("Control+Enter")
        answer = page.tab.get_by_role("region", name="Answer")
        expect(answer).to_contain_text("200")
        expect(answer).to_contain_text("Ada Okonkwo")


def test_a_refusal_is_red_before_anything_is_sent_and_marks_its_place_after(admin: Client, browser: Browser) -> None:
    with console(browser, admin) as page:
        page.goto("request")
        page.write(GRAPHQL, "{ users(first: 100) { posts(first: 100) { comments(first: 100) { body } } } }")
        expect(page.tab.locator(".price.refused")).to_contain_text("TOO_COMPLEX")
        expect(page.editor(REST)).to_contain_text("# Nothing follows: The request could return 1010100 objects")
        expect(page.tab.get_by_role("region", name="REST leaf")).to_contain_text("waits for a valid request")
        page.write(REST, 'POST /users\n\n{"name": "", "email": "x@example.org"}')
        page.tab.keyboard.press("Control+Enter")
        expect(page.tab.get_by_role("region", name="Answer")).to_contain_text("422")
        expect(page.tab.locator(".cm-fault")).to_have_text('""')


def test_completion_lint_docs_and_format_by_keyboard(admin: Client, browser: Browser) -> None:
    with console(browser, admin) as page:
        page.goto("request")
        page.write(GRAPHQL, "{ ")
        page.tab.keyboard.type("usersCon")
        option = page.tab.get_by_role("option", name=re.compile("^usersConnection"))
        for _ in range(20):  # until the schema is read
            page.tab.keyboard.press("Control+Space")
            page.tab.wait_for_timeout(200)
            if option.is_visible():
                break
        expect(option).to_have_attribute("aria-selected", "true")
        page.tab.keyboard.press("Enter")
        page.tab.keyboard.insert_text("(first: 2) { nodes { name nonsense } } }")
        assert text(page, GRAPHQL).startswith("{usersConnection(first:2)")
        expect(page.tab.locator(".cm-lintRange-error").first).to_have_text("nonsense")
        page.write(GRAPHQL, "{users(first:2){name}}")
        page.tab.keyboard.press("Shift+Alt+F")
        expect(page.editor(GRAPHQL).locator(".cm-line")).to_have_text(
            ["{", "  users(first: 2) {", "    name", "  }", "}", ""]
        )
        page.tab.get_by_text("name", exact=True).first.hover()
        expect(page.tab.locator(".cm-hover")).to_contain_text("User.name: String!")


def test_variables_several_operations_tabs_history_and_a_link_without_a_token(admin: Client, browser: Browser) -> None:
    with console(browser, admin, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto("request")
        page.write(
            GRAPHQL, "query One($n: Int!) { users(first: $n) { name } }\nquery Two { posts(first: 1) { title } }"
        )
        page.tab.get_by_role("button", name="Variables").click()
        page.write(VARIABLES, '{"n": 2}')
        page.tab.get_by_label("Operation").select_option("Two")
        page.editor(GRAPHQL).focus()
        page.tab.keyboard.press("Control+Enter")
        answer = page.tab.get_by_role("region", name="Answer")
        expect(answer).to_contain_text("posts")
        page.tab.get_by_label("Operation").select_option("One")
        page.editor(GRAPHQL).focus()
        page.tab.keyboard.press("Control+Enter")
        expect(answer).to_contain_text("[2]")
        page.tab.get_by_role("button", name="Share").click()
        expect(page.tab.get_by_text("It has no token in it.")).to_be_visible()
        url = page.tab.evaluate("navigator.clipboard.readText()")
        assert admin.token not in url and "#r=" in url
        page.tab.get_by_role("button", name="+ New").click()
        assert text(page, GRAPHQL) in ("", "{…}orquery,mutation,subscription")
        page.tab.get_by_role("button", name="History").click()
        page.tab.get_by_role("dialog", name="History").get_by_role("button", name="One").first.click()
        expect(page.editor(GRAPHQL)).to_contain_text("query Two")
        stored = page.tab.evaluate("JSON.stringify({...localStorage})")
        assert admin.token not in stored and "query Two" in stored
        page.write(GRAPHQL, "{ viewer { subject } }")
        page.tab.goto(url)
        expect(page.editor(GRAPHQL)).to_contain_text("query Two")
        assert page.tab.url.endswith("/console/request")


def test_fields_are_chosen_in_a_tree(admin: Client, browser: Browser) -> None:
    with console(browser, admin) as page:
        page.goto("request")
        page.write(GRAPHQL, "{ users(first: 2) { name } }")
        expect(page.editor(REST)).to_contain_text("GET /users")
        page.tab.get_by_role("button", name="Fields").click()
        tree = page.tab.get_by_role("group", name="Fields")
        expect(tree.get_by_label("name", exact=False).first).to_be_checked()
        tree.get_by_label("email").check()
        expect(page.editor(GRAPHQL)).to_contain_text("email")
        tree.get_by_text("posts", exact=True).first.click()
        tree.get_by_label("title").first.check()
        expect_text(page, GRAPHQL, "{users(first:2){nameemailposts{title}}}")
        expect(page.editor(REST)).to_contain_text("fields=name,email,posts[first=10](title)")
        tree.get_by_label("title").first.uncheck()
        expect_text(page, GRAPHQL, "{users(first:2){nameemail}}")


def test_subscriptions_and_change_logs_run_as_streams(admin: Client, browser: Browser) -> None:
    user = admin.get("/users?first=1&fields=id").json()["data"][0]["id"]

    def rename(name: str) -> None:
        body = json.dumps({"name": name}).encode()
        assert admin.request("PATCH", f"/users/{user}", {"content-type": "application/json"}, body).status == 200

    with console(browser, admin) as page:
        page.goto("request")
        for label, written, other, followed, name in (
            (GRAPHQL, "subscription { userChanged { kind user { name } } }", REST, "GET /users/changes", "Ada One"),
            (REST, "GET /users/changes?fields=name", GRAPHQL, "cursor", "Ada Two"),
        ):
            page.write(label, written)
            expect(page.editor(other)).to_contain_text(followed)  # so all that was typed is there
            expect(page.tab.get_by_role("button", name=re.compile("^Follow"))).to_be_visible()
            page.editor(label).focus()
            with page.tab.expect_response(lambda response: "event-stream" in response.headers.get("content-type", "")):
                page.tab.keyboard.press("Control+Enter")
            rename(name)
            expect(page.tab.get_by_role("log", name="Events")).to_contain_text(name)
            page.tab.get_by_role("button", name="Stop").click()
            expect(page.tab.get_by_text("ended", exact=True)).to_be_visible()
    rename("Ada Okonkwo")
