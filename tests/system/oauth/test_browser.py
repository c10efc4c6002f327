"""The pages of the authorization server in Chromium, by keyboard alone, without script: they work, they can be read by
everyone, and no other site can show them as its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from diptych.cli.records import run_on_store
from diptych.db.store import Store
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.revocation_list import RevocationList
from tests.support.cases import cases
from tests.support.effort import sampled
from tests.support.running import NewDatabase, Service, served
from tests.system.oauth.browsing import VERIFIER, Site, authorize_url, chromium

EMAIL, PASSWORD = "ann@example.org", "correct horse"
OTHER, LONG_EMAIL = "ben@example.org", f"{'anastasia' * 7}@{'example' * 8}.org"
LONG_NAME = "Wonderful" * 11
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PAGES = ("sign in", "wrong", "consent", "registered", "failure", "device", "confirm", "connected")
NUMBERS = itertools.count()
REDIRECTS = ("http://127.0.0.1/done", "http://127.0.0.1/on", "http://[::1]/done")


@dataclass(frozen=True)
class Stage:
    """A service with accounts and clients, and the site of the clients."""

    service: Service
    site: Site
    clients: dict[str, str]

    def address(self, client: str = "Photo Album", path: str = "/done", scope: str = "posts:read posts:write") -> str:
        return authorize_url(self.service.url, self.clients[client], self.site.url + path, scope)

    def registered(self) -> str:
        """The same, for a client that registered itself."""
        body = {"redirect_uris": [f"{self.site.url}/done"], "client_name": "My very own app"}
        found = self.service.post("/oauth/register", body).json()
        return authorize_url(self.service.url, found["client_id"], f"{self.site.url}/done", "openid read")

    def user_code(self, client: str) -> str:
        """The code of a device that waits."""
        form = {"content-type": "application/x-www-form-urlencoded"}
        body = urlencode({"client_id": self.clients[client]}).encode()
        return str(self.service.request("POST", "/oauth/device_authorization", form, body).json()["user_code"])


@pytest.fixture(scope="module")
def stage(new_sqlite: NewDatabase) -> Iterator[Stage]:
    database = new_sqlite()
    with served(database, "--request-timeout=60", "--registration-origins=http://127.0.0.1") as service, Site() as site:
        clients = run_on_store({"database": database, "model": None}, prepare)
        yield Stage(service, site, clients)


async def prepare(store: Store, revoked: RevocationList) -> dict[str, str]:
    """Add accounts and clients; gives the ids of the clients by their names."""
    for email in (EMAIL, OTHER, LONG_EMAIL):
        await Accounts(store, revoked).add(email, PASSWORD)
    clients = [await Clients(store, revoked).add(name, REDIRECTS, device=True) for name in ("Photo Album", LONG_NAME)]
    return {client.name: client.id for client, _ in clients}


@pytest.fixture(scope="module")
def browser(stage: Stage) -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a browser that runs no script, and that complains of nothing."""
    context = browser.new_context(java_script_enabled=False)
    yield from watched(context)


def watched(context: BrowserContext) -> Iterator[Page]:
    said: list[str] = []
    context.on("console", lambda message: said.append(message.text))
    yield context.new_page()
    context.close()
    # the pages load nothing: what is missing is an icon, or a client that is not there any more
    assert [text for text in said if not text.startswith("Failed to load resource")] == []


def type_in(page: Page, email: str = EMAIL, password: str = PASSWORD) -> None:
    """Sign in, from the first field on, in which the keyboard is once the page is drawn."""
    expect(page.get_by_label("E-mail")).to_be_focused()
    page.keyboard.type(email)
    page.keyboard.press("Tab")
    page.keyboard.type(password)
    page.keyboard.press("Enter")


def signed_in(page: Page, stage: Stage, email: str = EMAIL, **asked: str) -> None:
    """Go to the consent page."""
    page.goto(stage.address(**asked))
    type_in(page, email)
    expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()


def press(page: Page, button: str) -> None:
    """Press a button by the keyboard."""
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == button:
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"the keyboard does not reach {button!r}")


# the way through


def test_who_signs_in_and_allows_is_led_back_with_a_code(page: Page, stage: Stage) -> None:
    signed_in(page, stage)
    press(page, "Allow")
    query = stage.site.next_query()
    assert query.keys() == {"code", "state", "iss"}
    assert query["state"] == "s&t=é"
    assert query["iss"] == stage.service.url
    form = {
        "grant_type": "authorization_code",
        "code": query["code"],
        "redirect_uri": f"{stage.site.url}/done",
        "client_id": stage.clients["Photo Album"],
        "code_verifier": VERIFIER,
    }
    headers = {"content-type": "application/x-www-form-urlencoded"}
    token = stage.service.request("POST", "/oauth/token", headers, urlencode(form).encode()).json()
    assert token["scope"] == "posts:read posts:write"
    assert stage.service.signed_in(token["access_token"]).get("/posts?first=1").status == 200


