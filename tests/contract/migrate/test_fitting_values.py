"""What a migration would write into a column fits it, on both stores; else nothing is changed, and the sentence says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diptych.errors import StartError
from tests.contract.migrate.scene import Project, structure
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.running import NewDatabase

SIZE = "size: Annotated[Decimal, Digits({}, {})]"


def sizes(folder: Path, url: str, old: tuple[int, int], new: tuple[int, int], *values: str) -> Project:
    """A table with decimals, and a migration that gives them other digits."""
    project = Project(folder / "migrations", url)
    project.make(model(SIZE.format(*old)), "first")
    project.apply(model(SIZE.format(*old)))
    for number, value in enumerate(values, 1):
        stored = value.replace(".", "") if project.outside.is_sqlite else value
        project.outside.sql(f"INSERT INTO things (id, size) VALUES ('{UUID.format(number)}', {stored})")
    project.make(model(SIZE.format(*new)))
    return project


def test_long_decimals_are_rounded_exactly(tmp_path: Path, new_database: NewDatabase) -> None:
    given = ("1234567890123456.70", "-1234567890123456.75", "1234567890123456.74", "0.05", "-0.05", "-0.04")
    project = sizes(tmp_path, new_database(), (18, 2), (18, 1), *given)
    with pytest.raises(StartError, match="rounds 5 values"):
        project.apply(model(SIZE.format(18, 1)))
    project.apply(model(SIZE.format(18, 1)), allow_loss=True)
    found = [str(value) for (value,) in project.outside.sql("SELECT CAST(size AS text) FROM things ORDER BY id")]
    expected = ["1234567890123456.7", "-1234567890123456.8", "1234567890123456.7", "0.1", "-0.1", "0.0"]
    assert found == [str(int(value.replace(".", ""))) if project.outside.is_sqlite else value for value in expected]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [((8, 2), (8, 4), "123456.78"), ((18, 2), (18, 4), "9999999999999999.99"), ((4, 2), (3, 1), "99.96")],
)
def test_decimals_that_have_too_many_digits_are_refused(
    tmp_path: Path, new_database: NewDatabase, old: tuple[int, int], new: tuple[int, int], value: str
) -> None:
    project = sizes(tmp_path, new_database(), old, new, value)
    before = structure(project.outside), project.outside.sql("SELECT size FROM things")
    with pytest.raises(StartError, match=r"1 rows of things .* not Decimal|numeric field overflow"):
        project.apply(model(SIZE.format(*new)), allow_loss=True)
    assert (structure(project.outside), project.outside.sql("SELECT size FROM things")) == before


BASE = ("title: str | None = None",)
REFUSED: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "no value": ((*BASE, "slug: str"), {"fills": {"things.slug": "= lower(title)"}}, "slug that is null"),
    "no value, for null": (("title: str",), {"fills": {"things.title": "= nullif('a', 'a')"}}, "title that is null"),
    "no name of an enum": (
        (*BASE, "hue: Colour"),
        {"fills": {"things.hue": "= coalesce(title, 'red')"}},
        "1 rows .* hue that is not one of red, blue or is null",
    ),
    "an enum that was text": (("title: Colour",), {"fills": {"things.title": '"red"'}}, "1 rows .* title .* red, blue"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_expressions_that_give_no_value_of_the_column_are_refused(
    tmp_path: Path, new_database: NewDatabase, name: str
) -> None:
    lines, answers, said = REFUSED[name]
    project = Project(tmp_path / "migrations", new_database())
    project.make(model(*BASE), "first")
    project.apply(model(*BASE))
    for number, title in enumerate(("'A'", "NULL"), 1):
        project.outside.sql(f"INSERT INTO things (id, title) VALUES ('{UUID.format(number)}', {title})")
    before = structure(project.outside)
    project.make(model(*lines), **answers)
    with pytest.raises(StartError, match=said):
        project.apply(model(*lines))
    assert structure(project.outside) == before


def test_an_expression_that_gives_no_whole_number_is_refused_on_sqlite(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    project = Project(tmp_path / "migrations", new_sqlite())
    project.make(model("size: int"), "first")
    project.apply(model("size: int"))
    project.outside.sql(f"INSERT INTO things (id, size) VALUES ('{UUID.format(1)}', 7)")
    lines = ("size: int", "half: int")
    project.make(model(*lines), fills={"things.half": "= size / 2.0"})
    with pytest.raises(StartError, match="1 rows of things would have a value in half that is not Int"):
        project.apply(model(*lines))
