"""Between expand and contract, services with the model before go on to write rows (PostgreSQL)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.migrate.scene import Project
from tests.contract.migrate.test_feed import JSON, MERGE, create
from tests.contract.migrate.test_kinds import model
from tests.support.in_process import in_process
from tests.support.running import Postgres

OLD = ("title: str", "note: str | None = None")
NEW = ("title: str", "note: str", "slug: str", "rank: int", "n: Annotated[int, Counter()] = auto()")
ANSWERS: dict[str, Any] = {
    "fills": {"things.note": '"-"', "things.slug": "= upper(title)", "things.rank": "3"},
}
TRIGGERS = "SELECT tgname FROM pg_trigger WHERE tgname LIKE 'diptych_fill_%' ORDER BY 1"


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_they_create_and_change_rows_until_contract(tmp_path: Path, postgres: Postgres, runner: asyncio.Runner) -> None:
    old, new = model(*OLD), model(*NEW)
    project = Project(tmp_path / "migrations", postgres.create())
    project.make(old, "first")
    project.apply(old)
    with in_process(old, project.outside.url, runner) as service:
        first = create(service, title="a", note="n")
        cursor = service.changes("/things/changes?fields=id")["page"]["last"]
        gone = create(service, title="gone")
        assert service.send("DELETE", f"/things/{gone['id']}").status == 204
        project.make(new, **ANSWERS)
        project.apply(new, expand=True)
        assert len(project.outside.sql(TRIGGERS)) == 2
        second = create(service, title="b")
        patch = json.dumps({"note": None}).encode()
        patched = service.send("PATCH", f"/things/{first['id']}", headers=MERGE, body=patch)
        assert (patched.status, json.loads(patched.body)["note"]) == (200, "-")
    shown = "title,note,slug,rank,n"
    with in_process(new, project.outside.url, runner) as service:
        seen = json.loads(service.send("GET", f"/things/{second['id']}?fields={shown}").body)
        assert seen == {"title": "b", "note": "-", "slug": "B", "rank": 3, "n": 2}
        told = service.changes(f"/things/changes?fields={shown}&after={cursor}")["data"]
        assert [each["kind"] for each in told][:2] == ["CREATED", "DELETED"]
        rows = [each["thing"] for each in told if each["thing"] is not None]
        assert len(rows) >= 3 and not [row for row in rows if None in row.values()]
        made = service.send("POST", "/things", headers=JSON, body=b'{"title": "c", "note": "", "slug": "c", "rank": 1}')
        assert made.status == 201
    project.apply(new)
    assert project.outside.sql(TRIGGERS) == []
    assert project.outside.sql("SELECT proname FROM pg_proc WHERE proname LIKE 'diptych_fill_%'") == []
