"""gql: documents, its DSL over the schema that it fetches, and subscriptions over a WebSocket."""

from __future__ import annotations

from tests.fit.scenario import Scenarios, Tool, record
from tests.fit.tools import python
from tests.support.running import Service

TOOL = Tool("gql", "GraphQL clients", pypi=("gql",))


def test_gql(service: Service, admin: str, scenario: Scenarios) -> None:
    record(scenario, python("gql_walk.py", service.url, admin))
