"""Reads `deprecated(…)`: what the model file gives → a Deprecation, or what is wrong with it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

from diptych.model.declare.deprecated import DeprecatedMark, noted_values
from diptych.model.deprecation import Deprecation
from diptych.model.naming import NameFault

_WRITE = 'Write deprecated("Use headline.", since="2026-01-01", sunset="2026-12-31")'


def deprecation_of(given: Any) -> Deprecation | None:
    """The Deprecation of a valid `deprecated(…)`; None for anything else."""
    if not isinstance(given, DeprecatedMark) or deprecation_fault(given) is not None:
        return None
    since = _day(given.since)
    return None if since is None else Deprecation(given.reason.strip(), since, _day(given.sunset), given.link)


def deprecation_fault(given: Any) -> NameFault | None:
    """What is wrong with a `deprecated(…)`; None if it is valid or absent."""
    if given is None:
        return None
    if not isinstance(given, DeprecatedMark):
        return f"deprecated={given!r} is no deprecation", _WRITE
    if not isinstance(given.reason, str) or not given.reason.strip():
        return "it is deprecated without a reason", _WRITE
    since, sunset = _day(given.since), _day(given.sunset)
    if since is None:
        return f"since={given.since!r} is no day", _WRITE
    if sunset is None and given.sunset is not None:
        return f"sunset={given.sunset!r} is no day", _WRITE
    if sunset is not None and sunset < since:
        return f"its sunset {sunset} is before {since}", "Give a later day"
    if not isinstance(given.link, str) or not _is_address(given.link):
        return f"link={given.link!r} is no address", 'Write link="https://…"'
    return None


def read_values(kind: type[enum.Enum], wrong: Callable[[str, str], None]) -> None:
    """Report what is wrong with the deprecated values of an Enum."""
    noted: Any = noted_values(kind)
    for name, given in noted.items():
        if name not in kind.__members__:
            wrong(f"{kind.__name__} has no member {name}, which is deprecated", "Name one of its members")
        elif fault := deprecation_fault(given) or (None if given is not None else (f"{name} is None", _WRITE)):
            wrong(f"{kind.__name__}.{name}: {fault[0]}", fault[1])


def deprecated_choices(kind: type[enum.Enum]) -> Mapping[str, Deprecation]:
    """The deprecated values of an Enum, as they are on the wire."""
    found = {name: deprecation_of(given) for name, given in noted_values(kind).items()}
    members = kind.__members__
    return {str(members[name].value): each for name, each in found.items() if each is not None and name in members}


def _day(given: Any) -> date | None:
    if isinstance(given, str):
        try:
            return date.fromisoformat(given)
        except ValueError:
            return None
    return given if isinstance(given, date) and not isinstance(given, datetime) else None


def _is_address(link: str) -> bool:
    plain = link.isascii() and link.isprintable() and not set(link) & set(' <>"')
    return not link or (plain and link.startswith(("https://", "http://")))
