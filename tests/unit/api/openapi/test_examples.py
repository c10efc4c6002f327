"""Examples of fields: from the model, or made by name, type and constraints; always valid."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import pytest

from diptych import (
    BigInt,
    Digits,
    Example,
    Json,
    Max,
    MaxLen,
    Min,
    MinLen,
    Model,
    ModelError,
    Pattern,
    Resource,
    computed,
    grant,
)
from diptych.api.openapi.document import build_openapi
from diptych.api.openapi.examples import example_of
from tests.support.cases import cases
from tests.support.documents import properties, view_of


class Size(StrEnum):
    small = "small"
    large = "large"


class Thing(Resource):
    """A field of every kind."""

    nickname: Annotated[str, Example("Zoe"), MaxLen(5)]
    size: Annotated[Size, Example(Size.large)]
    other_size: Size
    email: Annotated[str, Pattern(r"[^@\s]+@[^@\s]+")]
    work_email: str
    motto: str
    tiny: Annotated[str, MaxLen(3)]
    essay: Annotated[str, MinLen(40)]
    code: Annotated[str, Pattern(r"[A-Z]{2}-[0-9]{3,5}(x|y)?")]
    word: Annotated[str, Pattern(r"\w+")]
    strange: Annotated[str, Pattern(r"(?=zz)zzz")]
    total: Annotated[Decimal, Digits(12, 2), Min(0)]
    share: Annotated[Decimal, Digits(2, 2)]
    large: Annotated[int, Min(1_000)]
    few: Annotated[int, Max(-5)]
    ratio: Annotated[float, Min(0), Max(1)]
    big: Annotated[BigInt, Min(10)]
    level: int = 7
    day: dt.date
    at: Annotated[dt.datetime, Example(dt.datetime(2026, 5, 1, tzinfo=dt.UTC))]
    done: bool
    data: Annotated[Json, Example({"a": [1]})]
    free: Json

    access = (grant("read", "create"),)

    @computed
    def shout(self) -> Annotated[str, Example("HEY")]:
        return self.motto


model = Model(Thing)
FIELDS = model.resources["Thing"].fields


@cases(
    ("name", "example"),
    [
        ("nickname", "Zoe"),
        ("size", "large"),
        ("otherSize", "small"),
        ("email", "zoe@example.org"),
        ("workEmail", "zoe@example.org"),
        ("motto", "Some motto"),
        ("tiny", "Som"),
        ("code", "AB-123"),
        ("word", "hello"),
        ("strange", None),
        ("total", "12.50"),
        ("share", "0.50"),
        ("large", 1_000),
        ("few", -5),
        ("ratio", 0.0),
        ("big", "12"),
        ("level", 7),
        ("day", "2026-01-31"),
        ("at", "2026-05-01T00:00:00.000000Z"),
        ("done", True),
        ("data", {"a": [1]}),
        ("free", {"key": "value"}),
        ("version", 1),
        ("shout", "HEY"),
    ],
)
def test_an_example_is_what_the_model_says_or_fits(name: str, example: Any) -> None:
    assert example_of(FIELDS[name]) == example


def test_a_long_text_is_long_enough() -> None:
    assert len(example_of(FIELDS["essay"])) == 40


def test_the_document_shows_them_for_rows_and_for_bodies() -> None:
    document = build_openapi(view_of(model, "anonymous"))
    for name in ("Thing", "ThingCreate"):
        fields = properties(document, name)
        assert fields["nickname"]["example"] == "Zoe"
        assert fields["size"] == {"$ref": "#/components/schemas/Size", "example": "large"}
        assert fields["otherSize"] == {"$ref": "#/components/schemas/Size", "example": "small"}
    assert "example" not in document["components"]["schemas"]["Size"], "parameters refer to it"


@cases(
    ("annotation", "fault"),
    [
        (Annotated[str, Example("Zoe"), MaxLen(2)], "the example 'Zoe' does not fit: expected at most 2 characters"),
        (Annotated[int, Example("many")], "the example 'many' does not fit: expected an integer"),
        (Annotated[Size, Example("huge")], "the example 'huge' does not fit: expected one of small, large"),
        (Annotated[str, Example], "Example is not called"),
    ],
)
def test_an_example_that_does_not_fit_is_a_mistake(annotation: Any, fault: str) -> None:
    made = type("Wrong", (Resource,), {"__annotations__": {"field": annotation}, "__module__": __name__})
    with pytest.raises(ModelError, match=r"does not fit|not called") as raised:
        Model(made)
    assert fault in str(raised.value)
