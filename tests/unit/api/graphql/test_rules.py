"""Errors of a document: those that differ in their place only are one."""

from __future__ import annotations

from graphql import build_schema, parse

from diptych.api.graphql.rules import validate

SCHEMA = build_schema("type Query { a: Int }")


def faults(text: str) -> list[tuple[str, list[int]]]:
    return [
        (error.message, [place.column for place in error.locations or ()]) for error in validate(parse(text), SCHEMA)
    ]


def test_a_message_is_reported_once_with_all_its_locations() -> None:
    assert faults("{ a @x @x b @x b }") == [
        ("Unknown directive '@x'.", [5, 8, 13]),
        ("Cannot query field 'b' on type 'Query'.", [11, 16]),
    ]


def test_many_errors_end_the_validation() -> None:
    (_, places), (last, nowhere) = faults(f"{{ {'b ' * 300} }}")
    assert (len(places), last[:27], nowhere) == (20, "Too many validation errors,", [])
