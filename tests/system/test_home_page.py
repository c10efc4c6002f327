"""The page for people in a browser: in light and dark, on a phone, without a complaint and without another request."""

from __future__ import annotations

from functools import partial
from typing import Literal

from tests.support.running import NewDatabase, served
from tests.system.oauth.browsing import chromium


def _note(notes: list[str], what: str, event: object) -> None:
    notes.append(str(getattr(event, what)))


def test_a_browser_shows_it_as_it_is_meant(new_sqlite: NewDatabase) -> None:
    schemes: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1_100), ("dark", 390))
    with served(new_sqlite(), "--sample") as service, chromium() as browser:
        for scheme, width in schemes:
            said: list[str] = []
            asked: list[str] = []
            context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
            page = context.new_page()
            page.on("console", partial(_note, said, "text"))
            page.on("request", partial(_note, asked, "url"))
            for path in ("/", "/graphql"):
                answer = page.goto(service.url + path)
                assert answer is not None and answer.status == 200
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 19, 23)"
                assert dark is (scheme == "dark"), "the style is let in by its hash"
            assert (said, asked) == ([], [f"{service.url}/", f"{service.url}/graphql"])
            page.get_by_role("link", name="/posts").click()
            page.wait_for_url("**/posts")
            assert '"data"' in page.content()
            context.close()