def test_who_does_not_allow_it_is_led_back_without_a_code(page: Page, stage: Stage) -> None:
    signed_in(page, stage)
    press(page, "Do not allow")
    query = stage.site.next_query()
    assert query["error"] == "access_denied"
    assert query["state"] == "s&t=é"
    assert query["iss"] == stage.service.url
    assert "code" not in query


def test_who_is_signed_in_is_asked_at_once(page: Page, stage: Stage) -> None:
    signed_in(page, stage)
    page.goto(stage.address())
    expect(page.get_by_role("heading")).to_have_text("Allow Photo Album to act for you?")


def test_a_wrong_password_is_told_and_the_address_stays(page: Page, stage: Stage) -> None:
    page.goto(stage.address())
    type_in(page, password="wrong horse")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("The e-mail or the password is not right.")
    for label, value in {"E-mail": EMAIL, "Password": ""}.items():
        field = page.get_by_label(label)
        expect(field).to_have_value(value)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description("The e-mail or the password is not right.")
    expect(page.get_by_label("Password")).to_be_focused()
    expect(page).to_have_title("Not signed in yet")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()


def test_another_account_can_be_used(page: Page, stage: Stage) -> None:
    signed_in(page, stage)
    expect(page.get_by_text(f"Signed in as {EMAIL}")).to_be_visible()
    press(page, "Use another account")
    expect(page.get_by_role("heading")).to_have_text("Sign in")
    type_in(page, OTHER)
    expect(page.get_by_text(f"Signed in as {OTHER}")).to_be_visible()


# the keyboard


def test_the_keyboard_begins_in_the_first_empty_field_and_reaches_everything_in_order(page: Page, stage: Stage) -> None:
    page.goto(stage.address())
    email, password = page.get_by_label("E-mail"), page.get_by_label("Password")
    expect(email).to_be_focused()
    button = page.get_by_role("button")
    for key, there in (("Tab", password), ("Tab", button), ("Shift+Tab", password), ("Shift+Tab", email)):
        page.keyboard.press(key)
        expect(there).to_be_focused()
    type_in(page)
    expect(page.get_by_role("heading")).to_have_text("Allow Photo Album to act for you?")
    for name in ("Do not allow", "Allow", "Use another account"):
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name=name, exact=True)).to_be_focused()


def test_where_the_keyboard_is_can_be_seen(page: Page, stage: Stage) -> None:
    page.goto(stage.address())
    expect(page.get_by_label("E-mail")).to_be_focused()
    outline = (
        "(() => { const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth] })()"
    )
    for _ in range(3):
        style, width = page.evaluate(outline)
        assert style == "solid"
        assert float(width.removesuffix("px")) >= 2
        page.keyboard.press("Tab")


def test_enter_alone_allows_nothing(page: Page, stage: Stage) -> None:
    signed_in(page, stage)
    page.keyboard.press("Enter")
    press(page, "Do not allow")
    assert stage.site.next_query()["error"] == "access_denied"


# what can be read


STYLES = """[...document.querySelectorAll('body *')].filter(e => e.getClientRects().length).map(e => {
  const own = getComputedStyle(e), behind = e.tagName == 'INPUT' || e.tagName == 'BUTTON' ? e.parentElement : e;
  const ground = start => {
    for (let at = start; at; at = at.parentElement) {
      const found = getComputedStyle(at).backgroundColor;
      if (found != 'rgba(0, 0, 0, 0)') return found;
    }
  };
  const text = [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) || e.tagName == 'INPUT';
  const edge = e.tagName == 'INPUT' ? own.borderTopColor : null;
  return {name: e.tagName + ' ' + e.textContent.trim().slice(0, 30), text, color: own.color, ground: ground(e),
          edge, behind: ground(behind)};
})"""


