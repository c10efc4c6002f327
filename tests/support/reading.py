"""Documents, read as the service reads them, within the limits that it has by default."""

from __future__ import annotations

from graphql import DocumentNode, OperationDefinitionNode

from diptych.api.graphql.document import read_document
from diptych.ask.measures import RequestMeasures
from diptych.demo.model import model
from diptych.policy.limits import Checks


def parsed(document: str) -> tuple[DocumentNode, OperationDefinitionNode]:
    """A document and its only operation."""
    return read_document(document, None, RequestMeasures("graphql", model.anonymous), Checks())
