"""Getters: each gets the value of a Bind for one run of a statement, from its slots, its viewer or the clock."""

from __future__ import annotations

import datetime as dt
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from diptych.ask.act import act_text
from diptych.ask.cursor import AsStored, Cut
from diptych.ask.slots import SlotValues
from diptych.compile.plan import Getter
from diptych.lru import memo
from diptych.model.declare.roles import Viewer
from diptych.model.scalars import DATE, ID, INTEGER_ID, TEXT_ID, Scalar


def converted(value: Any, convert: Callable[[Any], Any] | None) -> Any:
    """The value in the form of the database; null is null everywhere."""
    return value if value is None or convert is None else convert(value)


def sort_key(slot: int, key: int, convert: Callable[[Any], Any] | None) -> Getter:
    """A sort key of a cursor."""

    def get(values: SlotValues, viewer: Viewer, keys: Mapping[int, bytes]) -> Any:
        value = values[slot][key]
        return value.value if isinstance(value, AsStored) else converted(value, convert)

    return get


def sort_key_part(slot: int, key: int, part: str) -> Getter:
    """The prefix or the digest of a sort key that was too long for a cursor."""

    def get(values: SlotValues, viewer: Viewer, keys: Mapping[int, bytes]) -> Any:
        value: str | Cut | AsStored | None = values[slot][key]
        if isinstance(value, Cut):
            return cast("str", getattr(value, part))
        if part == "digest":
            return None
        return value.value if isinstance(value, AsStored) else value

    return get


def constant(value: Any) -> Getter:
    """A constant of a rule."""
    return lambda values, viewer, keys: value


_id = memo("ids of viewers", 1_000)(ID.parse)
_integer_id = memo("numeric ids of viewers", 1_000)(INTEGER_ID.parse)


def viewer_id(scalar: Scalar) -> Getter:
    """The id of the viewer."""
    parse = TEXT_ID.parse if scalar is TEXT_ID else _integer_id if scalar is INTEGER_ID else _id
    return lambda values, viewer, keys: None if viewer.id is None else parse(viewer.id)


def cursor_key(page: int) -> Getter:
    """The key that signs the cursors of a page."""

    def get(values: SlotValues, viewer: Viewer, keys: Mapping[int, bytes]) -> bytes:
        return keys[page]

    return get


def act(values: SlotValues, viewer: Viewer, keys: Mapping[int, bytes]) -> str | None:
    """Who makes a change, as JSON."""
    return act_text()


def current_moment(scalar: Scalar, offset: dt.timedelta) -> Getter:
    """The current time, or day, and so much more."""
    if offset:
        return _later(offset, scalar is DATE)
    return _today if scalar is DATE else _now


def _now(values: SlotValues, viewer: Viewer, keys: Mapping[int, bytes]) -> str:
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}.{rest // 1_000:06}Z"


def _today(values: SlotValues, viewer: Viewer, keys: Mapping[int, bytes]) -> str:
    return _now(values, viewer, keys)[:10]


def _later(offset: dt.timedelta, is_day: bool) -> Getter:
    """The current time, or day, and so much more; what is outside of the years 1 to 9999 is their first or last."""

    def get(values: SlotValues, viewer: Viewer, keys: Mapping[int, bytes]) -> str:
        moment = dt.datetime.now(dt.UTC)
        try:
            moment += offset
        except OverflowError:
            moment = dt.datetime.max if offset > dt.timedelta() else dt.datetime.min
        return moment.strftime("%Y-%m-%d") if is_day else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    return get


@functools.lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
