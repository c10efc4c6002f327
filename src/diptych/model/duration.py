"""Durations: ISO 8601 on the wire, in one canonical form; microseconds in both databases.

PT90M  →  5400000000  →  PT1H30M
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

_DURATION = re.compile(
    r"([+-])?P(?!$)(?:(\d{1,9})W)?(?:(\d{1,9})D)?"
    r"(?:T(?=\d)(?:(\d{1,12})H)?(?:(\d{1,14})M)?(?:(\d{1,16})(?:\.(\d{1,6}))?S)?)?",
    re.ASCII,
)
_MOST_MICROSECONDS = 2**63 - 1
_CLOCK = (("H", 3_600_000_000, 24), ("M", 60_000_000, 60))


def parse_duration(value: Any) -> str:
    """A duration of ISO 8601 in its one canonical form: `P7D`, `PT1H30M`, `-PT0.5S`, `PT0S`."""
    return write_duration(read_duration(value))


def read_duration(value: Any) -> int:
    """The microseconds of a duration. Months and years have no fixed length."""
    matched = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        raise ValueError("expected a duration such as P7D or PT1H30M, without months and years")
    sign, weeks, days, hours, minutes, seconds, fraction = matched.groups()
    whole = int(weeks or 0) * 604_800 + int(days or 0) * 86_400 + int(hours or 0) * 3_600
    whole += int(minutes or 0) * 60 + int(seconds or 0)
    microseconds = whole * 1_000_000 + int((fraction or "").ljust(6, "0"))
    if microseconds > _MOST_MICROSECONDS:
        raise ValueError("expected a duration of at most 106751991 days")
    return -microseconds if sign == "-" else microseconds


def write_duration(microseconds: int) -> str:
    """The canonical form of a duration: the largest units first, none of them zero."""
    minutes, rest = divmod(abs(microseconds), 60_000_000)
    days, minutes = divmod(minutes, 1_440)
    seconds, fraction = divmod(rest, 1_000_000)
    shown = str(seconds) + (f".{fraction:06}".rstrip("0") if fraction else "")
    units = ((minutes // 60, "H"), (minutes % 60, "M"))
    clock = "".join(f"{number}{unit}" for number, unit in units if number) + (f"{shown}S" if rest else "")
    text = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return f"{'-' if microseconds < 0 else ''}P{text or 'T0S'}"


def duration_microseconds(delta: dt.timedelta) -> int:
    """The length of a timedelta, which Python keeps in three parts."""
    return delta // dt.timedelta(microseconds=1)


def duration_out(fraction: str) -> str:
    """A duration in microseconds as text; `fraction` writes six digits of a number."""
    whole = "abs({0})"
    parts = [f"CASE WHEN {whole} >= 86400000000 THEN CAST({whole} / 86400000000 AS TEXT) || 'D' ELSE '' END"]
    clock = [
        f"CASE WHEN {whole} / {size} % {most} > 0 THEN CAST({whole} / {size} % {most} AS TEXT) || '{unit}' ELSE '' END"
        for unit, size, most in _CLOCK
    ]
    rest = f"rtrim({fraction.format(f'{whole} % 1000000')}, '0')"
    seconds = f"CAST({whole} % 60000000 / 1000000 AS TEXT)"
    point = f"CASE WHEN {whole} % 1000000 > 0 THEN '.' || {rest} ELSE '' END"
    clock.append(f"CASE WHEN {whole} % 60000000 > 0 THEN {seconds} || {point} || 'S' ELSE '' END")
    parts.append(f"CASE WHEN {whole} % 86400000000 > 0 THEN 'T' || {' || '.join(clock)} ELSE '' END")
    sign = "CASE WHEN {0} < 0 THEN '-P' ELSE 'P' END"
    return f"CASE WHEN {{0}} = 0 THEN 'PT0S' WHEN {{0}} IS NOT NULL THEN {sign} || {' || '.join(parts)} END"
