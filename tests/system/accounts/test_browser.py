"""The pages of accounts in Chromium, by keyboard and without script: from a sign-up to an authenticator app."""

from __future__ import annotations

import base64
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from diptych.identity import totp
from tests.support.mailbox import link_of
from tests.support.running import NewDatabase, Service, served
from tests.system.oauth.browsing import chromium
from tests.system.oauth.test_browser import SCHEMES, stands_out, watched

PASSWORD, NEW = "correct horse", "another horse"
SHOTS = os.environ.get("SHOTS", "")
"""A folder for pictures of the pages, to look at."""
_numbers = itertools.count()


@dataclass(frozen=True)
class Stage:
    """A service, and the folder of its mails."""

    service: Service
    folder: Path

    def link(self, email: str) -> str:
        """The link of the newest mail to an address."""
        for _ in range(400):
            files = sorted(self.folder.glob("*.eml"), reverse=True)
            mails = (message_from_bytes(file.read_bytes(), policy=default) for file in files)
            found = next((mail for mail in mails if mail["To"] == email), None)
            if found is not None:
                return link_of(found)
            time.sleep(0.05)
        raise AssertionError(f"no mail came to {email}")

    def clear(self) -> None:
        for file in self.folder.glob("*.eml"):
            file.unlink()


@pytest.fixture(scope="module")
def stage(new_sqlite: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("mails")
    options = ("--request-timeout=60", f"--mail-folder={folder}")
    with served(new_sqlite(), *options, model="tests.system.accounts.club_model:model") as service:
        yield Stage(service, folder)


@pytest.fixture(scope="module")
def browser(stage: Stage) -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    yield from watched(browser.new_context(java_script_enabled=False))


def look(page: Page, name: str) -> None:
    """Everything stands out and fits, in light and in dark."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        stands_out(page, scheme)
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/{name}-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.set_viewport_size({"width": 1280, "height": 720})


def signed_up(page: Page, stage: Stage) -> str:
    email = f"zoe{next(_numbers)}@example.org"
    page.goto(f"{stage.service.url}/oauth/account")
    look(page, "sign-in")
    page.get_by_role("link", name="Create an account").click()
    expect(page.get_by_label("E-mail")).to_be_focused()
    look(page, "sign-up")
    page.keyboard.type(email)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("Look into your mailbox")
    look(page, "sent")
    page.goto(stage.link(email))
    look(page, "new-account")
    page.get_by_label("Name").fill("Zoe")
    page.get_by_label("New password").fill("short")
    page.get_by_label("New password").evaluate("input => input.minLength = 0")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("A password has 8 to 256 characters")
    expect(page.get_by_label("Name")).to_have_value("Zoe")
    look(page, "new-account-wrong")
    page.get_by_label("New password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your account")).to_be_visible()
    stage.clear()
    return email


def test_someone_signs_up_and_sets_up_an_app(page: Page, stage: Stage) -> None:
    email = signed_up(page, stage)
    look(page, "account")
    page.get_by_role("button", name="Set it up").click()
    expect(page.locator(".qr svg")).to_be_visible()
    look(page, "totp")
    key = base64.b32decode(page.locator("code").inner_text().replace(" ", ""))
    page.get_by_label("Code").fill(totp.code_at(key, int(time.time()) // 30))
    page.get_by_label("Your password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("Recovery codes")
    look(page, "recovery-codes")
    recovery = page.locator("li code").first.inner_text()
    page.get_by_role("link", name="I have kept them").click()
    look(page, "account-totp")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("Second step")
    look(page, "second-step")
    page.get_by_label("Code").fill("000000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("The code is not right.")
    look(page, "second-step-wrong")
    page.get_by_label("Code").fill(recovery)
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Signed in as {email}")).to_be_visible()


def test_someone_sets_a_new_password_and_changes_the_address(page: Page, stage: Stage) -> None:
    email = signed_up(page, stage)
    other = f"new{next(_numbers)}@example.org"
    page.get_by_label("New e-mail").fill(other)
    page.get_by_label("Your password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("on its way to the new address")
    look(page, "account-notice")
    page.goto(stage.link(other))
    look(page, "change")
    page.get_by_role("button").click()
    expect(page.get_by_role("heading")).to_have_text("Your address is changed")
    look(page, "changed")
    page.get_by_role("link", name="Go on").click()
    page.get_by_role("link", name="Forgot your password?").click()
    look(page, "reset")
    stage.clear()
    page.keyboard.type(other)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text(f"If {other} has an account")
    page.goto(stage.link(other))
    look(page, "new-password")
    page.get_by_label("New password").fill(NEW)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("Your password is changed")
    page.goto(f"{stage.service.url}/oauth/account")
    page.get_by_label("E-mail").fill(other)
    page.get_by_label("Password").fill(NEW)
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Signed in as {other}")).to_be_visible()
    assert email != other
    page.goto(stage.link(other))
    expect(page.get_by_role("alert")).to_contain_text("not valid any more")
    look(page, "link-used")
