"""A document that was never seen is planned at a fair price."""

from __future__ import annotations

from bench.planning import planning_ratio


def test_planning_costs_less_than_parsing_and_validating_by_graphql_core() -> None:
    theirs, ours = planning_ratio()
    assert ours <= 0.8 * theirs, f"{ours:.0f} µs against {theirs:.0f} µs"
