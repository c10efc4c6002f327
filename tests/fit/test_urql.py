"""urql with graphcache: the schema-aware normalised cache, its pagination of Relay, and subscriptions."""

from __future__ import annotations

from tests.fit.scenario import Scenarios, Tool, record
from tests.fit.tools import node
from tests.support.running import Service

TOOL = Tool("urql + graphcache", "GraphQL clients", npm=("@urql/core", "@urql/exchange-graphcache"))


def test_urql(service: Service, admin: str, scenario: Scenarios) -> None:
    record(scenario, node("urql.mjs", service.url, admin))
