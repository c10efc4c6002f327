"""SQLite plans a statement once: it does not look at a value that is bound, which would make it plan for every run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from diptych.compile.plan import Plan
from diptych.db.sqlite.connection import SqliteConnection
from diptych.db.sqlite.watchdog import Watchdog
from diptych.demo.data import insert_sample
from diptych.demo.model import model
from tests.support.in_process import in_process


def test_a_page_after_a_cursor_is_not_planned_anew(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    ran: list[tuple[Plan, Sequence[Any]]] = []
    with asyncio.Runner() as runner, in_process(model, f"sqlite:///{path}", runner) as service:
        runner.run(insert_sample(service.app.store, model))
        run = service.app.store.run

        async def noting(plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
            ran.append((plan, parameters))
            return await run(plan, parameters)

        service.app.store.run = noting  # type: ignore[method-assign]  # a spy
        cursor = service.get("/posts?first=2").json()["page"]["next"]
        assert len(service.get(f"/posts?first=2&after={cursor}").json()["data"]) == 2
    assert plannings(path, *ran[-1]) == 0


def plannings(path: str, plan: Plan, parameters: Sequence[Any]) -> int:
    """How often a plan is made anew in five runs, with the statistics that ANALYZE makes."""
    dog = Watchdog()
    connection = SqliteConnection(path, dog, write=True)
    selects = 0

    def authorize(action: int, *_: Any) -> int:
        nonlocal selects
        selects += action == apsw.SQLITE_SELECT
        return apsw.SQLITE_OK

    try:
        connection.db.execute("ANALYZE")
        connection.db.authorizer = authorize  # called while a statement is planned
        connection.run(plan, parameters)
        assert selects, "the first run is planned"
        planned, selects = selects, 0
        for _ in range(5):
            connection.run(plan, parameters)
        return selects // planned
    finally:
        connection.close()
        dog.close()
