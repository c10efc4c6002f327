"""Records that ended long ago are removed, some at a time, whichever way new ones come."""

from __future__ import annotations

import asyncio
import time

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.script import Script
from diptych.db.store import Store
from diptych.db.system_records import SWEPT
from diptych.demo.model import model
from diptych.identity.oauth.grant_store import GrantStore
from diptych.identity.records import REVOCATIONS, Revocation
from diptych.identity.revocation_list import RevocationList
from tests.support.running import NewDatabase


async def old_ones(store: Store, count: int) -> None:
    """Revocations of tokens that expired two days ago."""
    long_ago = int(time.time()) - 2 * 86_400

    def script() -> Script[None]:
        for number in range(count):
            record = Revocation(f"old{number}", "token", f"t{number}", long_ago * 1000, long_ago)
            yield from REVOCATIONS.add(store.dialect, record)

    await store.write(script)


def test_a_client_that_only_revokes_has_old_revocations_removed_some_at_a_time(new_database: NewDatabase) -> None:
    store = connect(Config(database=new_database()))

    async def run() -> None:
        await store.open(model)
        try:
            await old_ones(store, 2 * SWEPT + 10)
            grant_store = GrantStore(store, RevocationList(store))
            left = []
            for number in range(201):
                await grant_store.end_token(f"new{number}", int(time.time()) + 900)
                if number % 100 == 0:
                    found = await REVOCATIONS.all(store, "id")
                    left.append(sum(each.id.startswith("old") for each in found))
            assert left == [SWEPT + 10, 10, 0]
        finally:
            await store.close()

    asyncio.run(run())
