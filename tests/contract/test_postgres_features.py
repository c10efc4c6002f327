"""What of PostgreSQL is relied upon: each feature is used in the module that is named, and the server has it.

An engine that speaks the protocol of PostgreSQL is no store for Diptych unless all of these work
(docs/explanation/decisions/0086-no-distributed-engine.md).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from tests.support.running import Postgres

SRC = Path(__file__).parents[2] / "src" / "diptych"
SETUP = """
CREATE TABLE author (id int PRIMARY KEY, name text COLLATE "C");
CREATE TABLE post (id int PRIMARY KEY, author int REFERENCES author ON DELETE CASCADE, tags text[] DEFAULT '{}');
CREATE TABLE seen (id int);
INSERT INTO author VALUES (1, 'Ann');
INSERT INTO post VALUES (1, 1), (2, 1);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO seen VALUES (coalesce(NEW.id, OLD.id)); RETURN NULL; END $$;
CREATE TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON post FOR EACH ROW EXECUTE FUNCTION note();
"""
FEATURES = {
    "triggers in PL/pgSQL, in the same transaction": (
        "compile/system/feed_postgres.py",
        "TRIGGER",
        "WITH n AS (INSERT INTO post VALUES (3, 1) RETURNING id) SELECT count(*) = 1 FROM n",
    ),
    "row images as JSON": (
        "compile/system/feed_postgres.py",
        "row_to_json",
        "SELECT row_to_json(a) IS NOT NULL FROM author a",
    ),
    "the physical place of a row": ("compile/system/feed_postgres.py", "ctid", "SELECT ctid IS NOT NULL FROM author"),
    "transaction ids and snapshots": (
        "compile/system/feed_postgres.py",
        "pg_current_snapshot",
        "SELECT pg_snapshot_xmin(pg_current_snapshot()) <= pg_current_xact_id()",
    ),
    "the transaction id in a change statement": (
        "compile/dialect.py",
        "pg_current_xact_id",
        "WITH n AS (UPDATE author SET name = 'Bea' RETURNING pg_current_xact_id()) SELECT count(*) = 1 FROM n",
    ),
    "advisory locks": ("compile/locks.py", "pg_advisory", "SELECT pg_try_advisory_xact_lock(1)"),
    "NOTIFY in a function": ("compile/system/feed_postgres.py", "pg_notify", "SELECT pg_notify('x', '') IS NOT NULL"),
    "correlated reads below a common table expression": (
        "compile/dialect.py",
        "LATERAL",
        "WITH a AS (SELECT * FROM author) SELECT (SELECT jsonb_agg(p.id) FROM post p WHERE p.author = a.id) IS NOT NULL"
        " FROM a CROSS JOIN LATERAL (SELECT count(*) FROM post p WHERE p.author = a.id) AS counted",
    ),
    "arrays as rows": (
        "compile/watch_batch.py",
        "unnest",
        "SELECT count(*) = 2 FROM unnest($${a,b}$$::text[]) AS t (x)",
    ),
    "rows that are locked are passed over": (
        "db/rates.py",
        "SKIP LOCKED",
        "WITH l AS (SELECT id FROM author FOR UPDATE SKIP LOCKED) SELECT count(*) = 1 FROM l",
    ),
    "insert or update": (
        "identity/throttle.py",
        "ON CONFLICT",
        "WITH n AS (INSERT INTO author VALUES (1, 'Cat') ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING 1)"
        " SELECT count(*) = 1 FROM n",
    ),
    "common table expressions that are evaluated once": (
        "compile/watch_batch.py",
        "MATERIALIZED",
        "WITH a AS MATERIALIZED (SELECT id FROM author) SELECT count(*) = 1 FROM a",
    ),
    "text search": ("compile/system/folding.py", "tsvector", "SELECT to_tsvector('simple', 'a b') @@ 'a'::tsquery"),
    "a bytewise order of texts": ("model/scalars.py", "COLLATE", "SELECT 'B' COLLATE \"C\" < 'a' COLLATE \"C\""),
}


async def _answer(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def prepared(postgres: Postgres) -> str:
    url = postgres.create()

    async def work() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(SETUP)
        await connection.close()

    asyncio.run(work())
    return url


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_is_used_and_there(feature: str, prepared: str) -> None:
    module, word, query = FEATURES[feature]
    assert word in (SRC / module).read_text("utf-8"), f"{module} does not use {word} any more: change the list"
    assert asyncio.run(_answer(prepared, query)) is True


def test_a_commit_wakes_those_who_listen(postgres: Postgres) -> None:
    """LISTEN, over a connection of its own (`db/postgres/feed.py`)."""

    async def work() -> str:
        url, heard = postgres.create(), asyncio.Queue[str]()
        listener, writer = await asyncpg.connect(url), await asyncpg.connect(url)
        try:
            await listener.add_listener("changed", lambda *message: heard.put_nowait(str(message[-1])))
            await writer.execute("NOTIFY changed, 'now'")
            return await asyncio.wait_for(heard.get(), 30)
        finally:
            await listener.close()
            await writer.close()

    assert asyncio.run(work()) == "now"
