"""The table of filter operators has those of all scalars and of the client, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diptych.model.operators import (
    EQUALITY,
    FOLDED,
    NEGATIONS,
    OPERATORS,
    ORDERED,
    SEARCHES,
    SETS,
    TEXTUAL,
    Operator,
    op_of,
)

CLIENT = Path(__file__).parents[3] / "clients" / "rest" / "index.js"


def test_every_operator_is_one_of_some_scalar_and_of_the_client() -> None:
    assert {*EQUALITY, *TEXTUAL, *FOLDED, *SETS} == OPERATORS.keys()
    (known,) = re.findall(r"'(eq ne [\w ]+)'\.split", CLIENT.read_text())
    assert set(known.split()) == OPERATORS.keys()


@pytest.mark.parametrize("operator", [operator for operator in OPERATORS if operator != "isNull"])
def test_every_operator_is_one_of_expressions_or_negates_one(operator: str) -> None:
    negated = OPERATORS[operator].negates
    assert op_of(operator) == (negated or operator)
    assert negated is None or NEGATIONS[negated] == operator


def test_an_operator_without_a_form_in_expressions_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATORS, "near", Operator("value", "Is near this."))
    with pytest.raises(
        NotImplementedError, match=r"model/operators\.py .* compile/where\.py, or name the Op that it neg"
    ):
        op_of("near")


def test_what_negates_has_the_operators_of_what_it_negates() -> None:
    """A scalar that has one has the other, and a negation takes what the operator takes that it negates."""
    for negated, operator in NEGATIONS.items():
        assert OPERATORS[operator].takes == OPERATORS[negated].takes
        for group in (EQUALITY, ORDERED, SEARCHES, SETS):
            assert (negated in group) == (operator in group)
