"""Which changes of a type write a PostgreSQL table anew: the file says so, and is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.migrate.scene import Project
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.running import Postgres

DIGITS = "size: Annotated[Decimal, Digits({}, {})]"
CASES = {
    "more digits": (DIGITS.format(8, 2), DIGITS.format(12, 2), False),
    "another scale": (DIGITS.format(8, 2), DIGITS.format(12, 4), True),
    "a wider number": ("size: int", "size: BigInt", True),
    "an enum that is text now": ("size: Colour", "size: str", False),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_said(name: str, tmp_path: Path, postgres: Postgres) -> None:
    old, new, rewrites = CASES[name]
    project = Project(tmp_path / "migrations", postgres.create())
    project.make(model(old), "first")
    project.apply(model(old))
    value = "'red'" if "Colour" in old else "7"
    project.outside.sql(f"INSERT INTO things (id, size) VALUES ('{UUID.format(1)}', {value})")
    place = "SELECT pg_relation_filenode('things')"
    before = project.outside.sql(place)
    project.make(model(new), "second")
    (file,) = project.folder.glob("*_second.py")
    assert ("/* rewrites the table under a lock */" in file.read_text()) == rewrites
    project.apply(model(new))
    assert (project.outside.sql(place) != before) == rewrites
