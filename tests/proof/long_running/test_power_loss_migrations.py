"""A migration is there as a whole or not at all when the power fails (SQLite), and one that was acknowledged stays.

Versions of a model follow each other over rows, each by a migration that makes the table anew, while a service has the
file open. The files are recorded, and crash images of random moments are opened by plain SQLite: they are sound, their
tables are those of one version, at least the last that was acknowledged, and have all rows with their values.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import diptych.db.sqlite.connection as connection
from tests.contract.migrate.scene import Project
from tests.contract.migrate.test_kinds import model
from tests.proof.long_running.parts import tell
from tests.proof.long_running.power_loss import Acknowledged, Event, Image, Recorder, Write, count_faults, crash_images
from tests.support.effort import scaled

ROWS = 60
IMAGES = scaled(2_000, 40)
SEED = 21
TITLE = "title {} " + "x" * 700
_ID = "00000000-0000-7000-8000-{:012x}"
VERSIONS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("title: str", "size: int = 1"), {}),
    (("title: str", "size: int = 1", "slug: str"), {"fills": {"things.slug": "= upper(title)"}}),
    (
        ("title: str", "size: str", "slug: str"),
        {"usings": {"things.size": "CAST(size AS TEXT)"}},
    ),
    (("title: str", "size: str", "slug: str", "group: Group | None = None"), {}),
    (
        ("title: str", "size: str", "slug: str", 'group: Annotated[Group | None, OnDelete("cascade")] = None'),
        {},
    ),
    (("title: str", "size: str", 'group: Annotated[Group | None, OnDelete("cascade")] = None'), {}),
    (("title: str", "size: str = 'n'", "n: Annotated[int, Counter()] = auto()"), {}),
]
"""The fields of each version, and the answers for its migration."""
COLUMNS = [
    {"title", "size"},
    {"title", "size", "slug"},
    {"title", "size", "slug"},
    {"title", "size", "slug", "group_id"},
    {"title", "size", "slug", "group_id"},
    {"title", "size", "group_id"},
    {"title", "size", "n"},
]
_DATABASE = ("data.db", "data.db-wal", "data.db-journal")


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, synchronous: str) -> list[Event]:
    """The events of the migrations. Every other one leaves the write-ahead log as it is at its end."""
    project = Project(folder / "migrations", f"sqlite:///{folder}/data.db")
    others = [pragma for pragma in connection._PRAGMAS if not pragma.startswith("synchronous")]
    recorder = Recorder(folder)
    try:
        holder = None
        for version, (fields, answers) in enumerate(VERSIONS):
            pages = 0 if version % 2 else 50
            more = (f"synchronous={synchronous}", f"wal_autocheckpoint={pages}")
            monkeypatch.setattr(connection, "_PRAGMAS", (*others, *more))
            project.make(model(*fields), f"v{version}", **answers)
            project.apply(model(*fields), allow_loss=True)
            if holder is None:
                fill(folder / "data.db")
                holder = apsw.Connection(str(folder / "data.db"))  # a service that has it open
                holder.execute("SELECT count(*) FROM things").fetchall()
            recorder.add(Acknowledged(version))
        assert holder is not None
        holder.close()
    finally:
        recorder.unregister()
    return [event for event in recorder.events if getattr(event, "file", _DATABASE[0]) in _DATABASE]


def fill(path: Path) -> None:
    db = apsw.Connection(str(path))
    try:
        db.execute("PRAGMA synchronous=FULL").fetchall()
        with db:
            for number in range(ROWS):
                values = _ID.format(number), TITLE.format(number), number
                db.execute("INSERT INTO things (id, title, size) VALUES (?, ?, ?)", values)
    finally:
        db.close()


def faults(image: Image, folder: Path) -> list[str]:
    """What is wrong in an image."""
    image.write_to(folder)
    path = folder / "data.db"
    if not path.exists():
        return ["everything is lost"] * bool(image.acknowledged)
    try:
        db = apsw.Connection(str(path))
        try:
            state = db.execute("PRAGMA integrity_check").get
            return [f"corrupt: {state}"] if state != "ok" else [*_faults(image, db)] if image.acknowledged else []
        finally:
            db.close()
    except apsw.Error as error:
        return [f"it cannot be read: {error}"]


def _faults(image: Image, db: apsw.Connection) -> Iterator[str]:
    logged: list[Any] = db.execute(
        "SELECT name FROM diptych_migrations WHERE half = 'contract' AND step = -1"
    ).fetchall()
    version = max((int(name[6:]) for (name,) in logged), default=-1)
    if version < image.acknowledged[-1]:
        yield "an acknowledged migration is lost"
    there: list[Any] = db.execute("SELECT name FROM pragma_table_info('things')").fetchall()
    own = {name for (name,) in there} - {"id", "version", "created_at", "updated_at"}
    if version < 0 or own != COLUMNS[version]:
        yield f"the tables are not those of version {version}: {sorted(own)}"
        return
    rows = db.execute("SELECT id, title, CAST(size AS INTEGER) FROM things ORDER BY id").fetchall()
    if rows != [(_ID.format(number), TITLE.format(number), number) for number in range(ROWS)]:
        yield f"{len(rows)} rows of {ROWS} have their values"
    if "slug" in own and db.execute("SELECT count(*) FROM things WHERE slug <> upper(title)").get:
        yield "a value that was filled in is lost"
    if db.execute("SELECT count(DISTINCT row_id) FROM diptych_feed WHERE resource = 'things'").get != ROWS:
        yield "stored changes are lost"
    if db.execute("PRAGMA foreign_key_check").fetchall():
        yield "a reference leads nowhere"


def test_a_migration_is_there_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "synchronous=FULL" in connection._PRAGMAS
    events = record(tmp_path, monkeypatch, "FULL")
    found = count_faults(crash_images(events, IMAGES, random.Random(SEED)), faults, tmp_path)
    written = sum(isinstance(event, Write) for event in events)
    tell(f"power loss in {len(VERSIONS) - 1} migrations: {IMAGES} images of {written} writes, faults: {dict(found)}")
    assert not found
    assert sum(isinstance(event, Acknowledged) for event in events) == len(VERSIONS)


def test_the_check_sees_what_normal_synchronisation_loses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = record(tmp_path, monkeypatch, "NORMAL")
    found = count_faults(crash_images(events, IMAGES, random.Random(SEED)), faults, tmp_path)
    tell(f"power loss in migrations, synchronous=NORMAL: {IMAGES} images, faults: {dict(found)}")
    assert sum(count for fault, count in found.items() if "is lost" in fault) > IMAGES / 50
