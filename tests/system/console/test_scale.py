"""A model of 300 resources with 50 fields each: pages open quickly, and nothing is counted unless one asks.

The short form has as many as make the console take a model for a large one (`MOST_FIELDS` of its `use-schema.ts`).
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.support.effort import scaled
from tests.support.machine import is_within
from tests.support.running import Client, NewDatabase, running
from tests.system.console.opening import console

RESOURCES, FIELDS, SECONDS = scaled(300, 70), 50, 2.0
HEAD = "from diptych import Model, Resource, grant\n\nALL = (grant('read', 'create', 'update', 'delete'),)\n"


def source() -> str:
    fields = "".join(f"    field{number}: str = ''\n" for number in range(FIELDS))
    resources = (f"\n\nclass Thing{n}(Resource):\n{fields}    access = ALL\n" for n in range(RESOURCES))
    names = ", ".join(f"Thing{number}" for number in range(RESOURCES))
    return f"{HEAD}{''.join(resources)}\n\nmodel = Model({names}, title='Things')\n"


def test_a_page_of_a_large_model_opens_quickly_and_counts_nothing(
    new_sqlite: NewDatabase, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "things.py").write_text(source())
    # also where others use the processors, and each second of planning is charged as two
    patient = ("--request-timeout=120", "--statement-timeout=60", "--planning-share=0")
    with running("dev", "things:model", *patient, database=new_sqlite(), cwd=tmp_path, noise="INFO") as service:
        for number in range(3):
            assert service.post("/thing7s", {f"field{number}": "x"}).status == 201
        with console(browser, Client(service.url)) as page:
            asked: list[str] = []
            page.tab.on("request", lambda request: asked.append(request.url))
            page.tab.goto(service.out.wait(r"Console\s+(\S+#code=\S+)")[1])
            expect(page.tab.get_by_role("button", name="Load completion")).to_be_visible()  # the schema is 32 MB

            def open_rows() -> None:
                page.goto("data/thing7s")
                expect(page.tab.locator("tbody tr")).to_have_count(3)

            assert is_within(SECONDS, open_rows)
            token = page.tab.evaluate("JSON.parse(sessionStorage['diptych.session']).token")
            page.goto("data")
            expect(page.tab.get_by_text(f"all {RESOURCES}")).to_be_visible()
            assert not [url for url in asked if "count" in url or url.endswith("/graphql")]
            ran = service.signed_in(token).get("/console/api/recent").json()["requests"]
            statements = [each["statement"] for each in ran if each["statement"]]
            assert statements and not [sql for sql in statements if "count(" in sql.lower()]
            page.goto("data/thing7s")
            page.tab.get_by_role("button", name="Count rows").click()
            expect(page.tab.get_by_text("3 rows")).to_be_visible()
            ran = service.signed_in(token).get("/console/api/recent").json()["requests"]
            assert [each for each in ran if each["statement"] and "count(" in each["statement"].lower()]
