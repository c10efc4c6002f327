"""What the bench concludes from what it measured: ratios, targets, cliffs, and answers in one form."""

from __future__ import annotations

import json

import pytest

from bench.cases import CASES, same
from bench.growth import Curve, chain, cliffs
from bench.load import Sample
from bench.report import Ratio, ratios
from bench.targets import met, target
from bench.wording import common


def sample(cpu: float, rate: float) -> Sample:
    return Sample(requests=100, rate=rate, p50=1.0, p99=2.0, cpu=cpu, postgres_cpu=None, size=100.0)


def test_a_ratio_says_how_good_the_service_is_if_the_other_is_one() -> None:
    measured = {"Q1": {"service": [sample(100, 50), sample(120, 40)], "mercurius": [sample(200, 25), sample(180, 20)]}}
    (one,) = ratios("sqlite", measured)
    assert one == Ratio("Q1", "mercurius", (190 / 110, 1.5, 2.0), (2.0, 2.0, 2.0), 1.3, True)


def test_targets_are_by_store_and_case() -> None:
    assert target("sqlite", "Q2", "floor") == 0.95
    assert target("postgres", "Q2", "floor") == 0.9
    assert target("postgres", "W1-rest", "mercurius") == 1.2
    assert target("sqlite", "R1", "pocketbase") is None


@pytest.mark.parametrize(
    ("other", "by_cpu", "by_rate", "is_met"),
    [("floor", 0.996, 0.5, True), ("floor", 0.99, 2, False), ("mercurius", 2, 0.9, False), ("mercurius", 1, 1, True)],
)
def test_only_mercurius_is_compared_by_rate_too(other: str, by_cpu: float, by_rate: float, is_met: bool) -> None:
    assert met(other, 1.0, by_cpu, by_rate) is is_met


@pytest.mark.parametrize(
    ("costs", "work", "found"),
    [
        ([100, 110, 120], False, 0),
        ([100, 110, 220], False, 1),
        ([100, 190, 1_000], True, 0),  # ten rows cost ten times what one does
        ([100, 110, 1_000], True, 1),
    ],
)
def test_a_cliff_is_a_step_that_the_work_does_not_explain(costs: list[float], work: bool, found: int) -> None:
    curve = Curve("page", "rows on a page", [1, 10, 100], work, {"R2": costs})
    assert len(cliffs(curve)) == found


def test_a_chain_is_as_deep_as_it_is_asked_to_be() -> None:
    for depth in range(1, 11):
        assert chain(depth).count("{") - 1 == depth


def test_answers_of_peers_are_compared_in_one_form() -> None:
    row = '{"id":"01900000-0000-7000-8000-000000000000","status":"pending","total":"1.00","currency":"EUR","customer":{"name":"Ann"}}'
    plain = f'{{"data":{{"createOrder":{row}}}}}'.encode()
    wrapped = f'{{"data":{{"createOrder":{{"order":{row}}}}}}}'.encode()
    case = CASES["W1-graphql"]
    assert same(case, plain, common("postgraphile", case, None, wrapped))

    told = {**json.loads(row), "expand": {"customerId": {"name": "Ann"}}}
    assert same(CASES["W1-rest"], row.encode(), common("pocketbase", CASES["W1-rest"], None, json.dumps(told).encode()))
