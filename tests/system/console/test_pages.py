"""Every page of the console in a browser: signing in, accessibility, edits of two people, roles, and stored scripts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.support.axe import COLOURS, inject, sideways, violations
from tests.support.effort import sampled
from tests.support.running import Client, Service
from tests.system.console.opening import PAGES, Console, console

HOSTILE = "<img src=x onerror=alert(1)>'\"</script><script>alert(2)</script>{{7*7}}"


def an_order(client: Client, status: str = "pending") -> dict[str, Any]:
    """A new order, in a state that leads on."""
    customer = client.get("/users?first=1&fields=id").json()["data"][0]["id"]
    made = client.post("/orders", {"customerId": customer, "total": "12.50", "note": "Ring twice."})
    assert made.status == 201, made.body
    row: dict[str, Any] = made.json()
    return row if row["status"] == status else patched(client, row, status=status)


def patched(client: Client, row: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What a PATCH of someone else makes of a row."""
    answer = client.request(
        "PATCH", f"/orders/{row['id']}", {"content-type": "application/json"}, json.dumps(changes).encode()
    )
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def link(service: Service) -> str:
    """The address that the terminal shows."""
    found = re.search(r"Console\s+(\S+#code=\S+)", service.out.text)
    assert found is not None, service.out.text
    return found[1]


def test_the_printed_link_signs_in_once_and_leaves_no_code_and_no_token(service: Service, browser: Browser) -> None:
    with console(browser, Client(service.url)) as page:
        page.tab.goto(link(service))
        expect(page.tab.get_by_role("heading", name="Request", level=1)).to_be_visible()
        assert "code" not in page.tab.url
        page.goto("admin")  # after a reload, too
        expect(page.tab.get_by_role("button", name="New account")).to_be_visible()
        page.tab.get_by_role("button", name="Sign out").click()
        expect(page.tab.get_by_text("a code for one use")).to_be_visible()
        stored = page.tab.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert "eyJ" not in stored and "session" not in stored
    with console(browser, Client(service.url)) as page:
        page.tab.goto(link(service))
        expect(page.tab.get_by_text("This link was used before.")).to_be_visible()
        page.tab.get_by_role("button", name="Look around").click()
        expect(page.tab.get_by_role("heading", name="Request", level=1)).to_be_visible()


def test_every_page_is_accessible_in_both_themes_and_fits_a_phone(admin: Client, browser: Browser) -> None:
    found: list[object] = []
    with console(browser, admin, bypass_csp=True, reduced_motion="reduce") as page:
        for path in PAGES:
            page.goto(path)
            expect(page.tab.locator(".loading")).to_have_count(0)
            inject(page.tab)
            for theme in ("light", "dark") if path in sampled(PAGES, 2) else ("light",):
                page.tab.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
                found += [(path, theme, each) for each in violations(page.tab, COLOURS if theme == "dark" else "{}")]
            found += [(path, each) for each in sideways(page.tab)]
    assert found == []


@pytest.mark.parametrize("seconds", [1, 60])
def test_a_read_that_comes_too_soon_is_sent_again_unless_the_wait_is_long(
    admin: Client, browser: Browser, seconds: int
) -> None:
    asked: list[str] = []

    def too_soon(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) > 1:
            route.continue_()
        else:
            problem = {"detail": "Too many requests of yours were new.", "code": "RATE_LIMITED"}
            headers = {"content-type": "application/problem+json", "retry-after": str(seconds)}
            route.fulfill(status=429, headers=headers, body=json.dumps(problem))

    with console(browser, admin) as page:
        page.tab.route(re.compile(r"/orders\?"), too_soon)
        page.goto("data/orders")
        if seconds == 60:
            page.tab.get_by_role("alert").get_by_role("button", name="Try again").click()
        expect(page.tab.locator("tbody tr")).to_have_count(25)
        assert len(asked) == 2


def begin_edit(page: Console, row: dict[str, Any], typed: str) -> None:
    """Open the table at a row, and type into its note with the keyboard alone."""
    page.goto(f"data/orders?f.note={row['note']}&sort=-createdAt")
    cell = page.tab.locator("tbody tr").first.locator("td", has_text=row["note"])
    cell.focus()
    page.tab.keyboard.press("Enter")
    expect(page.tab.get_by_label(re.compile("^note of"))).to_be_focused()
    page.tab.keyboard.press("Control+a")
    page.tab.keyboard.type(typed)


