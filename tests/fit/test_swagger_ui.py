"""Swagger UI in Chromium, on a page of another origin: "try it out" sends what is filled in, and it works."""

from __future__ import annotations

from playwright.sync_api import Locator, Response

from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import MODULES
from tests.fit.trying_out import Given, check_page
from tests.support.running import PATIENCE, Service
from tests.system.oauth.browsing import Site, chromium

TOOL = Tool("Swagger UI", "REST tools", npm=("swagger-ui-dist",))
PAGE = """<!doctype html><meta charset="utf-8"><div id="ui"></div><script src="/ui.js"></script><script>
  window.ui = SwaggerUIBundle({ spec: SPEC, dom_id: '#ui', onComplete: () => ui.preauthorizeApiKey('bearer', 'TOKEN') })
</script>"""


def test_swagger_ui(dev: Service, scenario: Scenarios) -> None:
    admin = dev.token_of("admin")
    document = admin.get("/openapi.json").body.decode()
    bundle = (MODULES / "swagger-ui-dist" / "swagger-ui-bundle.js").read_text("utf-8")
    html = PAGE.replace("SPEC", document.replace("</", "<\\/")).replace("TOKEN", admin.token)
    with Site({"/": html, "/ui.js": bundle}) as site, chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 250)
        page.goto(site.url)

        def tried(tag: str, operation: str, given: Given | None = None) -> Response:
            block = page.locator(f"[id='operations-{tag}-{operation}']")
            if not block.locator(".opblock-body").count():
                block.locator(".opblock-summary-control").click()
                block.locator(".try-out__btn").click()
            fill(block, given or {})
            with page.expect_response(lambda response: response.url.startswith(dev.url)) as sent:
                block.locator("button.execute").click()
            shown = block.locator(".live-responses-table tbody .response-col_status").first
            shown.get_by_text(str(sent.value.status)).wait_for()
            fill(block, {name: "" if isinstance(value, str) else [] for name, value in (given or {}).items()})
            return sent.value

        check_page(tried, admin, scenario)


def fill(block: Locator, given: Given) -> None:
    for name, value in given.items():
        row = block.locator(f"tr[data-param-name='{name}']")
        if isinstance(value, str):
            row.locator("input, textarea").fill(value)
        else:
            row.locator("select").select_option(list(value))
