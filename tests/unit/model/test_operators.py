"""The table of filter operators has those of all scalars and of the client, and no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from diptych import Model, Resource
from diptych.compile.dialect import POSTGRES, SQLITE, Dialect
from diptych.compile.where import Expressions
from diptych.model.describe.rule_text import render
from diptych.model.operators import (
    EQUALITY,
    FOLDED,
    NEGATIONS,
    OPERATORS,
    ORDERED,
    SEARCHES,
    SETS,
    TEXTUAL,
    Op,
    Operator,
    op_of,
)
from diptych.model.rules.expr import Col, Compare, Slot
from diptych.model.scalars import STRING

CLIENT = Path(__file__).parents[3] / "clients" / "rest" / "index.js"


class Book(Resource):
    title: str
    marks: list[str]


MODEL = Model(Book)


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


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
@pytest.mark.parametrize("op", get_args(Op))
def test_every_operator_of_expressions_has_its_sql_and_its_words(op: Op, dialect: Dialect) -> None:
    field = "marks" if op in SETS else "title"
    compared = Compare(op, Col((field,)), Slot(0, STRING))
    compiler = Expressions(MODEL, dialect)
    row = compiler.open("Book")
    assert f'"{field}"' in compiler.condition(compared, row).text
    assert field in render(compared)


def test_an_operator_without_sql_says_what_to_do() -> None:
    compiler = Expressions(MODEL, SQLITE)
    row = compiler.open("Book")
    with pytest.raises(NotImplementedError, match=r"near has no SQL: write it here, in compile/where\.py"):
        compiler.condition(Compare("near", Col(("title",)), Slot(0, STRING)), row)  # type: ignore[arg-type]  # no operator
