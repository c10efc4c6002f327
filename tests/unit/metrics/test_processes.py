"""Several processes: whichever is scraped answers for all, and counters never fall when one of them ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.metrics.processes import SharedMetrics
from diptych.metrics.registry import Registry


@contextmanager
def process(folder: Path, number: float) -> Iterator[SharedMetrics]:
    registry = Registry()
    registry.counter("diptych_things_total", "Things.", lambda: number)
    registry.gauge("diptych_running", "Those that run.", lambda: number)
    shared = SharedMetrics(folder, registry)
    shared.publish()
    yield shared
    shared.close()


def scraped(shared: SharedMetrics) -> dict[str, float]:
    return {metric.description.name: metric.series[()][0] for metric in shared.collect()}


def test_any_process_answers_for_all(tmp_path: Path) -> None:
    with process(tmp_path, 3) as one, process(tmp_path, 4) as other:
        assert scraped(one) == scraped(other) == {"diptych_things_total": 7, "diptych_running": 7}


def test_what_an_ended_process_counted_counts_on_and_its_gauges_do_not(tmp_path: Path) -> None:
    with process(tmp_path, 3) as one:
        for number in (10, 20):
            with process(tmp_path, number):
                pass
        for _ in range(3):
            assert scraped(one) == {"diptych_things_total": 33, "diptych_running": 3}
        assert sorted(file.suffix for file in tmp_path.iterdir()) == [".json", ".json", ".lock", ".lock"]


def test_a_process_that_was_killed_has_ended(tmp_path: Path) -> None:
    with process(tmp_path, 3) as one, process(tmp_path, 5) as killed:
        assert killed._lock is not None
        killed._lock.close()  # as the kernel does it
        killed._lock = None
        assert scraped(one) == {"diptych_things_total": 8, "diptych_running": 3}
