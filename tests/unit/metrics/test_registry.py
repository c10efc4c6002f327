"""The registry reads at a scrape, and the metrics of several processes become one."""

from __future__ import annotations

import pytest

from diptych.metrics.registry import Histogram, Registry, merged_metrics


def test_values_are_read_at_the_scrape() -> None:
    registry, counted = Registry(), [0]
    registry.counter("diptych_things_total", "Things.", lambda: counted[0])
    counted[0] = 7
    (metric,) = registry.collect()
    assert (metric.description.kind, metric.series) == ("counter", {(): [7.0]})


def test_a_histogram_counts_up_to_its_bounds() -> None:
    histogram = Histogram((1, 10))
    for value in (0, 1, 2, 10, 11):
        histogram.observe(value)
    assert histogram.cells == [2, 2, 1, 24]


def test_names_are_checked() -> None:
    with pytest.raises(AssertionError):
        Registry().counter("diptych_things", "A counter ends with _total.", lambda: 0)
    with pytest.raises(AssertionError):
        Registry().gauge("Things", "No prefix.", lambda: 0)


def test_a_metric_has_a_bounded_number_of_series() -> None:
    registry = Registry()
    registry.gauge("diptych_many", "Many.", lambda: {(str(n),): n for n in range(5_000)}, ("n",))
    assert len(registry.collect()[0].series) == 1_000


def test_processes_are_added_up_but_for_a_greatest_or_least_value() -> None:
    def process(number: float) -> Registry:
        registry = Registry()
        registry.counter("diptych_requests_total", "R.", lambda: {("rest",): number}, ("style",))
        registry.gauge("diptych_lag_seconds", "L.", lambda: number, merge="max")
        registry.gauge("diptych_ready", "R.", lambda: number, merge="min")
        return registry

    metrics = merged_metrics(registry.collect() for registry in map(process, (1, 4, 2)))
    assert {metric.description.name: metric.series for metric in metrics} == {
        "diptych_requests_total": {("rest",): [7.0]},
        "diptych_lag_seconds": {(): [4.0]},
        "diptych_ready": {(): [1.0]},
    }


def test_a_histogram_of_many_values_counts_them_all() -> None:
    histogram = Histogram((10, 1_000))
    for value in range(5_000):
        histogram.observe(value)
        histogram.observe(5)
    assert histogram.cells == [11 + 5_000, 990, 3_999, sum(range(5_000)) + 25_000]
    histogram.observe(3)
    assert histogram.cells[0] == 5_012 and len(histogram._counts) == 0
