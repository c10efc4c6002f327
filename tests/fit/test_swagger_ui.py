"""Swagger UI in Chromium, on a page of another origin: "try it out" sends what is filled in already, and it works."""

from __future__ import annotations

from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import MODULES
from tests.support.running import Service
from tests.system.oauth.browsing import Site, chromium

TOOL = Tool("Swagger UI", "REST tools", npm=("swagger-ui-dist",))
PAGE = """<!doctype html><meta charset="utf-8"><div id="ui"></div><script src="/ui.js"></script><script>
  window.ui = SwaggerUIBundle({ spec: SPEC, dom_id: '#ui', onComplete: () => ui.preauthorizeApiKey('bearer', 'TOKEN') })
</script>"""


def test_swagger_ui(dev: Service, scenario: Scenarios) -> None:
    admin = dev.token_of("admin")
    document = admin.get("/openapi.json").body.decode()
    user = admin.get("/users?first=1&fields=id").json()["data"][0]["id"]
    bundle = (MODULES / "swagger-ui-dist" / "swagger-ui-bundle.js").read_text("utf-8")
    html = PAGE.replace("SPEC", document.replace("</", "<\\/")).replace("TOKEN", admin.token)
    with Site({"/": html, "/ui.js": bundle}) as site, chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(20_000)
        page.goto(site.url)

        def tried(operation: str, **given: str) -> str:
            block = page.locator(f"[id='operations-{operation}']")
            block.locator(".opblock-summary-control").click()
            block.locator(".try-out__btn").click()
            for name, value in given.items():
                block.locator(f"tr[data-param-name='{name}'] input").fill(value)
            block.locator("button.execute").click()
            return (
                block.locator(".live-responses-table tbody .response-col_status")
                .first.inner_text(timeout=20_000)
                .strip()
            )

        with scenario("page"):
            assert tried("User-listUsers") == "200"
        with scenario("in"):
            assert tried("Order-listOrders") == "200"
        with scenario("create"):
            assert tried("User-createUser") == "201"
        with scenario("read"):
            assert tried("User-getUser", id=user) == "200"
        with scenario("update"):
            assert tried("User-updateUser", id=user) in ("200", "409")  # the e-mail address may be taken
        with scenario("error"):
            assert tried("User-deleteUser", id="nope") == "404"
