"""A new counter: rows that are there get numbers in batches, beside services that write, and without holes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from diptych.errors import StartError
from diptych.migrate import postgres as on_postgres
from diptych.migrate.numbering import LIMIT
from tests.contract.migrate.scene import Project, opened, structure
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.running import NewDatabase, Postgres
from tests.unit.compile.test_tables import Outside

OLD = ("title: str", "shelf: str")
NEW = (*OLD, 'n: Annotated[int, Counter("shelf")] = auto()', "serial: Annotated[int, Counter()] = auto()")
READ = "SELECT shelf, n, serial FROM things ORDER BY created_at, id"


def fill(outside: Outside, first: int, count: int) -> None:
    rows = [
        f"('00000000-0000-7000-8000-{number:012}', 't', '{'ab'[number % 2]}', '2026-01-01T00:00:{number % 60:02}.000000Z')"
        for number in range(first, first + count)
    ]
    outside.sql(f"INSERT INTO things (id, title, shelf, created_at) VALUES {', '.join(rows)}")


def check(outside: Outside, count: int, *, in_order: bool = True) -> None:
    """The numbers of each shelf, and of all, are 1, 2, 3 …, in the order in which rows were made."""
    rows = outside.sql(READ)
    assert len(rows) == count
    for found in ([row[2] for row in rows], *([row[1] for row in rows if row[0] == shelf] for shelf in "ab")):
        assert (found if in_order else sorted(found)) == [*range(1, len(found) + 1)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_postgres, "_BATCH", 7)


def made(tmp_path: Path, url: str) -> Project:
    project = Project(tmp_path / "migrations", url)
    project.make(model(*OLD), "first")
    project.apply(model(*OLD))
    project.make(model(*NEW))
    return project


def test_rows_are_numbered_in_the_order_in_which_they_were_made(
    tmp_path: Path, new_database: NewDatabase, small: None
) -> None:
    project = made(tmp_path, new_database())
    fill(project.outside, 0, 60)
    project.apply(model(*NEW))
    check(project.outside, 60)
    fill(project.outside, 60, 5)
    check(project.outside, 65, in_order=False)
    anew = Outside(new_database())
    opened(anew.url, model(*NEW))
    assert structure(project.outside) == structure(anew)


def test_a_run_that_was_interrupted_goes_on(
    tmp_path: Path, postgres: Postgres, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = made(tmp_path, postgres.create())
    fill(project.outside, 0, 50)
    number, left = on_postgres._Run._number, [1]

    async def interrupted(self: on_postgres._Run, sql: str) -> None:
        if left.pop():
            await self.connection.execute(sql.replace(LIMIT, " LIMIT 20"))
            raise StartError("the power went off")
        await number(self, sql)

    left = [False, True]
    monkeypatch.setattr(on_postgres._Run, "_number", interrupted)
    with pytest.raises(StartError, match="power"):
        project.apply(model(*NEW))
    ((numbered,),) = project.outside.sql("SELECT count(*) FROM things WHERE n IS NOT NULL")
    assert numbered == 20
    monkeypatch.setattr(on_postgres._Run, "_number", number)
    project.apply(model(*NEW))
    check(project.outside, 50)


def test_rows_that_are_made_and_deleted_meanwhile(tmp_path: Path, postgres: Postgres, small: None) -> None:
    """By a service of the model before: each row has a number, no number is given twice, and none is left out but by
    those that were deleted after they had one."""
    project = made(tmp_path, postgres.create())
    fill(project.outside, 0, 300)
    ended, writes, failed = threading.Event(), [0], list[BaseException]()

    def write() -> None:
        outside = Outside(project.outside.url)
        while not ended.is_set():
            try:
                fill(outside, 1_000 + writes[0], 1)
                writes[0] += 1
            except BaseException as error:
                failed.append(error)
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        project.apply(model(*NEW), expand=True)
    finally:
        ended.set()
        writer.join()
    assert not failed and writes[0]
    check(project.outside, 300 + writes[0], in_order=False)
    last = dict(project.outside.sql("SELECT scope, last FROM diptych_counters WHERE name = 'things.serial'"))
    assert last == {"": 300 + writes[0]}


def test_a_counter_with_another_name_goes_on(tmp_path: Path, new_database: NewDatabase) -> None:
    """A number that was given is not given again, though its row is gone; also if the name was that of another counter."""
    project = Project(tmp_path / "migrations", new_database())

    def migrate(*lines: str, **renames: str) -> None:
        project.make(model(*lines), renames={f"things.{old}": new for old, new in renames.items()})
        project.apply(model(*lines), allow_loss=True)

    def insert(number: int) -> None:
        """A row, which is the only one then."""
        project.outside.sql("DELETE FROM things")
        project.outside.sql(f"INSERT INTO things (id) VALUES ('{UUID.format(number)}')")

    n, m = (f"{name}: Annotated[int, Counter()] = auto()" for name in "nm")
    migrate("title: str = ''", n, m)
    for number in (1, 2, 3):
        insert(number)
    migrate("title: str = ''", n)
    insert(4)
    insert(5)
    project.outside.sql("DELETE FROM things")
    migrate("title: str = ''", m, n="m")
    insert(6)
    assert project.outside.sql("SELECT m FROM things") == [(6,)]
