"""The registry of metrics: a name, a help text, and a function that reads the values at a scrape.

    registry.counter("diptych_retries_total", "Retries.", lambda: retries[0])
    registry.gauge("diptych_queue_length", "Those that wait.", lambda: {("writer",): 3}, labels=("queue",))
    registry.histogram("diptych_price_objects", "Prices.", prices)

Nothing is computed between two scrapes: the hot path adds to a list of its own. A label has few values, all of them
from the code: never an id, a path, a caller or a value of a request.
"""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

Kind = Literal["counter", "gauge", "histogram"]
Merge = Literal["sum", "max", "min"]
Labels = tuple[str, ...]
Value = float | Mapping[Labels, float]
_NAME = re.compile(r"(diptych|process)_[a-z0-9_]*[a-z0-9]")
_MOST = 1_000
"""Series of one metric: more are left out."""
_VALUES = 1_000
"""Values of a histogram that are counted one by one."""


class Description(Struct, frozen=True):
    """What a metric is: its name, kind, help, labels, and for a histogram the upper bounds of its buckets."""

    name: str
    kind: Kind
    help: str
    labels: Labels = ()
    bounds: tuple[float, ...] = ()
    merge: Merge = "sum"
    """How the gauges of several processes become one."""


class Metric(Struct, frozen=True, eq=False):
    """A metric with its values: one number for each series; of a histogram, its buckets and then its sum."""

    description: Description
    series: dict[Labels, list[float]]


class Histogram:
    """Whole numbers, counted by their bounds at a scrape; between two, they are counted one by one.

    To find the bucket of a value takes longer than to count it: there are few values, and each of them often.
    """

    __slots__ = ("_cells", "_counts", "bounds", "observe")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._cells: list[float] = [0] * (len(bounds) + 2)
        self._counts = _Counts(self._fold)
        self.observe = _observing(self._counts)
        """Count one value."""

    @property
    def cells(self) -> list[float]:
        """A number for each bound, one for all above, and the sum."""
        self._fold()
        return self._cells

    def _fold(self) -> None:
        for value, count in self._counts.items():
            self._cells[bisect_left(self.bounds, value)] += count
            self._cells[-1] += value * count
        self._counts.clear()


class _Counts(dict[int, int]):
    """How often each value was seen; folded once there are many."""

    def __init__(self, fold: Callable[[], None]) -> None:
        super().__init__()
        self._fold = fold

    def __missing__(self, value: int) -> int:
        if len(self) >= _VALUES:
            self._fold()
        return 0


def _observing(counts: _Counts) -> Callable[[int], None]:
    def observe(value: int) -> None:
        counts[value] += 1

    return observe


class Registry:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Description, Callable[[], dict[Labels, list[float]]]]] = {}

    @property
    def descriptions(self) -> list[Description]:
        """All metrics, sorted by name."""
        return [description for _, (description, _) in sorted(self._read.items())]

    def counter(self, name: str, help: str, read: Callable[[], Value], labels: Labels = ()) -> None:
        """Add a counter: a number that only grows, of this process."""
        assert name.endswith("_total"), name
        self._add(Description(name, "counter", help, labels), lambda: _numbers(read()))

    def gauge(self, name: str, help: str, read: Callable[[], Value], labels: Labels = (), merge: Merge = "sum") -> None:
        """Add a gauge: a number of now; `merge` says how those of several processes become one."""
        self._add(Description(name, "gauge", help, labels, merge=merge), lambda: _numbers(read()))

    def histogram(
        self,
        name: str,
        help: str,
        read: Histogram | Callable[[], Mapping[Labels, Sequence[float]]],
        labels: Labels = (),
        bounds: Sequence[float] = (),
    ) -> None:
        """Add a histogram, or a function that reads several of the same bounds by their labels."""
        if isinstance(read, Histogram):
            one = read
            self._add(Description(name, "histogram", help, (), one.bounds), lambda: {(): list(one.cells)})
        else:
            several = read
            self._add(
                Description(name, "histogram", help, labels, tuple(bounds)),
                lambda: {key: list(numbers) for key, numbers in several().items()},
            )

    def _add(self, description: Description, read: Callable[[], dict[Labels, list[float]]]) -> None:
        assert _NAME.fullmatch(description.name), description.name
        self._read[description.name] = description, read

    def collect(self) -> list[Metric]:
        """Read all metrics."""
        return [
            Metric(description, dict(itertools.islice(read().items(), _MOST)))
            for _, (description, read) in sorted(self._read.items())
        ]


def _numbers(value: Value) -> dict[Labels, list[float]]:
    if isinstance(value, Mapping):
        return {labels: [float(number)] for labels, number in value.items()}
    return {(): [float(value)]}


_COMBINE: Mapping[Merge, Callable[[float, float], float]] = {"sum": operator.add, "max": max, "min": min}


def merged_metrics(processes: Iterable[Sequence[Metric]]) -> list[Metric]:
    """The metrics of several processes as those of one."""
    metrics: dict[str, Metric] = {}
    for metric in itertools.chain.from_iterable(processes):
        known = metrics.setdefault(metric.description.name, Metric(metric.description, {}))
        combine = _COMBINE[known.description.merge]
        for labels, numbers in metric.series.items():
            before = known.series.get(labels)
            if before is None:
                known.series[labels] = list(numbers)
            else:
                known.series[labels] = [combine(one, other) for one, other in zip(before, numbers, strict=True)]
    return [metric for _, metric in sorted(metrics.items())]
