"""The header `Server-Timing` (W3C): how many milliseconds each stage of a request took.

    Server-Timing: understand;dur=0.412, check;dur=0.031, compile;dur=0.903, run;dur=0.220, reply;dur=0.054, total;dur=…

Browsers show it in their developer tools. The stages add up to the total: what is in none of them (authentication, the
body) belongs to `understand` until something has run, and to `reply` from then on. The time that a request took can say
how many rows a rule has hidden, so the header is for development: the setting `server_timing`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from diptych.api.reply import Reply
from diptych.serve.http.request import Request
from diptych.serve.stages import STAGES, Handle

_FORMAT = ", ".join(f"{stage};dur=%.3f" for stage in (*STAGES, "total")).encode()


class Timer:
    """The seconds of one request, by stage: at any time, one stage is running."""

    __slots__ = ("_at", "_begun", "_seconds", "_stage")

    def __init__(self, begun: float) -> None:
        self._begun = self._at = begun
        self._stage = STAGES[0]
        self._seconds = dict.fromkeys(STAGES, 0.0)

    def switch(self, stage: str) -> str:
        """Begin another stage; returns the one that ends."""
        now = time.perf_counter()
        ended = self._stage
        self._seconds[ended] += now - self._at
        self._at, self._stage = now, stage
        return ended

    def header(self) -> bytes:
        """The value of the header, at the end of the request."""
        self.switch("reply")
        seconds = (*self._seconds.values(), self._at - self._begun)
        return _FORMAT % tuple([1_000 * second for second in seconds])


_TIMER: ContextVar[Timer | None] = ContextVar("timer", default=None)
"""The timer of the current request."""


class ServerTiming:
    """Adds the header to the responses of the API; pages and documents of the service itself have none."""

    def around(self, handle: Handle) -> Handle:
        async def timed(request: Request) -> Reply:
            timer = Timer(request.begun)
            _TIMER.set(timer)
            reply = await handle(request)
            if request.is_service:
                return reply
            return Reply(reply.status, (*reply.headers, (b"server-timing", timer.header())), reply.body, reply.stream)

        return timed

    @contextmanager
    def stage(self, name: str, statement: str = "") -> Iterator[None]:
        """A stage of the current request; what runs in the background is timed by nobody."""
        timer = _TIMER.get()
        if timer is None:
            yield
            return
        before = timer.switch(name)
        try:
            yield
        finally:
            timer.switch("reply" if name == "run" and before == "understand" else before)

    def close(self) -> None:
        """There is nothing to end."""
