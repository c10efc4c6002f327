"""Limits on requests: a list of checks, each a function of the measures of a request and of the limits.

    def named(measures: RequestMeasures, limits: Limits) -> None:
        if measures.style == "graphql" and measures.price > 1_000 and not measures.operation:
            raise Refusal(Code.FORBIDDEN, "Name an operation that asks for so much.")

    app = Diptych(model, checks=[named])

A check is called after each step that measures more of a request, with 0 for what is not known yet, and finally when
everything is known, before the statement runs. It raises a Refusal, or lets the request pass. The built-in checks are
written in the same way, and no limit is enforced anywhere else, except for the sizes of single values
(`policy/values.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter, gt
from typing import Any

from msgspec.structs import replace

from diptych.ask.measures import Limits, RequestMeasures, too_many_levels
from diptych.ask.nodes import Read
from diptych.ask.slots import SlotValues
from diptych.ask.walk import group_values, reads
from diptych.errors import Code, Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.rules.expr import TRUE, Measure
from diptych.policy.cost import Price, depth, filter_terms

Check = Callable[[RequestMeasures, Limits], None]


def at_most(name: str, what: str) -> Check:
    """The check that a measure is no larger than the limit of the same name."""

    def check(measures: RequestMeasures, limits: Limits) -> None:
        measured, allowed = getattr(measures, name), getattr(limits, name)
        if measured > allowed:
            raise Refusal(Code.TOO_COMPLEX, f"{what.format(measured)}; {allowed} are allowed.")

    return check


def nesting(measures: RequestMeasures, limits: Limits) -> None:
    if measures.nesting > limits.nesting:
        what = "The document" if measures.style == "graphql" else "fields"
        cause = f"{what} is nested {measures.nesting} levels deep; {limits.nesting} are allowed."
        raise Refusal(Code.TOO_DEEP, cause)


def levels(measures: RequestMeasures, limits: Limits) -> None:
    if measures.depth > limits.depth:
        raise too_many_levels(measures.depth, limits)


def price(measures: RequestMeasures, limits: Limits) -> None:
    price = max(measures.price, measures.least)
    if price > limits.complexity:
        details: dict[str, Any] = {"price": price, "allowed": limits.complexity}
        cause = f"The request could return {price} objects; {limits.complexity} are allowed."
        if measures.hint is not None:
            cause = f"{cause} {measures.hint}"
            details |= {"list": measures.hint.list} if measures.hint.list else {}
            details["first"] = measures.hint.first
        raise Refusal(Code.TOO_COMPLEX, cause, more=details)


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


_NAMES = tuple(name for name in Limits.__struct_fields__ if name in RequestMeasures.__struct_fields__)
_MEASURES = attrgetter(*_NAMES, "price", "least")
_LIMITS = attrgetter(*_NAMES, "complexity", "complexity")


class Checks:
    """All checks of a service: the built-in ones, and those of the application."""

    def __init__(self, limits: Limits | None = None, checks: Iterable[Check] = ()) -> None:
        self.limits = limits or Limits()
        self._limits = _LIMITS(self.limits)
        self.more = tuple(checks)
        self._checks = (*CHECKS, *self.more)
        self.has_more = bool(self.more)
        """Are there checks of the application? They may depend on the viewer, so they run for every request."""

    def __call__(self, measures: RequestMeasures) -> RequestMeasures:
        """Run all checks on the measures; the built-in ones alone need not run if no measure is over its limit."""
        if self.has_more or any(map(gt, _MEASURES(measures), self._limits)):
            for check in self._checks:
                check(measures, self.limits)
        return measures

    def shape(self, measures: RequestMeasures | None, asks: Iterable[Read]) -> None:
        """Measure and check depth, filters and sorts of some Reads. Those of the model's own code have no measures."""
        if measures is None:
            return
        asks = tuple(asks)
        measures.depth = max(measures.depth, *map(depth, asks), 0)
        every = reads(asks)
        for read in every:
            if read.where is not TRUE:
                measures.filter_terms = max(measures.filter_terms, filter_terms(read.where))
            measures.sort_keys = max(measures.sort_keys, len(read.order))
            if read.take in ("summary", "groups"):
                self._aggregate(measures, read)
        measures.resources |= {read.resource for read in every}
        self(measures)

    def _aggregate(self, measures: RequestMeasures, read: Read) -> None:
        """Check the keys and measures of a summary or of groups."""
        numbers = sum(isinstance(cell.of, Measure) for cell in group_values(read.pick))
        keys = 0 if read.groups is None else len(read.groups.by)
        if read.groups is not None:
            measures.filter_terms = max(measures.filter_terms, filter_terms(read.groups.having))
        for count, allowed, what in (
            (keys, self.limits.group_keys, "keys"),
            (numbers, self.limits.numbers, "measures"),
        ):
            if count > allowed:
                raise Refusal(Code.TOO_COMPLEX, f"Groups or a summary have {count} {what}; {allowed} are allowed.")

    def price(
        self,
        measures: RequestMeasures | None,
        viewer: Viewer,
        price: int,
        formula: Price | None = None,
        values: SlotValues = (),
    ) -> None:
        """Check the price of a request whose other measures were checked when its plan was made.

        If there are only the built-in checks, they run only if the price is over its limit. The formula of the price
        and its values say which page would have to be smaller.
        """
        allowed = self.limits.complexity
        if measures is not None and (self.has_more or price > allowed):
            hint = formula.hint(values, allowed) if formula is not None and price > allowed else None
            self(replace(measures, viewer=viewer, price=price, hint=hint))
