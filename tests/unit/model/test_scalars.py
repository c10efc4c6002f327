"""The table of scalars: what each takes, what it refuses, and what comes back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, localcontext
from enum import StrEnum
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.api.graphql.scalar_types import SCALAR_TYPES
from diptych.api.openapi.examples import example_of
from diptych.compile.dialect import SQLITE
from diptych.compile.fragment import sql
from diptych.compile.meaning import Meaning, storage
from diptych.compile.members import member
from diptych.model import scalars
from diptych.model.call_defs import ArgumentDef
from diptych.model.decimal_scalar import decimal
from diptych.model.enum_scalar import enumeration
from diptych.model.operators import OPERATORS
from diptych.model.read.fields import TYPES
from diptych.model.scalar_values import from_json, to_json
from diptych.model.scalars import (
    BIGINT,
    BOOLEAN,
    DATE,
    DATETIME,
    FLOAT,
    ID,
    IDS,
    INT,
    INTEGER_ID,
    JSON,
    PLAIN,
    STRING,
    TIME,
    Scalar,
    encode_json,
)
from tests.support.cases import cases


class Color(StrEnum):
    red = "red"
    blue = "blue"


MONEY = decimal(6, 2)
ENUM = enumeration(Color)
SAMPLED = (STRING, ID, INTEGER_ID, INT, BIGINT, FLOAT, BOOLEAN, DATE, DATETIME, TIME, JSON, MONEY, ENUM)
"""Those of the tables below; `scalars.ALL` has all without parameters."""
UUID = "01890a5d-ac96-774b-bcce-b302099a8057"
HUGE = 10**5_000
LONG = "9" * 5_000
"""More digits than Python turns into an int."""

GOOD: list[tuple[Scalar, Any, Any]] = [
    (STRING, "", ""),
    (STRING, "naïve 東京 🙂 \\ \" ' %", "naïve 東京 🙂 \\ \" ' %"),
    (STRING, "\x01\x7f\u2028\ufffe", "\x01\x7f\u2028\ufffe"),
    (ID, UUID, UUID),
    (INTEGER_ID, "42", 42),
    (INTEGER_ID, 42, 42),
    (INTEGER_ID, str(2**63 - 1), 2**63 - 1),
    (INT, 0, 0),
    (INT, -(2**31), -(2**31)),
    (INT, 2**31 - 1, 2**31 - 1),
    (INT, 5.0, 5),
    (BIGINT, "9223372036854775807", 2**63 - 1),
    (BIGINT, "-9223372036854775808", -(2**63)),
    (BIGINT, "-0", 0),
    (BIGINT, 5, 5),
    (BIGINT, 5.0, 5),
    (FLOAT, 1, 1.0),
    (FLOAT, 0.1, 0.1),
    (FLOAT, -1.7976931348623157e308, -1.7976931348623157e308),
    (FLOAT, 5e-324, 5e-324),
    (BOOLEAN, True, True),
    (BOOLEAN, False, False),
    (DATE, "2024-02-29", "2024-02-29"),
    (DATE, "0001-01-01", "0001-01-01"),
    (DATE, "9999-12-31", "9999-12-31"),
    (DATETIME, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000Z"),
    (DATETIME, "2026-01-31t12:00:00.5z", "2026-01-31T12:00:00.500000Z"),
    (DATETIME, "2026-01-31 12:00:00.123456Z", "2026-01-31T12:00:00.123456Z"),
    (DATETIME, "2024-02-29T23:59:59.999999+00:00", "2024-02-29T23:59:59.999999Z"),
    (DATETIME, "2026-01-01T00:30:00+05:45", "2025-12-31T18:45:00.000000Z"),
    (DATETIME, "2025-12-31T23:30:00-01:00", "2026-01-01T00:30:00.000000Z"),
    (DATETIME, "2026-01-01T00:00:00-23:59", "2026-01-01T23:59:00.000000Z"),
    (DATETIME, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
    (TIME, "00:00", "00:00:00.000000"),
    (TIME, "14:30:00", "14:30:00.000000"),
    (TIME, "08:05:09.5", "08:05:09.500000"),
    (TIME, "23:59:59.999999", "23:59:59.999999"),
    (JSON, None, None),
    (JSON, {"a": [1, 2.5, "x", None, True, {}]}, {"a": [1, 2.5, "x", None, True, {}]}),
    (JSON, 2**63 - 1, 2**63 - 1),
    (MONEY, "12.5", Decimal("12.50")),
    (MONEY, "12", Decimal("12.00")),
    (MONEY, "0012.50", Decimal("12.50")),
    (MONEY, "-9999.99", Decimal("-9999.99")),
    (MONEY, "-0.00", Decimal("0.00")),
    (MONEY, 7, Decimal("7.00")),
    (decimal(18, 18), "0.123456789012345678", Decimal("0.123456789012345678")),
    (decimal(18, 0), "999999999999999999", Decimal("999999999999999999")),
    (ENUM, "red", "red"),
]

BAD: list[tuple[Scalar, Any]] = [
    *((scalar, value) for scalar in SAMPLED if scalar is not JSON for value in (None, [], {}, ["x"], {"a": 1})),
    *((scalar, "a\x00b") for scalar in SAMPLED if scalar not in (ID, INTEGER_ID)),
    *((scalar, "a\ud800b") for scalar in SAMPLED if scalar not in (ID, INTEGER_ID)),
    *((scalar, "\udfff") for scalar in SAMPLED if scalar not in (ID, INTEGER_ID)),
    *(
        (scalar, number)
        for scalar in SAMPLED
        if scalar not in (ID, INTEGER_ID)
        for number in (float("nan"), float("inf"), -float("inf"), HUGE, -HUGE)
    ),
    *((scalar, True) for scalar in SAMPLED if scalar not in (BOOLEAN, JSON)),
    *((scalar, LONG) for scalar in SAMPLED if scalar not in (ID, INTEGER_ID, STRING, JSON)),
    (STRING, 3),
    (STRING, 1.5),
    (ID, 1.5),
    (INTEGER_ID, 1.5),
    (INT, 2**31),
    (INT, -(2**31) - 1),
    (INT, 1.5),
    (INT, "5"),
    (INT, 1e308),
    (BIGINT, 2**63),
    (BIGINT, "9223372036854775808"),
    (BIGINT, "-9223372036854775809"),
    (BIGINT, 1.5),
    (BIGINT, "1e3"),
    (BIGINT, " 1"),
    (BIGINT, "+1"),
    (BIGINT, "٣"),
    (BIGINT, "01"),
    (BIGINT, ""),
    (FLOAT, "1.5"),
    (FLOAT, 10**400),
    (BOOLEAN, 0),
    (BOOLEAN, 1),
    (BOOLEAN, "true"),
    (DATE, "2023-02-29"),
    (DATE, "1900-02-29"),
    (DATE, "2026-13-01"),
    (DATE, "2026-00-10"),
    (DATE, "2026-04-31"),
    (DATE, "0000-01-01"),
    (DATE, "26-01-01"),
    (DATE, "2026-1-1"),
    (DATE, "20260101"),
    (DATE, "2026-W01-1"),
    (DATE, "2026-01-01T00:00:00Z"),
    (DATE, "٢٠٢٦-٠١-٠١"),
    (DATE, 20260101),
    (DATETIME, "2026-01-31T12:00:00"),
    (DATETIME, "2026-01-31T12:00Z"),
    (DATETIME, "2026-01-31"),
    (DATETIME, "2026-01-31T12:00:00.1234567Z"),
    (DATETIME, "2026-01-31T12:00:00.Z"),
    (DATETIME, "2023-02-29T12:00:00Z"),
    (DATETIME, "2026-01-31T24:00:00Z"),
    (DATETIME, "2026-01-31T23:59:60Z"),
    (DATETIME, "2026-01-31T12:60:00Z"),
    (DATETIME, "2026-01-31T12:00:00+24:00"),
    (DATETIME, "2026-01-31T12:00:00+05:60"),
    (DATETIME, "2026-01-31T12:00:00+0500"),
    (DATETIME, "2026-01-31T12:00:00+05"),
    (DATETIME, "0001-01-01T00:00:00+00:01"),
    (DATETIME, "9999-12-31T23:59:59-00:01"),
    (DATETIME, "0000-01-01T00:00:00Z"),
    (DATETIME, 1769860800),
    (TIME, "24:00"),
    (TIME, "23:59:60"),
    (TIME, "9:00"),
    (TIME, "0900"),
    (TIME, "09"),
    (TIME, "09:00:00."),
    (TIME, "09:00.5"),
    (TIME, "09:00:00.1234567"),
    (TIME, "09:00:00Z"),
    (TIME, "09:00:00+01:00"),
    (TIME, "2026-01-31T09:00:00"),
    (TIME, "٠٩:٠٠"),
    (TIME, ""),
    (TIME, 32400),
    (JSON, {"a": "\x00"}),
    (JSON, ["\ud800"]),
    (JSON, {"\x00": 1}),
    (JSON, {"\ud800": 1}),
    (JSON, {1: 1}),
    (JSON, [float("nan")]),
    (JSON, {"a": [float("inf")]}),
    (JSON, [2**63]),
    (JSON, object()),
    (JSON, (1,)),
    (MONEY, "12.500"),
    (MONEY, "12.345"),
    (MONEY, "10000"),
    (MONEY, "-10000.00"),
    (MONEY, "1e2"),
    (MONEY, ".5"),
    (MONEY, "5."),
    (MONEY, "+5"),
    (MONEY, " 5"),
    (MONEY, "NaN"),
    (MONEY, "Infinity"),
    (MONEY, "٣"),
    (MONEY, 1.5),
    (MONEY, "1,5"),
    (MONEY, ""),
    (MONEY, "--5"),
    (MONEY, 10**18),
    (decimal(18, 18), "999999999999999999.999999999999999999"),
    (decimal(18, 18), "1"),
    (ENUM, "RED"),
    (ENUM, ""),
    (ENUM, "green"),
    (ENUM, 1),
    (ENUM, "Color.red"),
]


def name_of(value: Any) -> str:
    if type(value) is object:
        return "object"  # its address would be another name in every process
    return value.name if isinstance(value, Scalar) else ascii(value)[:40] if value not in (HUGE, -HUGE) else "huge"


@cases(("scalar", "given", "canonical"), GOOD, ids=name_of)
def test_a_good_value_becomes_the_one_canonical_value(scalar: Scalar, given: Any, canonical: Any) -> None:
    parsed = scalar.parse(given)
    assert parsed == canonical
    assert type(parsed) is type(canonical)
    assert str(parsed) == str(canonical)


@cases(("scalar", "given"), BAD, ids=name_of)
def test_a_bad_value_is_refused_with_what_is_expected(scalar: Scalar, given: Any) -> None:
    with pytest.raises(ValueError, match=r"^expected .+[^.]$"):
        scalar.parse(given)


@cases(
    "text",
    ["", "x", UUID.upper(), UUID[:-1], UUID + "0", "{" + UUID + "}", UUID.replace("-", ""), "a\x00b", LONG, "\ud800"],
    ids=ascii,
)
@cases("scalar", [ID, INTEGER_ID], ids=name_of)
def test_an_ill_formed_id_names_nothing(scalar: Scalar, text: str) -> None:
    assert scalar.parse(text) is None
    assert scalar.parse_text(text) is None


@cases("number", [0, -1, 2**63, -HUGE, HUGE, "0", "007", "-5", "+5", " 5", "5.0", "٣"], ids=name_of)
def test_an_integer_that_no_row_can_have_names_nothing(number: Any) -> None:
    assert INTEGER_ID.parse(number) is None


def test_an_integer_where_ids_are_uuids_names_nothing() -> None:
    assert ID.parse(5) is None


@cases(
    ("scalar", "text", "canonical"),
    [
        (INT, "42", 42),
        (INT, "-0", 0),
        (FLOAT, "1e3", 1000.0),
        (FLOAT, "-0.5", -0.5),
        (BOOLEAN, "true", True),
        (BOOLEAN, "false", False),
        (MONEY, "12.5", Decimal("12.50")),
        (BIGINT, "5", 5),
        (STRING, "5", "5"),
        (JSON, '{"a": [1, null]}', {"a": [1, None]}),
        (ENUM, "blue", "blue"),
    ],
    ids=name_of,
)
def test_the_text_of_a_query_parameter_is_read(scalar: Scalar, text: str, canonical: Any) -> None:
    parsed = scalar.parse_text(text)
    assert (parsed, type(parsed)) == (canonical, type(canonical))


@cases(
    ("scalar", "text"),
    [
        *(
            (scalar, text)
            for scalar in (INT, FLOAT)
            for text in ("", " 1", "1 ", "+1", "0x10", "1_000", "٣", "NaN", "Infinity", "-inf", LONG)
        ),
        (INT, "2147483648"),
        (INT, "1.0"),
        (INT, "01"),
        (INT, "1e3"),
        (FLOAT, "1e400"),
        (FLOAT, "-1e400"),
        (FLOAT, "1e99999"),
        (FLOAT, "1."),
        (FLOAT, ".5"),
        (BOOLEAN, "True"),
        (BOOLEAN, "1"),
        (BOOLEAN, ""),
        (JSON, ""),
        (JSON, "{"),
        (JSON, "NaN"),
        (JSON, "1e400"),
        (JSON, '"\\ud800"'),
        (JSON, '"\\u0000"'),
        (JSON, '"\ud800"'),
        (JSON, "[" * 100_000),
        (JSON, LONG),
        (JSON, "[" * 65 + "]" * 65),
    ],
    ids=name_of,
)
def test_bad_text_of_a_query_parameter_is_refused(scalar: Scalar, text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected .+[^.]$"):
        scalar.parse_text(text)


def test_json_may_be_64_levels_deep_and_no_deeper() -> None:
    deep: Any = "x"
    for _ in range(64):
        deep = [deep]
    assert JSON.parse(deep) is deep
    with pytest.raises(ValueError, match="64 levels"):
        JSON.parse([deep])
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="64 levels"):
        JSON.parse(deep)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.decimals().map(str)
    | st.dates().map(str)
    | st.datetimes().map(lambda moment: moment.isoformat() + "Z")
    | st.uuids().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@cases("scalar", SAMPLED, ids=name_of)
@given(value=anything)
def test_whatever_is_given_either_fits_or_is_a_value_error(scalar: Scalar, value: Any) -> None:
    for parse in (scalar.parse, scalar.parse_text) if isinstance(value, str) else (scalar.parse,):
        try:
            parsed = parse(value)
        except ValueError:
            continue
        if parsed is not None:
            assert_it_comes_back(scalar, parsed)


@cases(("scalar", "given", "canonical"), GOOD, ids=name_of)
def test_a_value_comes_back_from_sqlite_as_it_went_in(scalar: Scalar, given: Any, canonical: Any) -> None:
    assert_it_comes_back(scalar, canonical)


_sqlite = apsw.Connection(":memory:")


def assert_it_comes_back(scalar: Scalar, canonical: Any) -> None:
    """Store it as SQLite does, write it as JSON as SQLite does, and parse that again."""
    convert: Callable[[Any], Any] = SQLITE.convert(scalar) or (lambda value: value)
    out = SQLITE.out(scalar).replace("{}", "{0}").format("?1")
    text = _sqlite.execute(f"SELECT CAST({out} AS TEXT)", (convert(canonical),)).get
    wire = json.loads(f'"{text}"' if SQLITE.quotes(scalar) else text)
    assert scalar.parse(wire) == canonical


def test_text_sorts_by_code_point_and_times_as_they_passed() -> None:
    moments = ["2026-01-31T12:00:00.1Z", "2026-01-31T12:00:00Z", "2025-12-31T23:30:00-01:00", "0999-01-01T00:00:00Z"]
    parsed = sorted(map(DATETIME.parse, moments))
    assert parsed == sorted(parsed, key=datetime.fromisoformat)


def test_one_decimal_type_is_one_scalar() -> None:
    assert decimal(12, 2) is decimal(12, 2)
    assert decimal(12, 2) is not decimal(12, 3)


def test_a_decimal_does_not_depend_on_the_context_of_the_thread() -> None:
    with localcontext(prec=5):
        parsed = decimal(18, 2).parse("-1234567890123456.78")
        assert str(parsed) == "-1234567890123456.78"
        assert_it_comes_back(decimal(18, 2), parsed)


def test_long_integers_are_refused_though_python_would_not_print_them() -> None:
    assert sys.get_int_max_str_digits() < 5_000
    with pytest.raises(ValueError, match="expected a decimal number"):
        MONEY.parse(HUGE)


def test_json_is_stored_compactly() -> None:
    assert encode_json({"a": [1, None, "é"]}) == '{"a":[1,null,"é"]}'


def test_all_scalars_without_parameters_are_listed() -> None:
    declared = [value for value in vars(scalars).values() if isinstance(value, Scalar)]
    assert sorted(map(repr, declared)) == sorted(map(repr, scalars.ALL))


@pytest.mark.parametrize("scalar", scalars.ALL, ids=repr)
def test_a_scalar_is_in_every_table(scalar: Scalar) -> None:
    assert (scalar.graphql or scalar.name) in SCALAR_TYPES
    assert example_of(ArgumentDef("a", "a", scalar)) is not None
    for database in ("sqlite", "postgres"):
        assert storage(Meaning(scalar.name), database)
        if scalar not in (JSON, INTEGER_ID):
            assert member(sql("x"), "a", scalar, database)  # as a member of a value object
    assert set(scalar.ops) <= OPERATORS.keys()


def test_all_scalars_but_these_have_a_plain_python_type() -> None:
    assert {*scalars.ALL} - {*PLAIN.values()} == {*IDS, BIGINT, JSON}


@pytest.mark.parametrize("scalar", PLAIN.values(), ids=repr)
def test_a_plain_python_type_is_converted_and_named_in_messages(scalar: Scalar) -> None:
    example = example_of(ArgumentDef("a", "a", scalar))
    value = from_json(scalar, example)
    assert type(value) is scalar.python
    assert to_json(scalar, value) == example
    assert scalar.python.__name__ in TYPES
