"""Pages that the server renders: the look of all pages, in both themes, accessible, on a phone, within their policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser

from diptych.cli.rules_page import page as rules_page
from diptych.demo.model import model
from diptych.look.sheet import style
from diptych.model.describe.matrix import matrix
from diptych.serve.endpoint import account_pages as account
from diptych.serve.endpoint import oauth_device_pages as device
from diptych.serve.endpoint import oauth_pages as oauth
from diptych.serve.endpoint.own_account import _qr_code
from tests.support.axe import COLOURS, inject, sideways, violations
from tests.support.running import ROOT, NewDatabase, served
from tests.system.oauth.browsing import chromium

EMAIL, HIDDEN, SCOPES = "ada@example.org", {"request": "r", "token": "t"}, ["posts:read", "posts:write", "openid"]
PAGES: dict[str, Callable[[], str]] = {
    "sign in": partial(oauth.sign_in, "Help desk", "", HIDDEN, "", [("Create an account", "sign-up")]),
    "sign in, wrong": partial(oauth.sign_in, "Help desk", EMAIL, HIDDEN, "The e-mail or the password is wrong."),
    "consent": partial(oauth.consent, "Photo Album", "https://app.example/", SCOPES, EMAIL, HIDDEN, registered=True),
    "sign out": partial(oauth.sign_out, EMAIL, HIDDEN),
    "signed out": oauth.signed_out,
    "failure": partial(oauth.failure, "The link is not valid any more."),
    "device": partial(device.type_code, EMAIL, HIDDEN, "There is no such code."),
    "device, confirm": partial(device.device_consent_page, "TV", SCOPES, EMAIL, HIDDEN),
    "device, decided": partial(device.decided, "TV", True),
    "reset": partial(account.ask_address, "Set a new password", "We send a link.", "reset", "", HIDDEN, "No address."),
    "sent": partial(account.sent, EMAIL, "A mail to {} is on its way."),
    "new password": partial(account.set_password, "Create your account", EMAIL, "", HIDDEN, "Too short."),
    "confirm": partial(account.confirm_page, "Confirm the address", EMAIL, HIDDEN),
    "done": partial(account.done, "Done", "Your address is confirmed.", [("Your account", "account")]),
    "second step": partial(account.second_step, HIDDEN, "The code is not right."),
    "recovery codes": partial(account.recovery_codes, [f"abcd-efgh-{number}" for number in range(10)]),
    "enrol": lambda: account.enrol(EMAIL, _qr_code("otpauth://totp/x"), "ABCD" * 8, "otpauth://totp/x", HIDDEN),
    "account": lambda: account.own_account(
        EMAIL,
        [account.verification(HIDDEN), account.another_address(EMAIL, HIDDEN), account.second_factor("", True, HIDDEN)],
        HIDDEN,
        "Your address was changed.",
    ),
    "rules": lambda: rules_page("demo", matrix(model, model.role_names)),
}
BACKGROUNDS = {"light": "rgb(246, 245, 242)", "dark": "rgb(20, 19, 23)"}
"""The token `--ground`."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def test_every_page_is_accessible_in_both_themes_and_fits_a_phone(browser: Browser) -> None:
    found: list[object] = []
    page = browser.new_context(reduced_motion="reduce").new_page()
    for name, render in PAGES.items():
        page.set_content(render())
        inject(page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            found += [(name, scheme, each) for each in violations(page, COLOURS if scheme == "dark" else "{}")]
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == BACKGROUNDS[scheme], (name, scheme)
        found += [(name, each) for each in sideways(page)]
    page.context.close()
    assert found == []


def test_the_policy_lets_the_style_in_and_nothing_else(new_sqlite: NewDatabase, browser: Browser) -> None:
    with served(new_sqlite(), "--sample") as service:
        page = browser.new_context(color_scheme="dark").new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: None if request.url.startswith(service.url) else said.append(request.url))
        for path in ("/", "/oauth/account", "/oauth/authorize?client_id=nobody"):
            page.goto(service.url + path)
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == BACKGROUNDS["dark"], path
        assert [each for each in said if "status of 4" not in each] == []
        page.context.close()


def test_all_pages_take_their_colours_from_one_sheet() -> None:
    """No page has a colour of its own, but the white behind a QR code."""
    own = re.compile(r"#[0-9a-fA-F]{3,8}\b(?=[;,) ])|\brgb\(")
    tokens = style("")
    assert own.search(tokens)
    for path in ("serve/endpoint/oauth_pages.py", "serve/endpoint/home.py", "cli/rules_page.py", "look/page.css"):
        text = (ROOT / "src" / "diptych" / path).read_text()
        assert set(own.findall(text)) <= {"#fff"}, path
    assert "look/tokens.css" in (ROOT / "console" / "src" / "style.css").read_text()
    assert own.findall((ROOT / "docs" / "assets" / "docs.css").read_text()) == []
