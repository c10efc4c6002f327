"""Values of Python and their JSON."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest

from diptych.model.scalar_values import as_json


class Color(StrEnum):
    red = "red"


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (Color.red, "red"),
        (Decimal("1E+2"), "100"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), "2024-02-29T01:02:03.000004Z"),
        ("x", "x"),
        (True, True),
        (None, None),
    ],
)
def test_a_value_of_python_has_a_form_on_the_wire(value: Any, wire: Any) -> None:
    assert as_json(value) == wire


def test_a_time_without_a_zone_has_no_form_on_the_wire() -> None:
    with pytest.raises(ValueError, match="with a zone"):
        as_json(datetime(2024, 2, 29))