def test_of_two_who_edit_one_row_the_second_sees_both_values(admin: Client, browser: Browser) -> None:
    row = patched(admin, an_order(admin), note="Two at once.")
    with console(browser, admin) as page:
        begin_edit(page, row, "Mine.")
        patched(admin, row, note="Theirs.", internalNote="Checked.")
        expect(page.tab.get_by_text("Someone else changed this row meanwhile.")).to_be_visible()
        field = page.tab.get_by_label(re.compile("^note of"))
        expect(field).to_have_value("Mine.")  # what is typed stays
        field.press("Enter")
        merge = page.tab.get_by_role("dialog", name="Someone else changed this row")
        expect(merge.get_by_role("row", name=re.compile("^note"))).to_contain_text("Two at once.Theirs.Mine.")
        expect(merge.get_by_role("row", name=re.compile("^internalNote"))).to_contain_text("Checked.")
        expect(merge.get_by_role("radio", checked=True)).to_be_focused()
        assert admin.get(f"/orders/{row['id']}").json()["note"] == "Theirs."
        merge.get_by_role("button", name="Save the choice").click()
        expect(merge).to_be_hidden()
    now = admin.get(f"/orders/{row['id']}").json()
    assert (now["note"], now["internalNote"]) == ("Mine.", "Checked.")


def test_a_row_offers_the_moves_of_its_state_and_a_race_is_told_what_is_allowed(
    admin: Client, browser: Browser
) -> None:
    row = an_order(admin)
    with console(browser, admin) as page:
        page.goto(f"data/orders/{row['id']}")
        moves = page.tab.get_by_role("button", name=re.compile("^status "))
        expect(moves).to_have_text(["status paid", "status cancelled"])
        patched(admin, row, status="cancelled")
        moves.first.click()
        page.tab.get_by_role("button", name="Save the choice").click()
        expect(page.tab.get_by_role("alert")).to_contain_text("Allowed: nothing.")
        expect(moves).to_have_count(0)


@pytest.mark.parametrize("role", ["anonymous", "staff"])
def test_viewed_as_a_role_the_table_shows_what_the_role_gets(
    service: Service, admin: Client, browser: Browser, role: str
) -> None:
    client = Client(service.url) if role == "anonymous" else service.token_of(role)
    with console(browser, admin) as page:
        page.goto("data/posts")
        page.tab.get_by_label("View as").select_option(role)
        expect(page.tab.get_by_text(f"as {role}")).to_be_visible()
        given = client.get("/posts?first=25").json()["data"]
        rows = page.tab.locator("tbody tr")
        expect(rows).to_have_count(len(given))
        links, heads = rows.locator("td:first-child a"), page.tab.locator("thead tr:first-child th")
        ids = "links => links.map(link => link.href.split('/').at(-1))"
        page.check_shows(lambda: links.evaluate_all(ids), [row["id"] for row in given])
        own = {name for name in given[0] if not name.endswith("Id")}
        page.check_shows(lambda: {text.strip() for text in heads.all_inner_texts()} - {"author"}, own)
        page.tab.get_by_label("View as").select_option("")
        expect(page.tab.get_by_text(f"as {role}")).to_have_count(0)


def test_viewed_as_a_user_rows_of_ones_own_are_shown(service: Service, admin: Client, browser: Browser) -> None:
    boss = admin.get("/users?first=1&fields=id").json()["data"][0]["id"]  # has an account with a role
    orders = admin.get("/orders?first=100&fields=customerId").json()["data"]
    order = next(each for each in orders if each["customerId"] != boss)
    with console(browser, admin) as page:
        page.goto("data/orders")
        page.tab.get_by_label("View as").select_option("A user…")
        ask = page.tab.get_by_role("dialog", name="View as a user")
        expect(ask.get_by_role("list", name="Users").get_by_role("button").first).to_be_visible()
        ask.get_by_label("Name, or id of the user").fill(order["customerId"])
        page.tab.keyboard.press("Enter")
        name = admin.get(f"/users/{order['customerId']}").json()["name"]
        expect(page.tab.locator(".who")).to_contain_text(f"as {name}")
        own = service.token_of(user=order["customerId"]).get("/orders?first=25&fields=id").json()["data"]
        expect(page.tab.locator("tbody tr")).to_have_count(len(own))
        expect(page.tab.locator("thead th", has_text="internalNote")).to_have_count(0)


def test_a_masked_field_says_why(admin: Client, browser: Browser) -> None:
    user = admin.get("/users?first=1&sort=-name&fields=id").json()["data"][0]["id"]
    with console(browser, admin) as page:
        page.goto(f"data/users/{user}")
        page.tab.get_by_label("View as").select_option("A user…")
        page.tab.get_by_role("list", name="Users").get_by_role("button", name="Niamh").click()
        expect(page.tab.locator(".who")).to_contain_text("as Niamh")
        hidden = page.tab.locator("dd", has_text="hidden by a rule")
        expect(hidden).to_have_count(1)
        expect(hidden).to_contain_text("User.own_email (model.py:")
        hidden.get_by_role("button", name="Why is email hidden?").click()
        why = page.tab.get_by_role("dialog", name="Why?")
        expect(why).to_contain_text("not allowed")
        expect(why.get_by_label("May").locator("option:checked")).to_have_text("Niamh O'Sullivan")


