"""The rates of a model, checked; and which of them apply to a viewer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from msgspec import Struct

Unit = Literal["requests", "cost"]


class RateDef(Struct, frozen=True):
    """A limit of `amount` units in `seconds`; `role` and `resource` are "" if it is for everyone and all requests."""

    name: str
    unit: Unit
    amount: int
    seconds: int
    each: str = "caller"
    role: str = ""
    resource: str = ""

    @property
    def measure(self) -> tuple[str, str, str, int]:
        """What it limits: of several rates with one measure, a viewer has the one that its roles give it."""
        return self.unit, self.each, self.resource, self.seconds

    @property
    def text(self) -> str:
        """`600 requests per 60 s of each caller with the role staff`."""
        owner = f"all with the role {self.role} together" if self.each == "role" else f"each {self.each}"
        role = f" with the role {self.role}" if self.role and self.each != "role" else ""
        resource = f", on {self.resource}" if self.resource else ""
        return f"{self.amount} {self.unit} per {self.seconds} s of {owner}{role}{resource}"


def rates_of(rates: Iterable[RateDef], roles: Collection[str]) -> list[RateDef]:
    """The rates for a viewer with these roles. A rate for a role takes the place of the one for everyone; of several
    roles, the largest amount counts."""
    chosen: dict[tuple[str, str, str, int], RateDef] = {}
    for rate in rates:
        if rate.role and rate.role not in roles:
            continue
        other = chosen.get(rate.measure)
        if other is None or (bool(rate.role), rate.amount) > (bool(other.role), other.amount):
            chosen[rate.measure] = rate
    return list(chosen.values())


def merged_rates(rates: Iterable[RateDef], others: Iterable[RateDef]) -> tuple[RateDef, ...]:
    """The rates of a model with those of the settings, which replace the ones with the same measure and role."""
    by_measure = {(rate.measure, rate.role): rate for rate in rates}
    return tuple((by_measure | {(rate.measure, rate.role): rate for rate in others}).values())
