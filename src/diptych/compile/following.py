"""Rules that look at what a nested write writes after their row: they are tested at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from diptych.ask.guarded import Guard
from diptych.model.rules.expr import FALSE, And, Expr, Has, leaves


def apart(guards: Iterable[Guard]) -> Iterator[Guard]:
    """The guards on the new row alone, each with one condition."""
    for guard in guards:
        if guard.was == FALSE and isinstance(guard.becomes, And):
            yield from (replace(guard, becomes=part) for part in guard.becomes.of)
        else:
            yield guard


def looks_through(expr: Expr, path: tuple[str, ...]) -> bool:
    """Does an expression look through the relation at the end of the path?"""
    if not path:
        return True
    ways = (part for part in leaves(expr) if isinstance(part, Has) and part.relation == path[0])
    return any(looks_through(part.where, path[1:]) for part in ways)
