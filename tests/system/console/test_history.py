"""The history of an audited row in the console: its versions, and who made them, as far as the viewer may know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.running import NewDatabase, Service, running, token
from tests.system.console.opening import console

ANN, BOB = "01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"
MODEL = """
from diptych import *

auditor = Role("auditor")

class Note(Resource, audit=Audited(reason="optional", history=True, actors=auditor)):
    access = (grant("read", "create", "update"),)
    title: str

model = Model(Note)
"""


@pytest.fixture
def shop(new_sqlite: NewDatabase, tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "shop.py").write_text(MODEL)
    with running("dev", "shop:model", database=new_sqlite(), cwd=tmp_path, noise="INFO") as found:
        yield found


def test_the_versions_of_a_row_are_shown_with_who_made_them(shop: Service, browser: Browser) -> None:
    names: dict[str, Any] = {"__name__": "shop"}
    exec(MODEL, names)
    writer, other = (
        shop.signed_in(token(shop.database, *roles, user=user, model=names["model"]))
        for user, roles in ((ANN, ("auditor",)), (BOB, ()))
    )
    sent = {"content-type": "application/json", "change-reason": "a typo"}
    row = writer.request("POST", "/notes", sent, b'{"title": "Frist"}').json()["id"]
    assert writer.request("PATCH", f"/notes/{row}", sent, b'{"title": "First"}').status == 200
    for client, who in ((writer, f"{ANN} by rest: a typo"), (other, "")):
        with console(browser, client) as page:
            page.tab.goto(f"{shop.url}/console/data/notes/{row}")
            page.tab.get_by_role("tab", name="History").click()
            events = page.tab.locator(".event")
            expect(events).to_have_count(2)
            expect(events.nth(0)).to_contain_text("updated")
            expect(events.nth(0)).to_contain_text("version 2: First")
            expect(events.nth(1)).to_contain_text("version 1: Frist")
            expect(events.nth(0).locator(".soft")).to_have_count(1 if who else 0)
            if who:
                expect(events.nth(0)).to_contain_text(who)
