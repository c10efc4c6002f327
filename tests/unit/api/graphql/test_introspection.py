"""Introspection says what graphql-core's executor says, of every selection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from graphql import execute_sync, get_introspection_query, parse

from diptych.api.graphql.document import Document, read_document
from diptych.api.graphql.introspection import introspection_of
from diptych.api.graphql.schema import build_schema
from diptych.api.reply import DocumentRefusal
from diptych.ask.measures import Limits, RequestMeasures
from diptych.demo.model import model
from diptych.policy.limits import Checks

SCHEMA = build_schema(model.view_as("admin"))
DOCUMENTS: list[tuple[str, Mapping[str, Any]]] = [
    (get_introspection_query(), {}),
    (get_introspection_query(specified_by_url=True, directive_is_repeatable=True, input_value_deprecation=True), {}),
    ("{ __schema { __typename queryType { name } mutationType { name kind } subscriptionType { name } } }", {}),
    (
        '{ user: __type(name: "User") { name fields { name type { ...T } } } } fragment T on __Type { name ofType { name ofType { name } } }',
        {},
    ),
    ('{ __type(name: "Nothing") { name } }', {}),
    (
        "query ($n: String!, $all: Boolean = false) { __type(name: $n) { fields(includeDeprecated: $all) { name @skip(if: $all) isDeprecated } } }",
        {"n": "Post"},
    ),
    (
        '{ __type(name: "Node") { possibleTypes { name interfaces { name } } } b: __type(name: "OrderStatus") { enumValues { name description } } }',
        {},
    ),
    (
        "{ __schema { types { ... on __Type { a: name b: kind inputFields { name defaultValue type { kind } } } } directives { name locations args { name defaultValue } } } }",
        {},
    ),
    ('{ __type(name: "User") { name } __type(name: "User") { kind } }', {}),
]


def document_of(text: str) -> Document:
    node, operation = read_document(text, None, RequestMeasures("graphql", model.anonymous), Checks(Limits()))
    return Document(node, operation, (), frozenset(), ())


def answered(text: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    return {label: json.loads(body) for label, body in introspection_of(document_of(text), variables, SCHEMA).items()}


@pytest.mark.parametrize("text, variables", DOCUMENTS)
def test_the_answer_is_that_of_graphql_core(text: str, variables: Mapping[str, Any]) -> None:
    expected = execute_sync(SCHEMA, parse(text), variable_values=dict(variables))
    assert expected.errors is None
    found = answered(text, variables)
    assert found == expected.data
    assert json.dumps(found) == json.dumps(expected.data), "in the same order"


def test_an_argument_that_is_missing_is_refused() -> None:
    with pytest.raises(DocumentRefusal):
        answered("query ($n: String) { __type(name: $n) { name } }", {})
