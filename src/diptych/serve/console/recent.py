"""The last requests of this process, and their rates and times: what the page Activity shows.

A ring of 500 requests of both styles, and counters for each ten seconds of the last quarter of an hour. Where the
console is off, there is neither, and requests pay nothing for them. No query string, no body and no value of a request
is kept but the whole numbers that its price depends on (`notes.py`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from diptych.fair.caller import CALLER
from diptych.serve.console.notes import Note
from diptych.serve.console.notes import RecordingEngine as RecordingEngine
from diptych.serve.http.request import Request, is_of_console

KEPT = 500
_BUCKET, _BUCKETS = 10, 90
_STYLES = ("rest", "graphql")
_PATH = 200
_UNCOUNTED = ("/health/", "/oauth/", "/.well-known/")
_NOTHING = Note()
LogAccess = Callable[[Request, int, int], None]


class RecentRequest(Struct, frozen=True, eq=False):
    """A request that has ended."""

    end: float
    style: int
    method: str
    path: str
    status: int
    seconds: float
    size: int
    caller: str
    is_stream: bool
    note: Note


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
        self._ring: deque[RecentRequest] = deque(maxlen=KEPT)
        self._buckets = [deque([Bucket(0)], maxlen=_BUCKETS) for _ in _STYLES]
        self._clock = time.time() - time.perf_counter()

    def around(self, log: LogAccess) -> LogAccess:
        """The access log, which also records."""

        def record(request: Request, status: int, size: int) -> None:
            log(request, status, size)
            self.record(request, status, size)

        return record

    def record(self, request: Request, status: int, size: int) -> None:
        """Record a request that has ended. It is part of every request, so it does little."""
        end, path = time.perf_counter(), request.path
        style = 1 if path == "/graphql" else 0
        if status == 101 or (not style and (path.startswith(_UNCOUNTED) or is_of_console(path))):
            return
        note = request.note if isinstance(request.note, Note) else _NOTHING
        seconds, is_stream = end - request.begun, request.is_forgotten
        self._ring.append(
            RecentRequest(end, style, request.method, path, status, seconds, size, CALLER.get(), is_stream, note)
        )
        self.count += 1
        bucket = self._buckets[style][-1]
        if end - bucket.at > _BUCKET:
            bucket = self._next(style, end)
        bucket.count += 1
        if status >= 500:
            bucket.errors += 1
        if not is_stream:  # its time is how long someone listened
            bucket.total += seconds
            bucket.slowest = max(bucket.slowest, seconds)

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

    def _shown(self, number: int, entry: RecentRequest) -> dict[str, Any]:
        note = entry.note
        return {
            "n": number,
            "at": round(self._clock + entry.end, 3),
            "style": _STYLES[entry.style],
            "kind": note.kind,
            "name": note.operation,
            "fields": note.fields,
            "document": written(note.text),
            "method": entry.method,
            "path": entry.path[:_PATH],
            "status": entry.status,
            "code": note.code,
            "ms": round(entry.seconds * 1_000, 2),
            "stream": entry.is_stream,
            "price": note.price,
            "bytes": entry.size,
            "statement": note.statement,
            "viewer": entry.caller,
        }


def written(text: tuple[Any, ...]) -> str:
    """A document of which the values were not kept, with `…` and 0 in their places."""
    if not text:
        return ""
    rest, *marks = text
    pieces: list[str] = []
    at = 0
    for place, index in zip(marks[::2], marks[1::2], strict=True):
        pieces += (rest[at:place], '"…"' if index >= 0 else "0")
        at = place
    return "".join((*pieces, rest[at:]))
