"""Warnings of rates that make no sense: one that is never reached, or that refuses what the limits allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diptych.model.rates import RateDef


def advise_rates(rates: Sequence[RateDef], max_cost: int) -> Iterator[str]:
    """A sentence for each rate that makes no sense, if a request may cost up to `max_cost`."""
    for rate in rates:
        if rate.unit == "cost" and rate.amount < max_cost:
            yield (
                f"the rate {rate.name} allows a cost of {rate.amount}, and max_complexity one of {max_cost} by a "
                "single request: what costs more than the rate is always refused. Raise the one, or lower the other"
            )
        for other in rates:
            if _hides(other, rate):
                yield f"the rate {rate.name} is never reached, since {other.name} ({other.text}) allows no more"
    yield from _weaker(rates)


def _hides(other: RateDef, rate: RateDef) -> bool:
    """Is `rate` never reached, as `other` limits the same callers to no more, in a longer time or a shorter one?"""
    same = (other.unit, other.each, other.role) == (rate.unit, rate.each, rate.role)
    if not same or other is rate or other.resource not in ("", rate.resource):
        return False
    if other.seconds == rate.seconds:
        return other.resource != rate.resource and other.amount <= rate.amount
    if other.seconds > rate.seconds:
        return other.amount <= rate.amount
    return other.amount * (rate.seconds / other.seconds) + other.amount <= rate.amount


def _weaker(rates: Sequence[RateDef]) -> Iterator[str]:
    everyone = {rate.measure: rate for rate in rates if not rate.role}
    for rate in rates:
        general = everyone.get(rate.measure)
        if rate.role == "signed_in" and general is not None and rate.amount < general.amount:
            yield f"the rate {rate.name} gives those with a token less than {general.name} gives everyone"
