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
from typing import Any, Concatenate, TypedDict, TypeVar, Unpack

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


class ScheduleOptions(TypedDict, total=False):
    """The options of `@every`: the interval, unless it is written as a text, and how a run is made."""

    seconds: int
    minutes: int
    hours: int
    days: int
    at: str
    """The time of day in UTC, `03:30`, for an interval of days."""
    roles: tuple[Role, ...]
    """The roles of the viewer whose rules apply to the run; none unless given."""
    attempts: int
    """5 unless given."""
    timeout: float | None
    """Seconds for an attempt."""


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


def scheduled(text: str = "", **options: Unpack[ScheduleOptions]) -> Callable[[Scheduled], Scheduled]:
    """Declare a function, above `@classmethod`, that runs at every tick, with the rules of a viewer with `roles`.

    It gets a JobTx, and `attempts` and `timeout` are as for `@action(background=True)`. A tick at which the run
    before has not ended is made up for once it has.
    """
    if unknown := options.keys() - ScheduleOptions.__optional_keys__:
        raise TypeError(f"@every has no option {min(unknown)!r}")
    schedule = Schedule(
        _when(text, options), options.get("roles", ()), options.get("attempts", 5), options.get("timeout")
    )

    def note(member: Scheduled) -> Scheduled:
        if not hasattr(member, "__dict__"):
            raise TypeError(f"@every decorates a function, not {member!r}")
        member.__dict__["__every__"] = schedule
        return member

    return note


def _when(text: str, options: ScheduleOptions) -> Timetable | str:
    """The timetable of a text or of numbers; a text is what is wrong."""
    at = options.get("at", "")
    total = (
        options.get("seconds", 0)
        + 60 * options.get("minutes", 0)
        + 3_600 * options.get("hours", 0)
        + 86_400 * options.get("days", 0)
    )
    if text:
        return "it has two intervals" if total else read_when(f"{text} at {at}" if at else text)
    if total <= 0:
        return "it has no interval"
    if at and total % 86_400:
        return "a time of day needs a number of days"
    return read_when(f"{total // 86_400} days at {at}" if at else f"{total} seconds")


def schedule_of(member: object) -> Schedule | None:
    """The Schedule on a member of a class, above `@classmethod` or below."""
    for part in (member, getattr(member, "__func__", None)):
        noted: Schedule | None = getattr(part, "__dict__", {}).get("__every__")
        if noted is not None:
            return noted
    return None
