"""Is it too much? One list of checks, each a function of what is asked and of what is allowed.

    def named(asked: Asked, limits: Limits) -> None:
        if asked.style == "graphql" and asked.price > 1_000 and not asked.operation:
            raise Refusal(Code.FORBIDDEN, "Name an operation that asks for so much.")

    app = Diptych(model, checks=[named])

A check is called whenever more is known of a request, with 0 for what is not known yet, and at last when everything
is known, before the statement runs. It raises a Refusal, or lets the request pass. Those of Diptych are written in
the same way, and no limit is held anywhere else, but for the sizes of single values (`check/values.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from diptych.ask.asked import Asked, Limits
from diptych.ask.nodes import Read
from diptych.ask.walk import reads
from diptych.check.cost import depth, filter_terms
from diptych.errors import Code, Refusal
from diptych.model.roles import Viewer

Check = Callable[[Asked, Limits], None]


def at_most(name: str, what: str) -> Check:
    """The check that a number of what is asked is no larger than the limit of the same name."""

    def check(asked: Asked, limits: Limits) -> None:
        found, allowed = getattr(asked, name), getattr(limits, name)
        if found > allowed:
            raise Refusal(Code.TOO_COMPLEX, f"{what.format(found)}; {allowed} are allowed.")

    return check


def nesting(asked: Asked, limits: Limits) -> None:
    if asked.nesting > limits.nesting:
        what = "The document" if asked.style == "graphql" else "fields"
        cause = f"{what} is nested {asked.nesting} levels deep; {limits.nesting} are allowed."
        raise Refusal(Code.TOO_DEEP, cause)


def levels(asked: Asked, limits: Limits) -> None:
    if asked.depth > limits.depth:
        told = {"depth": asked.depth, "allowed": limits.depth}
        cause = f"The request is {asked.depth} levels deep; {limits.depth} are allowed."
        raise Refusal(Code.TOO_DEEP, cause, more=told)


def price(asked: Asked, limits: Limits) -> None:
    price = max(asked.price, asked.least)
    if price > limits.complexity:
        told = {"price": price, "allowed": limits.complexity}
        cause = f"The request could return {price} objects; {limits.complexity} are allowed."
        raise Refusal(Code.TOO_COMPLEX, cause, more=told)


CHECKS: tuple[Check, ...] = (
    at_most("document", "The document has {} bytes"),
    at_most("tokens", "The document has {} tokens or more"),
    at_most("string", "A string, name or number of the document has {} bytes"),
    levels,
    nesting,
    at_most("aliases", "The request has {} aliases"),
    at_most("roots", "The document has {} root fields"),
    at_most("directives", "The document has {} directives"),
    at_most("selections", "A selection has {} fields or arguments"),
    at_most("definitions", "The document has {} operations and fragments"),
    at_most("expanded", "With its fragments unfolded, the document has {} selections or more"),
    at_most("described", "Introspection has {} selections or more"),
    at_most("listed", "A list has {} values"),
    at_most("values", "The variables hold {} values or more"),
    at_most("filter_terms", "A filter has {} comparisons"),
    at_most("sort_keys", "A sort has {} keys"),
    price,
)


class Checks:
    """All checks of a service: those of Diptych, and those that it was given."""

    def __init__(self, limits: Limits | None = None, checks: Iterable[Check] = ()) -> None:
        self.limits = limits or Limits()
        self._checks = (*CHECKS, *checks)
        self.has_more = len(self._checks) > len(CHECKS)
        """Are there checks besides those of Diptych? They may look at the viewer, so every request is shown to them."""

    def __call__(self, asked: Asked) -> Asked:
        """Have every check look at what is known."""
        for check in self._checks:
            check(asked, self.limits)
        return asked

    def shape(self, asked: Asked | None, asks: Iterable[Read]) -> None:
        """Look at how far some Asks reach, whatever their values are. (Nobody asks for those of the model's code.)"""
        if asked is None:
            return
        asks = tuple(asks)
        asked.depth = max(asked.depth, *map(depth, asks), 0)
        for read in reads(asks):
            asked.filter_terms = max(asked.filter_terms, filter_terms(read.where))
            asked.sort_keys = max(asked.sort_keys, len(read.order))
        asked.resources |= {read.resource for read in reads(asks)}
        self(asked)

    def price(self, asked: Asked | None, viewer: Viewer, price: int) -> None:
        """Look at a request that is known but for its price, and for who asks this time.

        All else was looked at before; Diptych's own checks have nothing to say of a price that is fair.
        """
        if asked is not None and (self.has_more or price > self.limits.complexity):
            self(replace(asked, viewer=viewer, price=price))
