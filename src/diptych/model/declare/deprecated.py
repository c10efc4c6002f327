"""`deprecated(…)`: a part of the API that clients should stop using, and when it will be gone.

title: Annotated[str, deprecated("Use headline.", since="2026-01-01", sunset="2026-12-31")]
class Note(Resource, deprecated=deprecated("Use Post.", since="2026-01-01")): …

@action(deprecated=deprecated("Use archive.", since="2026-01-01"))
async def hide(self, tx: Tx, note: Annotated[str | None, deprecated("Not stored.", since="2026-01-01")] = None): …

@deprecated_values(waiting=deprecated("Use pending.", since="2026-01-01"))
class Status(StrEnum): …
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from datetime import date
from typing import TypeVar

from msgspec import Struct

E = TypeVar("E", bound=type[enum.Enum])
_NOTED = "__deprecated_values__"


class DeprecatedMark(Struct, frozen=True):
    """The arguments of `deprecated`, as the model file gives them."""

    reason: str
    since: date | str
    sunset: date | str | None = None
    link: str = ""


def deprecated(reason: str, *, since: date | str, sunset: date | str | None = None, link: str = "") -> DeprecatedMark:
    """Declare that a part of the API is deprecated since a day: why, and what to use instead.

    From the day `sunset` on it may be gone; `link` is the address of a page about it. Days are written "2026-12-31".
    """
    return DeprecatedMark(reason, since, sunset, link)


def deprecated_values(**values: DeprecatedMark) -> Callable[[E], E]:
    """Declare that members of an Enum are deprecated, by their names."""

    def note(kind: E) -> E:
        setattr(kind, _NOTED, values)
        return kind

    return note


def noted_values(kind: type[enum.Enum]) -> Mapping[str, DeprecatedMark]:
    """What `deprecated_values` said of an Enum."""
    noted: Mapping[str, DeprecatedMark] = vars(kind).get(_NOTED, {})
    return noted
