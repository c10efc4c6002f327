"""A filter is printed as the client wrote it, with every operator of every type."""

from __future__ import annotations

from typing import Any

import pytest

from diptych import Viewer
from diptych.api.ask_builder import AskBuilder
from diptych.api.filter_printer import Wheres
from diptych.ask.slots import RawValue
from diptych.model.model import Model
from diptych.model.operators import NEGATIONS, OPERATORS
from diptych.model.rules.expr import Slot
from tests.support.model_files import declare

MODEL: Model = declare("""
class Place(Value):
    city: str

class Thing(Resource):
    name: str
    count: int = 0
    tags: list[str] | None = None
    place: Place | None = None
    access = (grant("read"),)
""").built
THING = MODEL.resources["Thing"]
TAKEN: dict[str, Any] = {"value": "x", "list": ["x", "y"], "truth": False}


def printed(where: dict[str, Any]) -> dict[str, Any]:
    """A filter that is translated and printed, its slots as the values that they take."""
    view = MODEL.view(MODEL.signature(Viewer()))
    builder = AskBuilder(view)
    expr = builder.where(RawValue(where, ("where",)), view.resources["Thing"])
    assert not builder.faults

    def leaf(slot: Slot) -> Any:
        return builder.slots.sources[slot.index].fetch(where)

    return Wheres(MODEL, leaf).tree(expr, THING)


@pytest.mark.parametrize("operator", [operator for operator in OPERATORS if operator != "isEmpty"])
def test_an_operator_is_printed_as_itself(operator: str) -> None:
    (name, *_) = [field.name for field in THING.fields.values() if operator in field.scalar.ops]
    where = {name: {operator: TAKEN[OPERATORS[operator].takes]}}
    assert printed(where) == where


@pytest.mark.parametrize("operator", [*NEGATIONS.values(), "eq", "isNull"])
def test_an_operator_of_a_member_is_printed_as_itself(operator: str) -> None:
    where = {"place": {"city": {operator: TAKEN[OPERATORS[operator].takes]}}}
    assert printed(where) == where
