"""The function of a `run` step changes rows as any other program does: they are counted, logged, and kept consistent."""

from __future__ import annotations

from pathlib import Path

from tests.contract.migrate.scene import Project, opened, structure
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

WORK = """from diptych.migrate import run


async def work(db):
    {}


migration = Migration("""


def put_work(project: Project, *lines: str, last: bool = False) -> None:
    """Let the second migration begin with a function, or its first half end with one."""
    file = project.folder / "0002_next.py"
    text = file.read_text("utf-8").replace("migration = Migration(", WORK.format("\n    ".join(lines)))
    head, begin, steps = text.partition("    expand=(")
    steps = steps.replace("\n    )", "\n        run(work),\n    )", 1) if last else f"\n        run(work),{steps}"
    file.write_text(head + begin + steps, "utf-8")


def test_rows_that_it_makes_are_counted(tmp_path: Path, new_database: NewDatabase) -> None:
    lines = "title: str", "n: Annotated[int, Counter()] = auto()"
    old, new = model(*lines), model(*lines, "more: int | None = None")
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    project.outside.sql(f"INSERT INTO things (id, title) VALUES ('{UUID.format(1)}', 'a')")
    project.make(new)
    insert = "await db.execute(\"INSERT INTO things (id, title) VALUES ($1, 'b')\", f'{}{{number}}')"
    put_work(project, "for number in (2, 3):", "    " + insert.format(UUID.format("")))
    project.apply(new)
    project.outside.sql(f"INSERT INTO things (id, title) VALUES ('{UUID.format(4)}', 'c')")
    assert project.outside.sql("SELECT n FROM things ORDER BY id") == [(1,), (2,), (3,), (4,)]


TRASH = """
class Folder(Resource, trash=timedelta(days=3)):
    name: str = ""
    up: Annotated[Folder | None, OnDelete("cascade")] = None
    {}
class Note(Resource, trash=timedelta(days=3)):
    folder: Annotated[Folder, OnDelete("cascade")]
class Mark(Resource):
    folder: Annotated[Folder | None, OnDelete("set null")] = None
"""


def test_what_it_deletes_takes_along_what_refers_to_it(tmp_path: Path, new_database: NewDatabase) -> None:
    old, new = model_of(TRASH.format("")), model_of(TRASH.format("more: int | None = None"))
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    top, below = UUID.format(1), UUID.format(2)
    project.outside.sql(f"INSERT INTO folders (id, name) VALUES ('{top}', 'top')")
    project.outside.sql(f"INSERT INTO folders (id, name, up_id) VALUES ('{below}', 'below', '{top}')")
    for table in ("notes", "marks"):
        project.outside.sql(f"INSERT INTO {table} (id, folder_id) VALUES ('{UUID.format(3)}', '{below}')")
    project.make(new)
    moment = "2026-01-01T00:00:00.000000Z"
    delete = f"UPDATE folders SET deleted_at = '{moment}', updated_at = '{moment}', version = version + 1"
    put_work(project, f"await db.execute(\"{delete} WHERE name = 'top'\")")
    project.apply(new)
    assert project.outside.sql("SELECT count(*) FROM folders WHERE deleted_at IS NULL") == [(0,)]
    assert project.outside.sql("SELECT count(*) FROM notes WHERE deleted_at IS NULL") == [(0,)]
    assert project.outside.sql("SELECT folder_id FROM marks") == [(None,)]


def test_rows_are_counted_after_a_counter_was_renamed(tmp_path: Path, new_database: NewDatabase) -> None:
    old, new = (model("title: str", f"{name}: Annotated[int, Counter()] = auto()") for name in ("n", "m"))
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    project.outside.sql(f"INSERT INTO things (id, title) VALUES ('{UUID.format(1)}', 'a')")
    project.make(new, renames={"things.n": "m"})
    insert = f"INSERT INTO things (id, title) VALUES ('{UUID.format(2)}', 'b')"
    put_work(project, f'await db.execute("{insert}")', last=True)
    project.apply(new)
    assert project.outside.sql("SELECT m FROM things ORDER BY id") == [(1,), (2,)]


def test_what_it_deletes_takes_along_what_refers_to_a_table_that_was_renamed(
    tmp_path: Path, new_database: NewDatabase
) -> None:
    text = TRASH.format("")
    old, new = model_of(text), model_of(text.replace("Folder", "Binder").replace("folder", "binder"))
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    project.outside.sql(f"INSERT INTO folders (id, name) VALUES ('{UUID.format(1)}', 'top')")
    project.outside.sql(f"INSERT INTO notes (id, folder_id) VALUES ('{UUID.format(3)}', '{UUID.format(1)}')")
    keys = {f"{table}.folder_id": "binder_id" for table in ("notes", "marks")}
    project.make(new, renames={"folders": "binders", **keys})
    moment = "2026-01-01T00:00:00.000000Z"
    delete = f"UPDATE binders SET deleted_at = '{moment}', updated_at = '{moment}', version = version + 1"
    put_work(project, f'await db.execute("{delete}")', last=True)
    project.apply(new)
    assert project.outside.sql("SELECT count(*) FROM notes WHERE deleted_at IS NULL") == [(0,)]
    anew = Outside(new_database())
    opened(anew.url, new)
    assert structure(project.outside) == structure(anew)
