"""A connection that writes: what a step does whose guard does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.db.script import Step
from diptych.db.sqlite.connection import SqliteConnection
from diptych.db.sqlite.watchdog import Watchdog
from diptych.db.sqlite.writing import WriteConnection

CREATE = "INSERT INTO cups (id) VALUES (CASE WHEN ?1 <> 'red' THEN ?1 ELSE diptych_refuse() END) RETURNING id"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[WriteConnection]:
    """One with a table whose triggers log what is about to be inserted, and an open transaction."""
    reader = SqliteConnection(str(tmp_path / "cups.db"), Watchdog(), write=True)
    reader.db.execute("CREATE TABLE cups (id TEXT); CREATE TABLE log (id TEXT)")
    reader.db.execute("CREATE TRIGGER b BEFORE INSERT ON cups BEGIN INSERT INTO log VALUES (NEW.id); END")
    connection = WriteConnection(reader.db, reader.guard, 5.0)
    connection.begin()
    yield connection
    connection.stop_clock()
    reader.close()


def log(connection: WriteConnection) -> list[str]:
    return [str(id) for (id,) in connection.execute("SELECT id FROM log").fetchall()]


def test_a_row_whose_guard_does_not_hold_fires_no_trigger_and_ends_no_transaction(connection: WriteConnection) -> None:
    for run in (connection.run, connection.run_alone):
        assert run(Step(CREATE, ("blue",))) == ("blue",)
        assert run(Step(CREATE, ("red",))) is None
        assert run(Step(CREATE, (None,))) is None, "what is unknown does not hold"
        assert connection.is_open
    assert log(connection) == ["blue", "blue"]


def test_several_rows_are_none_at_all_if_a_guard_of_one_does_not_hold(connection: WriteConnection) -> None:
    assert connection.run(Step(CREATE, (), many=[("blue",), ("green",)])) == [("blue",), ("green",)]
    assert connection.run(Step(CREATE, (), many=[("blue",), ("red",), ("green",)])) is None
    assert connection.is_open
