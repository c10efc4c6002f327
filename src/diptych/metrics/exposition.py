"""Renders metrics as text for Prometheus, by prometheus_client: OpenMetrics 1.0 for those who accept it.

render(registry.collect(), "application/openmetrics-text; version=1.0.0")  →  bytes, content type
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, cast

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import CollectorRegistry

from diptych.metrics.registry import Metric


class _Collected:
    """A collector of metrics that were read."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Family]:
        return map(_family, self._metrics)


def _family(metric: Metric) -> Family:
    name, help, labels = metric.description.name, metric.description.help, metric.description.labels
    if metric.description.kind == "histogram":
        bounds = [*(str(float(bound)) for bound in metric.description.bounds), "+Inf"]
        histogram = HistogramMetricFamily(name, help, labels=labels)
        for key, (*buckets, total) in metric.series.items():
            counts = itertools.accumulate(buckets)
            histogram.add_metric(key, list(zip(bounds, counts, strict=True)), total)
        return histogram
    family = (CounterMetricFamily if metric.description.kind == "counter" else GaugeMetricFamily)(
        name, help, labels=labels
    )
    for key, (number,) in metric.series.items():
        family.add_metric(key, number)
    return family


def render_metrics(metrics: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    """The text of metrics, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(cast(Any, _Collected(metrics)))
    encode: Any
    content_type: str
    encode, content_type = choose_encoder(accept)
    text: bytes = encode(registry)
    return text, content_type
