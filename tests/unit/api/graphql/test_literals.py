"""Lifting literals: what is left of a text, and what stays in it."""

from __future__ import annotations

import pytest

from diptych.api.graphql.literals import lift


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{ user(id: "a") { name } }', '{ user(id: "bcd") { name } }'),
        ("{ user(id: 1) { name } }", "{ user(id: -23) { name } }"),
        ('{ a(x: "1", y: "1") }', '{ a(x: "2", y: "2") }'),
        ('{ a(x: ["", 3]) } # "', '{ a(x: ["\\"\\u0041", 4]) } # "'),
        ("{ a(offset: 10) }", "{ a(offset: 20) }"),
    ],
)
def test_texts_that_differ_in_literals_share_the_rest(one: str, other: str) -> None:
    first, second = lift(one), lift(other)
    assert first is not None and second is not None
    assert first.rest == second.rest
    assert first.values != second.values


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{ a(x: "1") }', "{ a(x: 1) }"),
        ('{ a(x: "1", y: "1") }', '{ a(x: "1", y: "2") }'),
        ('{ a(x: "1", first: 1) }', '{ a(x: "1", first: 2) }'),
        ('{ a(x: "1", last :,2) }', '{ a(x: "1", last :,3) }'),
        ('{ a(x: "1", y: 1.5) }', '{ a(x: "1", y: 2.5) }'),
        ('{ a(x: "1", y: true) }', '{ a(x: "1", y: false) }'),
        ('{ a(x: "1") { b1 } }', '{ a(x: "1") { b2 } }'),
        ('{ a(x: "1") } # 1', '{ a(x: "1") } # 2'),
        ('{ a(x: "1" ) }', '{ a(x: "1") }'),
        ('{ a(x: "1", y: 0) }', '{ a(x: "1", y: -00) }'),
        ('{ a(x: "1", y: 1e-5) }', '{ a(x: "1", y: 1e-6) }'),
    ],
)
def test_texts_that_differ_in_more_share_nothing(one: str, other: str) -> None:
    first, second = lift(one), lift(other)
    assert first is not None and second is not None
    assert first.rest != second.rest


@pytest.mark.parametrize(
    "text",
    [
        "{ a }",
        "{ a(first: 5) }",
        '{ a(x: "1',
        '{ a(x: """1""") }',
        '{ a(x: "\\ud800") }',
        '{ a(x: "\\u{41}") }',
        '{ __type(name: "A") { name } }',
        'query($x: ID = "1") { a(x: $x) }',
        "{ a(x: [" + "1 " * 300 + "]) }",
        '{ a(x: "' + "x" * 20_000 + '") }',
    ],
)
def test_other_texts_stay_whole(text: str) -> None:
    assert lift(text) is None


def test_places_are_those_of_the_text() -> None:
    text = '{ a(x: "é", y: 12, z: "é") }'
    lifted = lift(text)
    assert lifted is not None
    assert lifted.values == ("é", 12)
    assert {text[place:][:2]: index for place, index in lifted.places.items()} == {'"é': 0, "12": 1}
