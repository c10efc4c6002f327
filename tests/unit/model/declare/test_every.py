"""Timetables: what `@every` takes, and when its ticks are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from diptych.model.declare.every import Timetable, read_when, schedule_of, scheduled
from diptych.model.declare.job_tx import JobTx


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def shown(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%a %Y-%m-%d %H:%M:%S}"


@pytest.mark.parametrize(
    ("text", "following"),
    [
        ("second", "Wed 2026-11-18 12:34:57"),
        ("5 minutes", "Wed 2026-11-18 12:35:00"),
        ("90 seconds", "Wed 2026-11-18 12:36:00"),
        ("hour", "Wed 2026-11-18 13:00:00"),
        ("day", "Thu 2026-11-19 00:00:00"),
        ("Day at 03:30", "Thu 2026-11-19 03:30:00"),
        ("day at 12:35", "Wed 2026-11-18 12:35:00"),
        ("week", "Mon 2026-11-23 00:00:00"),
        ("week at 06:00", "Mon 2026-11-23 06:00:00"),
        ("monday at 06:00", "Mon 2026-11-23 06:00:00"),
        ("wednesday at 12:34", "Wed 2026-11-25 12:34:00"),
        ("sunday", "Sun 2026-11-22 00:00:00"),
    ],
)
def test_the_next_tick(text: str, following: str) -> None:
    when = read_when(text)
    assert isinstance(when, Timetable), when
    assert shown(when.after(at("2026-11-18 12:34:56"))) == following


def test_a_tick_is_after_a_moment_and_not_at_it() -> None:
    assert Timetable(60).after(120) == 180
    assert Timetable(60).after(119.999) == 120
    assert Timetable(60, 30).after(0) == 30


@pytest.mark.parametrize(
    "text",
    ["", "5", "0 minutes", "5 fortnights", "hour at 03:30", "day at 24:00", "day at 3:30", "2 mondays", "-1 days"],
)
def test_texts_that_are_no_timetable(text: str) -> None:
    assert isinstance(read_when(text), str)


def test_numbers_and_texts_mean_the_same() -> None:
    def when(*text: str, **options: Any) -> object:
        async def function(cls: object, tx: JobTx) -> None: ...

        schedule = schedule_of(scheduled(*text, **options)(function))
        assert schedule is not None
        return schedule.when

    assert when(minutes=5) == when("5 minutes") == Timetable(300)
    assert when(days=1, at="03:30") == when("day at 03:30") == when("day", at="03:30")
    assert when() == "it has no interval"
    assert when("hour", minutes=5) == "it has two intervals"
    assert when(hours=1, at="03:30") == "a time of day needs a number of days"
    with pytest.raises(TypeError, match="'minute'"):
        when(minute=5)
