"""Translates a GraphQL request into Asks: text, variables and a View in, Asks out.

    query → read_operation → Document → translate_operation (with variables) → Operation

The endpoint, `diptych explain` and the errors of `diptych dev` all use it, so they cannot differ; the same for REST is
`api/understand.py`. The order of checks is part of the contract: grammar, then what the role may send, then types, then
values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphql import GraphQLSchema, OperationType

from diptych.api.graphql.document import (
    Document,
    check_document,
    check_roots,
    check_variables,
    count_nested_rows,
    read_document,
)
from diptych.api.graphql.http import Parameters
from diptych.api.graphql.operation import TranslatedOperation
from diptych.api.graphql.translate import translate
from diptych.ask.measures import Checking, Limits, RequestMeasures
from diptych.model.view import View


def read_operation(
    sent: Parameters,
    measures: RequestMeasures,
    checks: Checking,
    view: View,
    schema: Callable[[], GraphQLSchema],
    admit: Callable[[OperationType], None] | None = None,
) -> Document:
    """Parse, limit and validate a document for a role; `admit` may refuse its kind of operation first."""
    node, operation = read_document(sent.query or "", sent.operationName, measures, checks)
    if admit is not None:
        admit(operation.operation)
    check_roots(node, operation, view)
    return check_document(node, operation, schema())


def translate_operation(
    document: Document,
    variables: Mapping[str, Any],
    view: View,
    schema: GraphQLSchema | None,
    limits: Limits | None = None,
) -> TranslatedOperation:
    """The Asks of a document with these variables; without a schema, variables are not checked."""
    if schema is not None:
        if limits is not None and document.operation.operation is OperationType.MUTATION:
            count_nested_rows(document, variables, schema, limits)
        check_variables(document, variables, schema)
    return translate(document.node, document.operation, variables, view, document.places, limits)
