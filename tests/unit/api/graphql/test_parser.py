"""The parser of ordinary documents: its trees, with their locations, are those of graphql-core."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import GraphQLError
from graphql import parse as parse_by_core
from graphql.utilities import ast_to_dict

from bench.cases import DOCUMENTS
from diptych.api.graphql import parser
from diptych.api.graphql.parser import parse_ordinary
from diptych.api.graphql.tokens import tokenize
from tests.unit.api.graphql.test_tokens import VALUES

ORDINARY = [
    *DOCUMENTS.values(),
    "{a}",
    "\ufeff query , Q\n{ a }  # the end",
    "query($a: [[Int!]]!, $b: W) @d(e: 1) @f { a }",
    'mutation { a: b(c: "\\u00e9\\"", d: [$e, null, true, false, X, -7, [], {}], f: {g: {h: 0}}) @i @j(k: "") { l } }',
    "subscription S { a { ... F @b ... on C { d } ... @e { f } ... { g } } } fragment F on T @x { on type fragment }",
    "{ query(mutation: fragment) { null true on: on } }",
]
UNCOMMON = [
    "",
    "{}",
    "{ a ",
    "{ a } }",
    "{ a() }",
    "{ a(b) }",
    "{ a(b: ) }",
    "{ a(b: [1) }",
    "{ a(b: {c: 1]) }",
    "{ a(b: 01) }",
    "{ a(b: 1٣) }",
    '{ a(b: "c) }',
    "{ a: }",
    "{ ... }",
    "{ ... on }",
    "{ ...F(a: 1) }",
    "query() { a }",
    "query($a) { a }",
    "query($a: ) { a }",
    "query($a: [Int) { a }",
    "query($a: Int = 5) { a }",
    "query Q R { a }",
    "fragment on on T { a }",
    "fragment F { a }",
    "type T { a: Int }",
    '"x" { a }',
    "{ a(b: $) }",
    "{ a(b: $1) }",
    "{ a(b: 1.5) }",
    "{ a @ }",
    "{ é }",
    "{ a(b: ?) }",
    "{ a(b: &) }",
]


def tree(text: str) -> Any:
    document = parse_ordinary(text, tokenize(text, 10_000))
    return document and ast_to_dict(document, locations=True)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_documents_have_the_same_tree(text: str) -> None:
    assert tree(text) == ast_to_dict(parse_by_core(text), locations=True)


@pytest.mark.parametrize("text", UNCOMMON)
def test_others_are_left_to_graphql_core(text: str) -> None:
    assert tree(text) is None


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_the_same_to_both_or_left(name: str) -> None:
    text = f"{{a(b: {VALUES[name]})}}"
    try:
        expected: Any = ast_to_dict(parse_by_core(text), locations=True)
    except GraphQLError:
        expected = None
    assert tree(text) in (None, expected)


def test_a_text_without_its_end_is_left() -> None:
    text = "{ a }"
    assert parse_ordinary(text, tokenize(text, 2)) is None
    assert parser.parse(text, tokenize(text, 2)).definitions
    assert parser.parse(text, ()).definitions
