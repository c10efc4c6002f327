"""The types of columns, as `diptych inspect` writes them."""

from __future__ import annotations

import pytest

from diptych.inspection.found import FoundColumn
from diptych.inspection.types import FieldType, type_of
from diptych.model.scalars import BIGINT, BOOLEAN, DATE, DATETIME, FLOAT, INT, JSON, STRING, TIME, UUID, Scalar
from tests.support.cases import cases

PYTHON: dict[str, Scalar] = {
    "str": STRING,
    "int": INT,
    "BigInt": BIGINT,
    "float": FLOAT,
    "bool": BOOLEAN,
    "date": DATE,
    "datetime": DATETIME,
    "time": TIME,
    "UUID": UUID,
    "Json": JSON,
}


def found(kind: str, database: str = "postgres", holds: str = "") -> FieldType | str:
    return type_of(FoundColumn("c", kind, nullable=False, holds=holds), database, {})


@cases("python, scalar", PYTHON.items())
def test_a_column_of_postgres_has_the_type_that_diptych_would_make_it_of(python: str, scalar: Scalar) -> None:
    told = found(scalar.postgres.partition(" COLLATE")[0])
    assert isinstance(told, FieldType) and told.python == python and not told.note


@pytest.mark.parametrize(
    ("kind", "python", "markers"),
    [
        ("character varying(20)", "str", ("MaxLen(20)",)),
        ("numeric(8,2)", "Decimal", ("Digits(8, 2)",)),
        ("time(3) without time zone", "time", ()),
        ("timestamp(3) with time zone", "datetime", ()),
    ],
)
def test_sizes_and_precisions_of_postgres(kind: str, python: str, markers: tuple[str, ...]) -> None:
    assert found(kind) == FieldType(python, markers)


@cases("kind", ["time with time zone", "interval", "integer[]", "bytea", "numeric(20,2)"])
def test_what_has_no_type_is_told(kind: str) -> None:
    assert isinstance(found(kind), str)


@pytest.mark.parametrize(
    ("kind", "holds", "python", "note"),
    [
        ("INTEGER", "", "int", ""),
        ("INTEGER", "long", "BigInt", ""),
        ("VARCHAR(20)", "", "str", ""),
        ("DATE", "day", "date", ""),
        ("DATETIME", "moment", "datetime", ""),
        ("TIME", "text", "str", "TIME: its rows have no form that is known here, so it is text."),
        ("NUMERIC", "", "float", "NUMERIC: SQLite keeps it as a float."),
        ("BOOLEAN", "", "bool", ""),
    ],
)
def test_a_column_of_sqlite_has_the_type_of_what_it_holds(kind: str, holds: str, python: str, note: str) -> None:
    told = found(kind, "sqlite", holds)
    assert isinstance(told, FieldType) and (told.python, told.note) == (python, note)
