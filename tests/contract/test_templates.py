"""Databases that are copied for tests are like those that are opened: see `with_tables`."""

from __future__ import annotations

from diptych.demo.model import model
from tests.contract.feed.scene import model as library
from tests.support.running import Postgres, make_tables, with_tables

TABLES = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"


def rows(postgres: Postgres, url: str, sql: str) -> list[tuple[object, ...]]:
    name = url.partition("?")[0].rpartition("/")[2]
    return [tuple(row) for row in postgres.execute(sql, name)]


def test_a_copy_has_what_opening_makes_and_a_feed_of_its_own(postgres: Postgres) -> None:
    opened = postgres.create()
    postgres._unused.pop(opened)  # so that it is opened as it is
    make_tables(opened)
    one, two, other = (with_tables(postgres.create(), each) for each in (model, model, library))
    assert rows(postgres, one, TABLES) == rows(postgres, two, TABLES) == rows(postgres, opened, TABLES)
    assert rows(postgres, other, TABLES) != rows(postgres, one, TABLES)
    feeds = {row for url in (one, two, opened) for row in rows(postgres, url, "SELECT feed FROM diptych_feed_head")}
    assert len(feeds) == 3


def test_a_database_that_was_used_stays_as_it_is(postgres: Postgres) -> None:
    url = postgres.create()
    rows(postgres, url, "CREATE TABLE mine (id int)")
    with_tables(url)
    assert rows(postgres, url, TABLES) == [("mine",)]
