"""PostgreSQL: a row is deleted while another transaction adds a reference to it, in either order."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from diptych.testing import serve
from tests.contract.writes.trash_model import MODEL, Post, User
from tests.support.running import Postgres

_ADD = "INSERT INTO comments (post_id, body) VALUES ($1, 'late')"
_DELETE = "UPDATE posts SET deleted_at = clock_timestamp() WHERE id = $1"
_LIVE = "SELECT count(*) FROM comments WHERE deleted_at IS NULL"


@pytest.mark.parametrize("first", ["delete", "add"])
def test_no_row_refers_to_a_deleted_one(postgres: Postgres, first: str) -> None:
    database = postgres.create()
    with serve(MODEL, database=database) as api:
        post = api.make(Post, author=api.make(User, name="Ann"), slug="raced")

    async def race() -> tuple[object, int]:
        one, other = await asyncpg.connect(database), await asyncpg.connect(database)
        try:
            held, waits = (_DELETE, _ADD) if first == "delete" else (_ADD, _DELETE)
            began = one.transaction()
            await began.start()
            await one.execute(held, post.id)
            late = asyncio.create_task(other.execute(waits, post.id))
            await asyncio.sleep(0.2)
            assert not late.done(), "it waits for the other"
            await began.commit()
            (ended,) = await asyncio.gather(late, return_exceptions=True)
            return ended, await one.fetchval(_LIVE)
        finally:
            await one.close()
            await other.close()

    ended, live = asyncio.run(race())
    assert live == 0
    assert isinstance(ended, asyncpg.ForeignKeyViolationError) == (first == "delete"), ended
