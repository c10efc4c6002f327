"""`deprecated(…)` in a model file: what is wrong with it is reported with its place."""

from __future__ import annotations

import pytest

from diptych import ModelError
from tests.support.model_files import model_of


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('Annotated[str, deprecated("", since="2026-01-01")] = ""', "it is deprecated without a reason"),
        ('Annotated[str, deprecated("x", since="2026-13-01")] = ""', "since='2026-13-01' is no day"),
        ('Annotated[str, deprecated("x", since="2026-01-01", sunset="x")] = ""', "sunset='x' is no day"),
        ('Annotated[str, deprecated("x", since="2026-01-01", sunset="2025-01-01")] = ""', "is before 2026-01-01"),
        ('Annotated[str, deprecated("x", since="2026-01-01", link="javascript:x")] = ""', "is no address"),
        ('Annotated[str, deprecated("x", since=date(2026, 1, 1), link="https://a b")] = ""', "is no address"),
        ('Annotated[str, deprecated] = ""', "deprecated is not called"),
        (
            'Annotated[str, deprecated("x", since="2026-01-01"), deprecated("y", since="2026-01-01")] = ""',
            "deprecated is given 2 times",
        ),
    ],
)
def test_a_fault_is_a_sentence(line: str, said: str) -> None:
    with pytest.raises(ModelError, match=said.replace("(", r"\(")) as raised:
        model_of(f"class Thing(Resource):\n    name: {line}\n")
    assert "Thing.name" in str(raised.value)


def test_a_class_a_call_an_argument_and_an_enum_are_checked_too() -> None:
    with pytest.raises(ModelError) as raised:
        model_of(
            """
@deprecated_values(gone=deprecated("x", since="2026-01-01"), red=deprecated("x", since="soon"))
class Colour(StrEnum):
    red = "red"

class Thing(Resource, deprecated="yes"):
    colour: Colour = Colour.red

    @action(deprecated=deprecated("x", since="then"))
    async def run(self, tx: Tx, note: Annotated[str, deprecated("x", since="2026-01-01")]) -> None: ...
"""
        )
    for said in (
        "Colour has no member gone",
        "Colour.red: since='soon' is no day",
        "deprecated='yes' is no deprecation",
        "since='then' is no day",
        "its argument 'note': it is deprecated, and no client can leave it out",
    ):
        assert said in str(raised.value), said
