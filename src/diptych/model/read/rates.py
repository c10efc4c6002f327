"""Reads the `Rate`s of a model and of the settings, and finds their mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from diptych.errors import StartError
from diptych.model.declare.rate import Rate
from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import SIGNED_IN, Role
from diptych.model.defs import ResourceDef
from diptych.model.rates import RateDef, Unit, merged_rates

Wrong = Callable[[str, str], None]
_PERIODS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
_PARTITIONS = ("caller", "client", "address", "role")
_MOST = 10**12
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}", re.ASCII)
_EXAMPLE = 'Write Rate(requests=600, per="minute")'


class HasRates(Protocol):
    """A Model."""

    rates: tuple[RateDef, ...]
    resources: Mapping[str, ResourceDef]
    roles: Mapping[str, Role]


def read_rates(declared: Iterable[Rate], resources: Collection[str], wrong: Wrong) -> tuple[RateDef, ...]:
    """The rates of a model with these resources."""
    read = []
    for rate in declared:
        if not isinstance(rate, Rate):
            wrong(f"{rate!r} is no Rate", _EXAMPLE)
            continue
        on = rate.on.__name__ if isinstance(rate.on, type) and issubclass(rate.on, Resource) else rate.on
        to = rate.to.name if isinstance(rate.to, Role) else rate.to
        shown: dict[str, Any] = {"requests": rate.requests, "cost": rate.cost, "per": rate.per}
        shown |= {"each": rate.each, "to": to, "on": on, "name": rate.name}
        rate_def = _read(shown, resources, None, wrong)
        if rate_def is not None:
            read.append(rate_def)
    return _without_twins(read, wrong)


def read_rate_tables(
    tables: Iterable[Mapping[str, Any]], resources: Collection[str], roles: Collection[str], wrong: Wrong
) -> tuple[RateDef, ...]:
    """The rates of the settings, which name roles and resources as texts."""
    read = [_read(table, resources, roles, wrong) for table in tables]
    return _without_twins([rate for rate in read if rate is not None], wrong)


def rates_in_force(model: HasRates, tables: Sequence[Mapping[str, Any]]) -> tuple[RateDef, ...]:
    """The rates of a model with those of the settings; a StartError if the settings have mistakes."""
    faults: list[str] = []
    roles = (SIGNED_IN, *model.roles)
    read = read_rate_tables(tables, model.resources, roles, lambda cause, fix: faults.append(f"{cause}. {fix}."))
    if faults:
        raise StartError("The setting rates cannot work: " + " ".join(faults))
    return merged_rates(model.rates, read)


def _read(
    table: Mapping[str, Any], resources: Collection[str], roles: Collection[str] | None, wrong: Wrong
) -> RateDef | None:
    shown = ", ".join(f"{name}={value!r}" for name, value in table.items() if value not in (None, ""))
    faults = list(_faults(table, resources, roles))
    for cause, fix in faults:
        wrong(f"Rate({shown}): {cause}", fix)
    if faults:
        return None
    unit: Unit = "requests" if table.get("requests") is not None else "cost"
    per = table["per"]
    seconds = int(per.total_seconds()) if isinstance(per, timedelta) else _PERIODS[per]
    each, role, resource = table.get("each") or "caller", table.get("to") or "", table.get("on") or ""
    period = per if isinstance(per, str) else f"{seconds}s"
    parts = (resource, each if each not in ("caller", "role") else "", unit, "per", period, role)
    name = table.get("name") or "-".join(filter(None, parts))
    return RateDef(name, unit, table[unit], seconds, each, role, resource)


def _faults(
    table: Mapping[str, Any], resources: Collection[str], roles: Collection[str] | None
) -> Iterator[tuple[str, str]]:
    amounts = [table[unit] for unit in ("requests", "cost") if table.get(unit) is not None]
    if len(amounts) != 1:
        yield "it needs requests or cost, and not both", _EXAMPLE
    elif type(amounts[0]) is not int or not 1 <= amounts[0] <= _MOST:
        yield f"{amounts[0]!r} is no amount", "Write a whole number of 1 or more"
    per, each, on, to = table.get("per"), table.get("each") or "caller", table.get("on"), table.get("to")
    if isinstance(per, timedelta):
        if per < timedelta(seconds=1) or per > timedelta(days=31) or per.microseconds:
            yield f"{per!r} is no period", "Write whole seconds, up to 31 days"
    elif not isinstance(per, str) or per not in _PERIODS:
        yield f"{per!r} is no period", 'Write per="second", "minute", "hour" or "day"'
    if each not in _PARTITIONS:
        yield f"each={each!r} is unknown", f"Write one of {', '.join(_PARTITIONS)}"
    if each == "role" and not to:
        yield 'each="role" needs the role', 'Write Rate(…, each="role", to=staff)'
    if on and on not in resources:
        yield f"the model has no resource {on!r}", f"Name one of {', '.join(resources)}"
    if to and (not isinstance(to, str) or (roles is not None and to not in roles)):
        yield f"there is no role {to!r}", "Name a role of the model, or signed_in"
    name = table.get("name")
    if name and (not isinstance(name, str) or not _NAME.fullmatch(name)):
        yield f"it cannot be named {name!r}", "Use letters, digits, _ . and -"


def _without_twins(rates: list[RateDef], wrong: Wrong) -> tuple[RateDef, ...]:
    """The rates, each of which is there once."""
    seen: set[object] = set()
    for rate in rates:
        if (rate.measure, rate.role) in seen:
            wrong(f"two rates limit the same: {rate.text}", "Keep one of them")
        if rate.name in seen:
            wrong(f"two rates are named {rate.name!r}", "Rename one")
        seen |= {(rate.measure, rate.role), rate.name}
    return tuple(rates)