def luminance(color: str) -> float:
    """How bright a colour is (WCAG 2.2)."""
    parts = [int(part) / 255 for part in color.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def show(page: Page, stage: Stage, which: str, client: str = "Photo Album", email: str = EMAIL) -> None:
    """Go to one of the pages."""
    if which == "failure":
        page.goto(authorize_url(stage.service.url, "nobody", stage.site.url))
        return
    if which in ("device", "confirm", "connected"):
        show_device(page, stage, which, client, email)
        return
    address = stage.registered() if which == "registered" else stage.address(client, scope="openid email read write")
    page.goto(address)
    if which in ("consent", "registered"):
        type_in(page, email)
        expect(page.get_by_role("list")).to_be_visible()
    elif which == "wrong":
        type_in(page, f"x{next(NUMBERS)}{email}")  # of another account each time, so that nobody has to wait
        expect(page.get_by_role("alert")).to_be_visible()


def show_device(page: Page, stage: Stage, which: str, client: str = "Photo Album", email: str = EMAIL) -> None:
    """Sign in and, for a later page, type the code of a device and allow it."""
    page.goto(f"{stage.service.url}/oauth/device")
    type_in(page, email)
    expect(page.get_by_label("Code")).to_be_focused()
    if which != "device":
        page.keyboard.type(stage.user_code(client).lower())
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Do not allow")).to_be_focused()
    if which == "connected":
        press(page, "Allow")
        expect(page.get_by_role("heading")).to_have_text("Connected")


def test_a_device_is_connected_by_typing_its_code(page: Page, stage: Stage) -> None:
    page.goto(f"{stage.service.url}/oauth/device")
    type_in(page)
    expect(page.get_by_label("Code")).to_be_focused()
    page.keyboard.type("BCDF-GHJK")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not right")
    page.keyboard.type(stage.user_code("Photo Album"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("Connect Photo Album?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("Not connected")


@cases("which", sampled(PAGES, 6))  # test_look.py looks at all pages
def test_everyone_can_read_the_pages(browser: Browser, stage: Stage, which: str) -> None:
    """Text and fields stand out in light and in dark; nothing is cut off on a small screen or in large letters."""
    for page in watched(browser.new_context(java_script_enabled=False)):
        show(page, stage, which, LONG_NAME, LONG_EMAIL)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            stands_out(page, scheme)
        is_whole(page)


def stands_out(page: Page, scheme: str) -> None:
    found = page.evaluate(STYLES)
    assert sum(each["text"] for each in found) >= 2
    for each in found:
        if each["text"]:
            assert contrast(each["color"], each["ground"]) >= 4.5, each
        if each["edge"]:
            assert contrast(each["edge"], each["behind"]) >= 3, each
    body = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(body) > 0.5) == (scheme == "light")


def is_whole(page: Page) -> None:
    over = (
        "[...document.querySelectorAll('main *')].filter(e => e.tagName != 'INPUT' && e.scrollWidth > e.clientWidth + 1"
    )
    for width, text in ((320, "100%"), (640, "200%"), (1280, "100%")):
        page.set_viewport_size({"width": width, "height": 480})
        page.evaluate(f"document.documentElement.style.fontSize = '{text}'")
        assert page.evaluate("document.documentElement.clientWidth") <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(f"{over} && getComputedStyle(e).display != 'inline').map(e => e.outerHTML)") == []


# other sites


@pytest.mark.parametrize("client", ["Photo Album", "nobody"])
def test_no_other_site_can_show_a_page_in_a_frame(browser: Browser, stage: Stage, client: str) -> None:
    address = authorize_url(stage.service.url, stage.clients.get(client, client), f"{stage.site.url}/done")
    stage.site.pages["/frame"] = f"<iframe src='{escape(address)}'></iframe>"
    said: list[str] = []
    context = browser.new_context(java_script_enabled=False)
    context.on("console", lambda message: said.append(message.text))
    page = context.new_page()
    page.goto(f"{stage.site.url}/frame")
    (frame,) = page.frames[1:]
    assert frame.locator("main").count() == 0
    assert any("frame-ancestors 'none'" in text for text in said), said
    context.close()


def test_a_client_may_lead_on_from_its_own_address(page: Page, stage: Stage) -> None:
    with Site() as elsewhere:
        stage.site.pages["/on"] = f"{elsewhere.url}/done?x=1"
        signed_in(page, stage, path="/on")
        press(page, "Allow")
        assert elsewhere.next_query() == {"x": "1"}


def test_a_client_on_an_address_of_the_newer_protocol_is_led_back_to(page: Page, stage: Stage) -> None:
    with Site(host="::1") as site:
        page.goto(authorize_url(stage.service.url, stage.clients["Photo Album"], f"{site.url}/done"))
        type_in(page)
        expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()
        press(page, "Allow")
        assert "code" in site.next_query()


def test_a_client_that_opened_a_window_gets_its_answer_there(browser: Browser, stage: Stage) -> None:
    """As documents with a button to log in do: the window that comes back tells the one that opened it."""
    stage.site.pages["/open"] = f"""<button onclick="window.open('{stage.address()}')">Log in</button><p></p>
        <script>onmessage = event => {{ document.querySelector('p').textContent = event.data }}</script>"""
    stage.site.pages["/done"] = "<script>opener.postMessage(location.search, location.origin)</script>"
    try:
        for page in watched(browser.new_context()):
            page.goto(f"{stage.site.url}/open")
            with page.expect_popup() as opened:
                page.get_by_role("button").click()
            expect(opened.value.get_by_role("heading")).to_have_text("Sign in")
            type_in(opened.value)
            expect(opened.value.get_by_role("list")).to_be_visible()
            press(opened.value, "Allow")
            expect(page.get_by_text("code=")).to_be_visible()
            assert "code" in stage.site.next_query()
    finally:
        del stage.site.pages["/done"]
