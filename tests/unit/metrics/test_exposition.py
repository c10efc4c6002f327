"""The text is what Prometheus reads: its own parsers read it back."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from diptych.metrics.exposition import render_metrics
from diptych.metrics.registry import Histogram, Registry


def registry() -> Registry:
    made, prices = Registry(), Histogram((1, 10))
    made.counter("diptych_refusals_total", "Refusals.", lambda: {('a"b\\\n',): 2}, ("code",))
    made.gauge("diptych_ready", "Ready.", lambda: True)
    made.histogram("diptych_price_objects", "Prices.", prices)
    for price in (1, 5, 50):
        prices.observe(price)
    return made


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
def test_the_text_is_read_back(accept: str) -> None:
    text, kind = render_metrics(registry().collect(), accept)
    assert kind.startswith(accept.partition(";")[0])
    read = read_openmetrics if "openmetrics" in accept else read_text
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in read(text.decode())
        for sample in family.samples
    }
    assert samples == {
        ("diptych_refusals_total", 'a"b\\\n'): 2,
        ("diptych_ready",): 1,
        ("diptych_price_objects_bucket", "1.0"): 1,
        ("diptych_price_objects_bucket", "10.0"): 2,
        ("diptych_price_objects_bucket", "+Inf"): 3,
        ("diptych_price_objects_count",): 3,
        ("diptych_price_objects_sum",): 56,
    }
