"""Takes the pictures of the console in docs/images, from a real one: `make screenshots`.

Starts `diptych dev` with the sample rows on a free port, opens its link in Chromium, and takes each page in light
and dark.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
QUERY = """{
  orders(first: 3, where: {total: {gte: "100"}}, orderBy: [{total: DESC}]) {
    status
    total
    customer {
      name
    }
  }
}
"""
WIDTH, HEIGHT = 1280, 820
SECONDS = 60


@contextmanager
def dev(folder: str) -> Iterator[str]:
    """`diptych dev` in a folder of its own; gives the link of its console."""
    command = [sys.executable, "-m", "diptych", "dev", "--port", "0", "--database", f"sqlite:///{folder}/sample.db"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.match(r"Console\s+(\S+)", line):
                yield found[1]
                return
        raise SystemExit("diptych dev has not started")
    finally:
        process.terminate()
        process.wait(SECONDS)


def request(page: Page) -> None:
    """A request in both styles, sent."""
    editor = page.get_by_label("GraphQL document")
    editor.focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(QUERY)
    page.get_by_label("REST request").get_by_text("customer").first.wait_for()
    page.keyboard.press("Control+Enter")
    page.get_by_role("region", name="Answer").get_by_text("200", exact=True).wait_for()


def shown(page: Page, name: str) -> None:
    """Bring a page into the state that the picture shows."""
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
    page.get_by_role("heading", level=1, name=name).wait_for()
    if name == "Request":
        request(page)
    if name == "Data":
        page.get_by_role("main").get_by_role("link", name="orders").click()
        page.get_by_label("Group by").select_option("status")
        page.locator(".bars rect").first.wait_for()
        page.get_by_role("button", name="total").click()
        page.locator("th[aria-sort]").wait_for()
        customer = page.get_by_label("Filter customer")
        customer.fill("e")  # names in scripts that every machine has fonts for
        customer.press("Enter")
        page.get_by_role("button", name="Clear filters").wait_for()
    page.wait_for_timeout(800)  # what is drawn last


def main() -> None:
    """Take all pictures."""
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    IMAGES.mkdir(exist_ok=True)
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    with tempfile.TemporaryDirectory() as folder, dev(folder) as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path)
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        context.set_default_timeout(SECONDS * 1000)
        page = context.new_page()
        page.goto(link)
        page.get_by_role("heading", level=1, name="Request").wait_for()
        for theme in themes:
            page.get_by_label("Theme").select_option(theme)
            for name in ("Request", "Data", "Model", "Rules"):
                shown(page, name)
                page.screenshot(path=str(IMAGES / f"console-{name.lower()}-{theme}.png"))
        browser.close()


if __name__ == "__main__":
    main()
