"""The last requests of this process, and their rates and times: what the page Activity shows.

A ring of 500 requests, and counters for each ten seconds of the last quarter of an hour. Where the console is off,
there is neither, and requests pay nothing for them. Of the values of requests, only numbers are kept, for their price:
no query string, no body, no text.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from diptych.engine.read import Engine, PreparedRead, ReadPlan
from diptych.fair.caller import CALLER
from diptych.model.declare.roles import Viewer
from diptych.serve.http.request import Request
from diptych.serve.logs import REQUEST

KEPT = 500
_BUCKET, _BUCKETS = 10, 90
_STYLES = ("rest", "graphql")
_PATH = 200
_UNCOUNTED = ("/console", "/health/", "/oauth/", "/.well-known/")
_READ: ContextVar[tuple[Request | None, PreparedRead, Sequence[Any]] | None] = ContextVar("read", default=None)
"""The read that the current request ran, and its values."""
LogAccess = Callable[[Request, int, int], None]
Entry = tuple[float, int, str, str, int, float, int, str, PreparedRead | None, tuple[int | None, ...]]


class RecordingEngine(Engine):
    """An engine that notes what the current request reads."""

    def _run(
        self, prepared: PreparedRead, inputs: Mapping[str, Any], viewer: Viewer
    ) -> tuple[ReadPlan, list[Any], Mapping[int, bytes], Awaitable[Sequence[bytes | None]]]:
        run = super()._run(prepared, inputs, viewer)
        _READ.set((REQUEST.get(), prepared, run[1]))
        return run


class Bucket:
    """Counters of ten seconds of one style."""

    __slots__ = ("at", "count", "errors", "slowest", "total")

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = self.errors = 0
        self.total = self.slowest = 0.0


class Recent:
    """The last requests, and counters by style."""

    def __init__(self) -> None:
        self.count = 0
        self._ring: deque[Entry] = deque(maxlen=KEPT)
        self._buckets = [deque([Bucket(0)], maxlen=_BUCKETS) for _ in _STYLES]
        self._clock = time.time() - time.perf_counter()

    def around(self, log: LogAccess) -> LogAccess:
        """The access log, which also records. It is part of every request, so it does little."""
        ring, last, clock = self._ring, [buckets[0] for buckets in self._buckets], time.perf_counter

        def record(request: Request, status: int, size: int) -> None:
            log(request, status, size)
            end, path = clock(), request.path
            style = 1 if path == "/graphql" else 0
            if not style and path.startswith(_UNCOUNTED):
                return
            noted, seconds = _READ.get(), end - request.begun
            prepared: PreparedRead | None = None
            sizes: tuple[int | None, ...] = ()
            if noted is not None and noted[0] is request:  # a price depends on numbers alone; other values are not kept
                prepared, sizes = noted[1], tuple([value if value.__class__ is int else None for value in noted[2]])
            ring.append((end, style, request.method, path, status, seconds, size, CALLER.get(), prepared, sizes))
            self.count += 1
            bucket = last[style]
            if end - bucket.at > _BUCKET:
                bucket = last[style] = self._next(style, end)
            bucket.count += 1
            bucket.total += seconds
            if seconds > bucket.slowest:
                bucket.slowest = seconds
            if status >= 500:
                bucket.errors += 1

        return record

    def _next(self, style: int, end: float) -> Bucket:
        bucket = Bucket(int(end) // _BUCKET * _BUCKET)
        self._buckets[style].append(bucket)
        return bucket

    def requests(self, after: int) -> dict[str, Any]:
        """The requests with a larger number than this, the oldest first."""
        numbered = enumerate(self._ring, self.count - len(self._ring) + 1)
        return {"next": self.count, "requests": [self._shown(n, entry) for n, entry in numbered if n > after]}

    def metrics(self) -> dict[str, Any]:
        """Rates and times of both styles, a point for each ten seconds."""
        series: list[dict[str, Any]] = []
        for style, all_buckets in zip(_STYLES, self._buckets, strict=True):
            buckets = [bucket for bucket in all_buckets if bucket.count]
            points: dict[tuple[str, str], list[float]] = {
                ("requests per second", "rate"): [bucket.count / _BUCKET for bucket in buckets],
                ("errors per second", "rate"): [bucket.errors / _BUCKET for bucket in buckets],
                ("mean milliseconds", "latency"): [bucket.total / bucket.count * 1_000 for bucket in buckets],
                ("slowest milliseconds", "latency"): [bucket.slowest * 1_000 for bucket in buckets],
            }
            moments = [int(self._clock + bucket.at) for bucket in buckets]
            for (name, kind), values in points.items():
                pairs = [[at, round(value, 3)] for at, value in zip(moments, values, strict=True)]
                series.append({"name": f"{style} {name}", "kind": kind, "points": pairs})
        return {"at": int(time.time()), "series": series}

    def _shown(self, number: int, entry: Entry) -> dict[str, Any]:
        end, style, method, path, status, seconds, size, caller, prepared, sizes = entry
        return {
            "n": number,
            "at": round(self._clock + end, 3),
            "style": _STYLES[style],
            "name": prepared.measures.operation if prepared is not None and prepared.measures is not None else "",
            "method": method,
            "path": path[:_PATH],
            "status": status,
            "ms": round(seconds * 1_000, 2),
            "price": prepared.cost.price(sizes) if prepared is not None else None,
            "rows": None,
            "bytes": size,
            "statement": prepared.planned.plan.sql if prepared is not None else None,
            "viewer": caller,
        }
