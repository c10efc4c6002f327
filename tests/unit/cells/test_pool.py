"""The pool of cells: one that is closed in the moment it is opened answers nobody."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from diptych.cells.pool import CellPool
from diptych.serve.app import Diptych


class App:
    """Notes whether it is open."""

    def __init__(self, database: str, opens: asyncio.Event) -> None:
        self.database = database
        self.is_open = self.has_mails = False
        self._opens = opens

    async def start(self) -> None:
        await self._opens.wait()
        self.is_open = True

    async def closing(self) -> None: ...

    async def stop(self) -> None:
        self.is_open = False


class Pool(CellPool):
    """Opens cells of one database, which may be another later."""

    def __init__(self, most: int = 4) -> None:
        self.database = "old"
        self.opens = asyncio.Event()
        self.made: list[App] = []
        super().__init__(self._new, most)

    def _new(self, tenant: str) -> Diptych:
        self.made.append(App(self.database, self.opens))
        return cast(Diptych, self.made[-1])


def test_a_cell_whose_database_changes_while_it_is_opened_is_opened_anew() -> None:
    async def work() -> None:
        pool = Pool()
        waiting = [asyncio.create_task(pool.open("acme")) for _ in range(3)]
        while not pool.made:
            await asyncio.sleep(0)
        pool.database = "new"
        pool.retire("acme")
        pool.opens.set()
        cells = await asyncio.gather(*waiting)
        apps: list[Any] = [cell.app for cell in cells]
        assert [(app.database, app.is_open) for app in apps] == [("new", True)] * 3
        await pool.stop()
        assert [app.is_open for app in pool.made] == [False, False]

    asyncio.run(asyncio.wait_for(work(), 10))


def test_a_cell_that_makes_room_before_its_first_request_answers_is_opened_again() -> None:
    async def work() -> None:
        pool = Pool(most=1)
        pool.opens.set()
        first = asyncio.create_task(pool.open("acme"))
        while not len(pool):
            await asyncio.sleep(0)
        assert not first.done()
        pool.close_idle(0)  # it has not answered yet
        app: Any = (await first).app
        assert app.is_open
        assert pool.get("acme") is first.result()
        await pool.stop()

    asyncio.run(asyncio.wait_for(work(), 10))


def test_a_cell_whose_mails_wait_makes_room_last_and_is_not_idle() -> None:
    async def work() -> None:
        pool = Pool(most=2)
        pool.opens.set()
        acme, bolt = [(await pool.open(tenant)).app for tenant in ("acme", "bolt")]
        cast(Any, acme).has_mails = True
        await pool.open("cord")
        assert (pool.get("acme") is None, pool.get("bolt") is None) == (False, True)
        pool.close_idle(-1)
        assert (pool.get("acme") is None, pool.get("cord") is None) == (False, True)
        await pool.open("dune")
        cast(Any, pool.get("dune")).app.has_mails = True
        await pool.open("earl")  # where all of them wait, the least recently used one
        assert (pool.get("acme") is None, pool.get("dune") is None) == (True, False)
        assert not cast(Any, bolt).is_open
        await pool.stop()

    asyncio.run(asyncio.wait_for(work(), 10))
