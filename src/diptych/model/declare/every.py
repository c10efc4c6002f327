"""`@every`: functions that run by the clock, once over all nodes.

    @every(minutes=5)                        @every("5 minutes")
    @classmethod                             @classmethod
    async def expire(cls, tx: JobTx) -> None: …

    @every("day at 03:30")                   every day, at that time in UTC
    @every("monday at 06:00", roles=(robot,))

The ticks are multiples of the interval since 1970 in UTC (weeks begin on Monday), so all nodes agree on them without
asking each other. Ticks that nobody was up for are one run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, TypeVar

from msgspec import Struct

from diptych.model.declare.job_tx import JobTx
from diptych.model.declare.roles import Role

Scheduled = TypeVar("Scheduled", bound=Callable[Concatenate[Any, JobTx, ...], Coroutine[Any, Any, None]])
_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONDAY = 4 * 86_400
"""The first Monday since 1970, in seconds."""
_TEXT = re.compile(r"(?:(\d{1,6}) +)?([a-z]+)(?: +at +([0-9]{2}):([0-9]{2}))?")
EXAMPLE = 'Write @every(minutes=5), @every("5 minutes"), @every("day at 03:30") or @every("monday at 06:00")'


class Timetable(Struct, frozen=True):
    """The ticks `offset + n * interval`, in seconds since 1970."""

    interval: int
    offset: int = 0

    def after(self, moment: float) -> int:
        """The first tick after a moment."""
        return self.offset + (int((moment - self.offset) // self.interval) + 1) * self.interval


class Schedule(Struct, frozen=True):
    """The arguments of `@every` on a method."""

    when: Timetable | str
    """The timetable, or what is wrong with it."""
    roles: tuple[Role, ...]
    attempts: int
    timeout: float | None


def read_when(text: str) -> Timetable | str:
    """`5 minutes`, `hour`, `day at 03:30` or `monday at 06:00`; a text is what is wrong."""
    match = _TEXT.fullmatch(text.strip().lower())
    if match is None:
        return f"{text!r} is no interval"
    number, unit, hour, minute = match[1], match[2], match[3], match[4]
    if unit in _DAYS:
        interval, offset = 604_800, _MONDAY + _DAYS.index(unit) * 86_400
        if number is not None:
            return f"{text!r} has a number before a day of the week"
    else:
        length = _UNITS.get(unit.removesuffix("s"))
        if length is None or number == "0":
            return f"{text!r} is no interval"
        interval = int(number or 1) * length
        offset = _MONDAY if interval % 604_800 == 0 else 0
    if hour is None:
        return Timetable(interval, offset)
    if int(hour) > 23 or int(minute) > 59 or interval % 86_400:
        return f"{text!r} has a time of day, and is no number of days"
    return Timetable(interval, offset + int(hour) * 3_600 + int(minute) * 60)


def scheduled(
    text: str = "",
    *,
    seconds: int = 0,
    minutes: int = 0,
    hours: int = 0,
    days: int = 0,
    at: str = "",
    roles: tuple[Role, ...] = (),
    attempts: int = 5,
    timeout: float | None = None,
) -> Callable[[Scheduled], Scheduled]:
    """Declare a function, above `@classmethod`, that runs at every tick, with the rules of a viewer with `roles`.

    It gets a JobTx, and `attempts` and `timeout` are as for `@action(background=True)`. A tick at which the run
    before has not ended is made up for once it has.
    """
    when: Timetable | str
    total = seconds + 60 * minutes + 3_600 * hours + 86_400 * days
    if text and not total:
        when = read_when(f"{text} at {at}" if at else text)
    elif text or total <= 0:
        when = "it has no interval" if not text else "it has two intervals"
    else:
        when = read_when(f"{total // 86_400} days at {at}" if at and total % 86_400 == 0 else f"{total} seconds")
        if at and total % 86_400:
            when = "a time of day needs a number of days"
    schedule = Schedule(when, roles, attempts, timeout)

    def note(member: Scheduled) -> Scheduled:
        if not hasattr(member, "__dict__"):
            raise TypeError(f"@every decorates a function, not {member!r}")
        member.__dict__["__every__"] = schedule
        return member

    return note


def schedule_of(member: object) -> Schedule | None:
    """The Schedule on a member of a class, above `@classmethod` or below."""
    for part in (member, getattr(member, "__func__", None)):
        noted: Schedule | None = getattr(part, "__dict__", {}).get("__every__")
        if noted is not None:
            return noted
    return None
