"""Values of stored changes keep every digit and character on their way between the stores."""

from __future__ import annotations

import json
from typing import Any

import pytest

from diptych.move.postgres_values import RowForm
from tests.support.model_files import resource

THING = resource("""
class Thing(Resource):
    name: str
    price: Annotated[Decimal, Digits(18, 4)]
    ratio: float
    good: bool
    seen: datetime
    at: time
    extra: Json
    tags: list[str]
""")
FORM = RowForm(THING)
PAIRS: dict[str, tuple[str, Any]] = {
    "name": ('"\\u00e4 \\"x\\""', 'ä "x"'),
    "price": ("12345678901234.5678", 123456789012345678),
    "ratio": ("1", 1.0),
    "good": ("true", 1),
    "seen": ('"2026-01-02T03:04:05+00:00"', "2026-01-02T03:04:05.000000Z"),
    "at": ('"03:04:05.5"', "03:04:05.500000"),
    "extra": ('{"b": 1.0,  "a": [1e400]}', '{"b": 1.0,  "a": [1e400]}'),
    "tags": ('["x", "y"]', '["x","y"]'),
}
"""A value in a change of PostgreSQL, and in one of SQLite."""


def in_sqlite(image: str) -> Any:
    return json.loads(FORM.image_to_sqlite(image) or "null")


def test_each_type() -> None:
    image = "{" + ",".join(f'"{name}":{text}' for name, (text, _) in PAIRS.items()) + ',"gone":1.5}'
    assert in_sqlite(image) == {name: value for name, (_, value) in PAIRS.items()} | {"gone": 1.5}


def test_null_and_what_is_left_out() -> None:
    assert FORM.image_to_sqlite(None) is None
    assert in_sqlite('{"name":null,"price":null,"seen":null,"=":["extra"]}') == {
        "name": None,
        "price": None,
        "seen": None,
        "extra": 1,
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-02T03:04:05.1+00:00", "2026-01-02T03:04:05.100000Z"),
        ("2026-01-02T03:04:05.123456+00:00", "2026-01-02T03:04:05.123456Z"),
        ("9999-12-31T23:59:59.999999+00:00", "9999-12-31T23:59:59.999999Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000000Z"),
    ],
)
def test_moments(text: str, wanted: str) -> None:
    assert in_sqlite(json.dumps({"seen": text})) == {"seen": wanted}


def test_half_a_character_in_json_stays() -> None:
    assert in_sqlite('{"name":"x","extra":{"a":"\\ud800"}}') == {"name": "x", "extra": '{"a":"\\ud800"}'}


def test_and_back() -> None:
    image = json.dumps({name: value for name, (_, value) in PAIRS.items()})
    there = FORM.image_to_postgres(image)
    assert in_sqlite(there or "") == json.loads(image)
    assert json.loads(there or "")["price"] == "12345678901234.5678"