def test_what_is_stored_is_shown_and_never_run(service: Service, admin: Client, browser: Browser) -> None:
    made = admin.post("/users", {"name": HOSTILE, "email": "evil@example.org"}).json()
    author = service.token_of("signed_in", user=made["id"])
    assert author.post("/posts", {"title": HOSTILE, "body": HOSTILE, "authorId": made["id"]}).status == 201
    with console(browser, admin) as page:
        page.goto("data/posts?sort=-createdAt")
        expect(page.tab.get_by_text(HOSTILE).first).to_be_visible()
        page.goto(f"data/users/{made['id']}")
        expect(page.tab.get_by_role("heading", level=1)).to_have_text(HOSTILE)
        page.tab.get_by_role("tab", name="Relations").click()
        expect(page.tab.get_by_role("cell", name=HOSTILE).first).to_be_visible()
        assert page.tab.locator("main img, main script").count() == 0


def test_a_change_is_seen_live_and_a_new_row_is_made_by_a_form(admin: Client, browser: Browser) -> None:
    with console(browser, admin) as live, console(browser, admin) as page:
        with live.tab.expect_response("**/orders/changes"):
            live.goto("live")
        page.goto("data/orders?new=1")
        form = page.tab.get_by_role("dialog", name="New order")
        expect(form.get_by_label("total")).to_be_focused()
        form.get_by_role("button", name="Create").click()
        expect(form.get_by_role("alert")).to_be_visible()
        expect(form.get_by_label("total")).to_have_attribute("aria-invalid", "true")
        form.get_by_label("total").fill("99.95")
        form.get_by_label("customer").press_sequentially("Niamh")
        form.get_by_role("listbox", name="users").get_by_role("option").first.click()
        form.get_by_role("button", name="Create").click()
        expect(form).to_be_hidden()
        expect(live.tab.get_by_role("log")).to_contain_text("created")
        made = admin.get("/orders?sort=-createdAt&first=1&fields=total,customer(name)").json()["data"][0]
        assert made == {"total": "99.95", "customer": {"name": "Niamh O'Sullivan"}}


def test_a_related_row_is_previewed(admin: Client, browser: Browser) -> None:
    row = an_order(admin)
    customer = admin.get(f"/users/{row['customerId']}").json()
    with console(browser, admin) as page:
        page.goto("data/orders?sort=-createdAt")
        link = page.tab.locator("tbody tr").first.get_by_role("link", name=customer["name"])
        link.hover()
        tip = page.tab.get_by_role("tooltip")
        expect(tip).to_contain_text(customer["email"])
        expect(link).to_have_attribute("aria-describedby", tip.get_attribute("id") or "")
        page.tab.mouse.move(0, 0)
        expect(tip).to_have_count(0)


def test_a_deletion_is_tried_before_it_is_made(admin: Client, browser: Browser) -> None:
    row = an_order(admin)
    with console(browser, admin) as page:
        page.goto(f"data/orders/{row['id']}")
        page.tab.get_by_role("button", name="Delete").click()
        ask = page.tab.get_by_role("dialog")
        expect(ask).to_contain_text("it would work")
        assert admin.get(f"/orders/{row['id']}").status == 200
        ask.get_by_role("button", name="Delete").click()
        expect(page.tab.get_by_role("heading", name="orders", level=1)).to_be_visible()
    assert admin.get(f"/orders/{row['id']}").status == 404


def test_why_names_the_rule_and_the_palette_goes_anywhere(admin: Client, browser: Browser) -> None:
    user = admin.get("/users?first=1&sort=-name&fields=id,name").json()["data"][0]
    with console(browser, admin) as page:
        page.goto("request")
        page.tab.get_by_role("heading", level=1).click()
        page.tab.keyboard.press("Control+k")
        expect(page.tab.get_by_role("dialog", name="Go to").get_by_role("combobox")).to_be_focused()
        page.tab.keyboard.insert_text(user["id"])
        option = page.tab.get_by_role("option", name=user["name"])
        expect(option).to_be_visible()
        page.tab.keyboard.press("Enter")
        expect(page.tab.get_by_role("heading", level=1)).to_have_text(user["name"])
        page.tab.get_by_role("button", name="Why?").click()
        why = page.tab.get_by_role("dialog", name="Why?")
        why.get_by_label("May").select_option("anonymous")
        why.get_by_label("with").select_option("email")
        expect(why).to_contain_text("not allowed")
        expect(why).to_contain_text("model.py:")
        page.tab.keyboard.press("Escape")
        expect(why).to_be_hidden()
        page.tab.keyboard.press("?")
        expect(page.tab.get_by_role("dialog", name="Keys")).to_be_visible()


def test_the_reference_has_both_documents(admin: Client, browser: Browser) -> None:
    with console(browser, admin) as page:
        page.goto("model")
        page.tab.get_by_role("link", name="Reference").click()
        schema = page.tab.get_by_role("region", name="GraphQL schema")
        operations = page.tab.get_by_role("region", name="REST operations")
        expect(schema).to_contain_text("type Post implements Node")
        expect(operations).to_contain_text("PATCH /posts/{id}")
        page.tab.get_by_label("Filter both documents").fill("comment")
        expect(operations).not_to_contain_text("PATCH /posts/{id}")
        operations.get_by_text("GET /comments/{id}").click()
        expect(operations).to_contain_text("Answers 200")
