"""What is counted of a text before it is parsed is what the obvious way counts on its tree."""

from __future__ import annotations

from dataclasses import asdict
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.api.graphql import measure, scan, tokens
from diptych.api.graphql.measure import measure_text, measure_values
from diptych.ask.measures import Limits, RequestMeasures
from diptych.model.declare.roles import Viewer
from tests.support.cases import cases
from tests.support.counting import counted
from tests.support.drawing import Loose
from tests.support.effort import scaled

ANY = Limits(**dict.fromkeys(Limits.__struct_fields__, 10**9))
MOST = 100_000
"""Beyond this, questions about the schema are not counted any further."""
DOCUMENTS = scaled(800, 24)


def measured(text: str, limits: Limits = ANY) -> RequestMeasures:
    asked = RequestMeasures("graphql", Viewer())
    measure_text(text, limits, asked)
    return asked


def differences(text: str) -> dict[str, tuple[int, int]]:
    """Numbers that differ: as they are measured, and as they are."""
    asked, wanted = measured(text), asdict(counted(text))
    wanted["depth"] = max(wanted["depth"], 0)
    return {
        name: (found, number)
        for name, number in wanted.items()
        if min(found := getattr(asked, name), MOST) != min(number, MOST)
    }


@pytest.mark.parametrize("about", [False, True], ids=["data", "schema"])
@pytest.mark.timeout(scaled(1_200))
def test_every_number_is_that_of_the_tree(about: bool) -> None:
    draw = Loose(Random("measure"), about)
    for _ in range(DOCUMENTS // 2):
        text = draw.document()
        assert not differences(text), text


# what could be taken for something else: a text, and some of its numbers

NAMED: dict[str, tuple[str, dict[str, int]]] = {
    "an alias is no argument": ("{ a: b(c: 1, d: {e: 2}) }", {"aliases": 1, "selections": 2, "expanded": 1}),
    "words of the grammar as names": (
        "query query { on: fragment { query on } mutation: type }",
        {"aliases": 2, "expanded": 4, "depth": 1, "definitions": 1},
    ),
    "a fragment named like a field": ("{ ...id } fragment id on T { id }", {"expanded": 2, "definitions": 2}),
    "directives on everything": (
        "query Q($v: Int = 1 @a) @b { f @c ...F @d ... @e { g } ... on T @f { h } } fragment F on T @g { i @h(a: [1, 2]) }",
        {"directives": 8, "expanded": 7, "selections": 4, "listed": 2},
    ),
    "a directive without a name": ("{ a @ }", {"directives": 1}),
    "brackets in strings": (
        '{ a(b: "{[( @x: ...F", c: """ } " ) \\""" @y : """) { d } }',
        {"nesting": 2, "directives": 0, "aliases": 0, "expanded": 2},
    ),
    "an escaped quote": ('{ a(b: "\\" { @x", c: "\\\\") }', {"nesting": 2, "directives": 0, "tokens": 11}),
    "brackets in comments": ('{ a # { b { @c :\n # } """\r d } # {', {"nesting": 1, "tokens": 4, "expanded": 2}),
    "numbers in a row": ("{ a(b: [1-1-1 1.5e-3-2 -0]) }", {"listed": 6, "tokens": 15}),
    "a number with a name at its end": ("{ a(b: [1 2a 0x3]) }", {"listed": 3}),
    "an empty block string": ('{ a(b: """""") { c } }', {"nesting": 2, "expanded": 2, "string": 1}),
    "a quote at the end of a block string": ('{ a(b: """x\\"""") { c } }', {"nesting": 2}),
    "a string that does not end": ('{ a(b: "c { d\n) { e } }', {"nesting": 2}),
    "a block string that does not end": ('{ a(b: """c { d\n) { e } }', {"nesting": 2, "tokens": 6}),
    "the longest string, without its quotes": ('{ a(b: "éé", c: """x""") }', {"string": 4}),
    "the longest name": ("{ abcdefgh(b: 12345) }", {"string": 8}),
    "a subscription tells of a change": ("subscription { postChanged { post { author { name } } } }", {"depth": 2}),
    "a query of the same depth": ("query { postChanged { post { author { name } } } }", {"depth": 3}),
    "the parts of a page are no levels": (
        "{ a { edges { node { b { nodes { c } } } } pageInfo { d } } }",
        {"depth": 2},
    ),
    "a fragment that is not there": ("{ a { ...F } }", {"expanded": 2, "depth": 1, "definitions": 1}),
    "a fragment in a circle": ("{ ...F } fragment F on T { a { ...F } }", {"definitions": 2, "expanded": 3}),
    "a fragment twice": ("{ ...F } fragment F on T { a } fragment F on T { b c d }", {"definitions": 3, "expanded": 2}),
    "fragments that double": (
        "{ ...A } fragment A on T { ...B ...B } fragment B on T { ...C ...C } fragment C on T { a b }",
        {"expanded": 15, "selections": 2},
    ),
    "levels through fragments": (
        "{ a { ...A } } fragment A on T { b { ...B } } fragment B on T { c { d } }",
        {"depth": 3, "nesting": 6},
    ),
    "a filter and its lists": (
        "{ a(where: {or: [{b: {eq: 1, in: [1, 2, 3]}}, {not: {c: {eq: $v}}}], d: {isNull: true}}) { id } }",
        {"filter_terms": 4, "listed": 3},
    ),
    "a filter in a filter's place": ("{ a(where: $w, first: 1) b(where: {c: $x}) }", {"filter_terms": 1}),
    "the longest filter counts": ("{ a(where: {b: {eq: 1}}) c(where: {d: {eq: 1, ne: 2}}) }", {"filter_terms": 2}),
    "the keys of a sort": (
        "{ a(orderBy: [{b: ASC}, {c: DESC}]) d(orderBy: [{e: ASC}]) f(other: [1, 2, 3]) }",
        {"sort_keys": 2, "listed": 3},
    ),
    "variables are as wide as arguments": ("query($a: Int, $b: Int, $c: Int) { d(e: $a) }", {"selections": 3}),
    "what is no executable definition": ("type A { a: Int b: Int } { c }", {"definitions": 2}),
    "questions about the schema": (
        "{ __schema { types { fields { name } } } }",
        {"described": 1 + 4 + 16, "expanded": 4, "depth": 0},
    ),
    "questions about the schema in a fragment": (
        "{ __schema { types { ...F } } } fragment F on __Type { name fields { name } }",
        {"described": 1 + 3 * 4 + 16},
    ),
    "what a type is made of": (
        "{ __schema { types { ofType { name ofType { name } } } } }",
        {"described": 1 + 4 + 2 + 1},
    ),
    "what a type is made of, in a fragment": (
        "{ __schema { types { ...F } } } fragment F on __Type { ofType { name ofType { name } } }",
        {"described": 1 + 4 + 4 + 2 + 1},
    ),
    "lists in what a type is made of": (
        "{ __schema { types { ofType { ofType { ...F } } } } } fragment F on __Type { ofType { fields { name } } }",
        {"described": 1 + 4 + 1 + 1 + 16},
    ),
    "words of the schema elsewhere": ("{ types { fields { args } } }", {"described": 0, "depth": 2}),
    "nothing": ("", {"tokens": 0, "definitions": 0, "document": 0}),
    "only what is ignored": ("\ufeff , # { \n\t", {"tokens": 0, "nesting": 0}),
    "brackets that close too often": ("} } { a } )", {"tokens": 6}),
}


@cases("case", NAMED)
def test_what_looks_like_something_else(case: str) -> None:
    text, wanted = NAMED[case]
    asked = measured(text)
    assert {name: getattr(asked, name) for name in wanted} == wanted


def test_bytes_are_counted_and_not_characters() -> None:
    assert measured('{ a(b: "é😀") }').document == 14 + 4
    assert measured('{ a(b: "é😀") }').string == 6


# it stops where there is too much


class Counting:
    """Counts how many tokens are looked at."""

    def __init__(self) -> None:
        self.found = 0
        self.pattern = tokens._TOKEN

    def finditer(self, text: str) -> Any:
        for each in self.pattern.finditer(text):
            self.found += 1
            yield each


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    found = Counting()
    monkeypatch.setattr(tokens, "_TOKEN", found)
    return found


def test_a_text_of_very_many_tokens_is_left_at_the_first_that_is_too_many(counting: Counting) -> None:
    text = "{ " + "a " * 50_000 + "}"
    assert measured(text, Limits()).tokens == 2_001
    assert counting.found == 2_001, "what is ignored before a token is in its match"


def test_a_text_of_too_many_bytes_is_not_looked_at(counting: Counting) -> None:
    assert measured("{ a } " + "#" * 102_400, Limits()).document > 102_400
    assert counting.found == 0


def test_fragments_that_unfold_to_very_much_are_not_unfolded() -> None:
    """Two to the power of ninety selections are told from what is allowed by some additions."""
    parts = " ".join(f"fragment F{n} on T {{ ...F{n + 1} ...F{n + 1} }}" for n in range(90))
    asked = measured(f"{{ ...F0 }} {parts} fragment F90 on T {{ a }}", Limits())
    assert asked.expanded == Limits().expanded + 1


def test_values_are_counted_as_far_as_they_may_be() -> None:
    asked = RequestMeasures("graphql", Viewer())
    measure_values([1, {"a": [1, 2], "b": {}}, []], Limits(), asked)
    assert asked.values == 7
    asked = RequestMeasures("graphql", Viewer())
    measure_values([list(range(20)) for _ in range(10)], Limits(values=15), asked)
    assert 15 < asked.values <= 50


# the oracle, too, must be able to say no


@pytest.mark.parametrize("fault", ["alias", "directive", "spread", "depth", "weight", "share", "terms"])
def test_a_number_that_is_wrong_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(fault, monkeypatch)
    draw = Loose(Random("measure"), about=fault == "share")
    assert any(differences(draw.document()) for _ in range(DOCUMENTS))


def plant(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the count forget something, as a slip could."""
    if fault == "alias":
        mark = scan.Scan._mark
        monkeypatch.setattr(scan.Scan, "_mark", lambda self, token: None if token == ":" else mark(self, token))
    elif fault == "directive":
        take = scan._Values.take
        monkeypatch.setattr(scan._Values, "take", lambda self, token, kind: token != "@" and take(self, token, kind))
    elif fault == "spread":
        monkeypatch.setattr(measure, "_expand", lambda part, fragments, limits: None)
    elif fault == "depth":
        monkeypatch.setattr(scan, "_WRAPPERS", ("nodes", "edges", "node"))
    elif fault == "weight":
        monkeypatch.setattr(scan, "_LISTS", ("types", "fields"))
    elif fault == "share":
        below = scan._below
        monkeypatch.setattr(scan, "_below", lambda outer, field: replace(below(outer, field), share=1.0))
    else:
        monkeypatch.setattr(scan._Values, "_count", lambda self, innermost, before: False)
