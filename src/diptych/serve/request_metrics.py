"""Counts requests by style, method and status, with their seconds and bytes; part of every request, so it does little.

    ("rest", "GET", 200)  →  [up to 1 ms, up to 2.5 ms, …, above, seconds, bytes]

The methods are those of the API, and others count as one; there is no path, no id and no caller.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator

from diptych.metrics.registry import Labels, Registry
from diptych.serve.http.request import Request

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets, in seconds."""
LATE = 0.005
"""Seconds for which a request that counts as late has waited for the event loop."""
_SECONDS, _BYTES = len(BOUNDS) + 1, len(BOUNDS) + 2
_METHODS = frozenset(("GET", "HEAD", "QUERY", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "OPERATION"))
STYLES = ("rest", "graphql", "websocket", "service")
"""`service` is all that is no API of the model: health, documents, the authorization server, the console."""


class RequestMetrics:
    """The requests of one service."""

    __slots__ = ("_cells", "_late", "note")

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, dict[int, list[float]]]] = {style: {} for style in STYLES}
        self._late = [0]
        """Requests that waited for the event loop."""
        self.note = self._noting()
        """Count a request that is answered, with its status and the bytes of its body."""

    def _noting(self) -> Callable[[Request, int, int], None]:
        """The function `note`. It is called for every request: all that it needs is a local name."""
        rest, graphql, service = (self._cells[style] for style in ("rest", "graphql", "service"))
        new, late, clock, bounds, shortest = self._cell, self._late, time.perf_counter, BOUNDS, BOUNDS[0]

        def note(request: Request, status: int, size: int) -> None:
            seconds = clock() - request.begun
            by_method = service if request.is_service else graphql if request.path == "/graphql" else rest
            try:
                cell = by_method[request.method][status]
            except KeyError:
                cell = new(by_method, request.method, status)
            cell[bisect_left(bounds, seconds) if seconds > shortest else 0] += 1
            cell[_SECONDS] += seconds
            cell[_BYTES] += size
            if request.lag > LATE:
                late[0] += 1

        return note

    def note_operation(self, begun: float, status: int, size: int) -> None:
        """Count an operation of a WebSocket, which began at a moment of `time.perf_counter`."""
        seconds = time.perf_counter() - begun
        cell = self._cell(self._cells["websocket"], "OPERATION", status)
        cell[bisect_left(BOUNDS, seconds)] += 1
        cell[_SECONDS] += seconds
        cell[_BYTES] += size

    def _cell(self, by_method: dict[str, dict[int, list[float]]], method: str, status: int) -> list[float]:
        known = method if method in _METHODS else "other"
        return by_method.setdefault(known, {}).setdefault(status, [0] * (_BYTES + 1))

    def _all(self) -> Iterator[tuple[str, str, int, list[float]]]:
        for style, by_method in self._cells.items():
            for method, by_status in by_method.items():
                for status, cell in by_status.items():
                    yield style, method, status, cell

    def register(self, registry: Registry) -> None:
        """Add what is counted here to a registry."""
        labels = ("style", "method", "status")
        registry.counter("diptych_requests_total", "Requests that were answered.", self._counts, labels)
        registry.histogram(
            "diptych_request_seconds", "Seconds from a request to its response.", self._seconds, labels[:2], BOUNDS
        )
        registry.counter(
            "diptych_response_bytes_total", "Bytes of response bodies, streams left out.", self._bytes, labels[:1]
        )
        registry.counter(
            "diptych_late_requests_total",
            "Requests that waited for more than 5 ms for the event loop.",
            lambda: self._late[0],
        )

    def _counts(self) -> dict[Labels, float]:
        return {(style, method, str(status)): sum(cell[:_SECONDS]) for style, method, status, cell in self._all()}

    def _seconds(self) -> dict[Labels, list[float]]:
        by_method: dict[Labels, list[float]] = {}
        for style, method, _, cell in self._all():
            before = by_method.get((style, method), [0] * _BYTES)
            by_method[style, method] = [one + other for one, other in zip(before, cell[:_BYTES], strict=True)]
        return by_method

    def _bytes(self) -> dict[Labels, float]:
        by_style: dict[Labels, float] = {}
        for style, _, _, cell in self._all():
            by_style[style,] = by_style.get((style,), 0) + cell[_BYTES]
        return by_style
