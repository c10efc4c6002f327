"""Scalar in Chromium, on a page of another origin: its "test request" sends what is filled in, and it works."""

from __future__ import annotations

from collections.abc import Sequence

from playwright.sync_api import Locator, Response, expect

from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import MODULES
from tests.fit.trying_out import Given, check_page
from tests.support.running import PATIENCE, Service
from tests.system.oauth.browsing import Site, chromium

TOOL = Tool("Scalar", "REST tools", npm=("@scalar/api-reference",))
PAGE = """<!doctype html><meta charset="utf-8"><div id="app"></div><script src="/ui.js"></script><script>
  const bearer = { token: 'TOKEN' }
  const authentication = { preferredSecurityScheme: 'bearer', securitySchemes: { bearer } }
  Scalar.createApiReference('#app', { content: SPEC, authentication, withDefaultFonts: false, telemetry: false })
</script>"""


def test_scalar(dev: Service, scenario: Scenarios) -> None:
    admin = dev.token_of("admin")
    document = admin.get("/openapi.json")
    places = {
        operation["operationId"]: (method, path)
        for path, item in document.json()["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }
    bundle = (MODULES / "@scalar" / "api-reference" / "dist" / "browser" / "standalone.js").read_text("utf-8")
    html = PAGE.replace("SPEC", document.body.decode().replace("</", "<\\/")).replace("TOKEN", admin.token)
    with Site({"/": html, "/ui.js": bundle}) as site, chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(PATIENCE * 250)

        def tried(tag: str, operation: str, given: Given | None = None) -> Response:
            method, path = places[operation]
            page.goto("about:blank")  # which forgets what was filled in
            page.goto(f"{site.url}/#tag/{tag.lower()}/{method.upper()}{path}")
            page.get_by_role("button", name=f"Test Request ({method} {path})", exact=True).dispatch_event("click")
            dialog = page.get_by_role("dialog")
            fill(dialog, given or {})
            with page.expect_response(
                lambda each: each.url.startswith(dev.url) and each.request.method.lower() == method
            ) as sent:
                dialog.get_by_role("button", name="Send").first.click()
            dialog.get_by_text(str(sent.value.status)).first.wait_for()
            return sent.value

        check_page(tried, admin, scenario)


def fill(dialog: Locator, given: Given) -> None:
    for name, value in given.items():
        row = dialog.locator(f"tr[id='{name}']")
        if isinstance(value, str):
            row.get_by_role("textbox").last.fill(value)
        else:
            choose(row, value)
        expect(row.get_by_role("checkbox")).to_be_checked()
    dialog.page.wait_for_timeout(1_000)  # it takes what was typed after a moment


def choose(row: Locator, values: Sequence[str]) -> None:
    row.get_by_role("button").first.click()
    for value in values:
        row.page.get_by_role("option", name=value).click()
    row.page.keyboard.press("Escape")
