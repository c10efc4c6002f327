"""Apollo Client: queries, mutations, its normalised cache, and subscriptions over WebSocket."""

from __future__ import annotations

from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import node
from tests.support.running import Service

TOOL = Tool("@apollo/client", "GraphQL clients", npm=("@apollo/client",))


def test_apollo(service: Service, admin: str, scenario: Scenarios) -> None:
    found = node("apollo.mjs", service.url, admin)
    with scenario("create"):
        assert found["create"]["name"] == "Apollo"
    with scenario("read"):
        assert found["read"] == {"name": "Apollo", "email": "apollo@fit.example"}
