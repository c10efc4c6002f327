"""Apollo Client: queries, mutations, subscriptions over a WebSocket, and its normalised cache."""

from __future__ import annotations

from tests.fit.scenario import Scenarios, Tool, record
from tests.fit.tools import node
from tests.support.running import Service

TOOL = Tool("@apollo/client", "GraphQL clients", npm=("@apollo/client",))


def test_apollo(service: Service, admin: str, scenario: Scenarios) -> None:
    record(scenario, node("apollo.mjs", service.url, admin))
