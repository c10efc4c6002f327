"""Places that are shared by all callers: connections to PostgreSQL, threads that read SQLite.

Whoever finds a place free takes it, but for the last quarter: that is kept for those who hold none. So one who asks
for a great deal, however slow, leaves room for whoever comes with something small, and several such cannot take it
all either. Who finds none waits in a Line, at most so long; the service itself waits for no one else.

    turns.at_once(who) or await turns.wait(who)
    try: …
    finally: turns.give(who)
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from diptych.db.line import Line
from diptych.errors import Code, Refusal

Turn = asyncio.Future[None]
WAITED: ContextVar[float] = ContextVar("waited", default=0.0)
"""Seconds that the current task has waited for its turns: whoever measures its work leaves them out."""


class Turns:
    """So many places, and the line for them. Of one event loop."""

    __slots__ = ("_closed", "_free", "_held", "_kept", "_line", "_timer", "_until", "size", "wait_seconds")

    def __init__(self, size: int, waiting: int, wait: float) -> None:
        self.size = size
        self.wait_seconds = wait
        self._free = size
        self._kept = max(1, size // 4) if size > 1 else 0
        self._held: dict[str, int] = {}
        self._line: Line[Turn] = Line(waiting)
        self._until: dict[Turn, tuple[float, str]] = {}
        """When each wait takes too long, in that order, and whose it is."""
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def free(self) -> int:
        """Places that nobody has."""
        return self._free

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

    def at_once(self, who: str) -> bool:
        """Take a place if there is one for this caller now."""
        held = self._held.get(who, 0)
        if self._free <= (self._kept if held and who else 0):
            return False
        self._held[who] = held + 1
        self._free -= 1
        return True

    async def wait(self, who: str) -> None:
        """Take the next place; a Refusal if the line is full, or if it takes too long."""
        if self._closed:
            raise _closed()
        loop = asyncio.get_running_loop()
        turn: Turn = loop.create_future()
        self._line.put(who, turn)
        begun = loop.time()
        self._until[turn] = begun + self.wait_seconds, who
        if self._timer is None:
            self._timer = loop.call_later(self.wait_seconds, self._send_home)
        try:
            await turn
        except asyncio.CancelledError:
            if not self._line.remove(who, turn) and not turn.cancelled() and turn.exception() is None:
                self.give(who)  # it came too late for this one: it is the next one's
            raise
        finally:
            self._until.pop(turn, None)
            WAITED.set(WAITED.get() + loop.time() - begun)

    def give(self, who: str) -> None:
        """Give a place back; whoever is next has it."""
        while (turn := self._line.pop_own(who)) is not None:  # the same caller is: nothing else changes
            if not turn.done():
                turn.set_result(None)
                return
        left = self._held[who] - 1
        if left:
            self._held[who] = left
        else:
            del self._held[who]
        self._free += 1
        if self._line:
            self._call_next()

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while (found := self._line.pop()) is not None:
            if not found[1].done():
                found[1].set_exception(_closed())

    def _call_next(self) -> None:
        while self._free and (found := self._line.pop(self._may)) is not None:
            who, turn = found
            if not turn.done():
                self.at_once(who)
                turn.set_result(None)

    def _may(self, who: str, _: Turn) -> bool:
        return self._free > (self._kept if who and who in self._held else 0)

    def _send_home(self) -> None:
        """End the waits that took too long, and look again when the next one would."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for turn, (until, who) in list(self._until.items()):
            if until > now:
                self._timer = loop.call_at(until, self._send_home)
                return
            if self._line.remove(who, turn) and not turn.done():
                turn.set_exception(Refusal(Code.UNAVAILABLE, "The database is busy."))
            del self._until[turn]


def _closed() -> Refusal:
    return Refusal(Code.UNAVAILABLE, "The database is closed.")
