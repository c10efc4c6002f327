"""Is it sound: every value is held against the type of its slot, and every fault is told with its place.

A Binder is made once for a request's shape: what stands in the request's own text is parsed then; what a later
request brings along is fetched from its place and parsed when it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from diptych.ask.asked import Limits
from diptych.ask.slots import OFFSET, SIZE, Source
from diptych.errors import Code, Fault, Refusal
from diptych.lru import footprint
from diptych.model.constraints import Test, tests_of
from diptych.model.expr import Slot

Parse = Callable[[Any], Any]
Inputs = Mapping[str, Any]
Fetch = Callable[[Inputs], Any]
_PER_SLOT = 1_000
"""Bytes that a slot takes, with its source and what parses its value."""


class Binder:
    """Gets the canonical values of all slots from the inputs of a request. `code` is what a fault is called."""

    def __init__(self, slots: Sequence[Slot], sources: Sequence[Source], limits: Limits, code: Code) -> None:
        self.sources = sources
        self.code = code
        self.fixed: list[Any] = [None] * len(slots)
        """The values that stand in the request's own text, each in its slot."""
        self._open: list[tuple[int, Fetch, Parse]] = []
        self.size = _PER_SLOT * len(slots) + sum(footprint(source.value) for source in sources if source.fixed)
        """About how many bytes it takes."""
        faults: list[Fault] = []
        for slot, source in zip(slots, sources, strict=True):
            parse = parser(slot, source, limits)
            if source.fixed:
                _try(self.fixed, slot.index, parse, source.value, source, faults)
            else:
                self._open.append((slot.index, _fetcher(source), parse))
        self._refuse(faults)

    def __call__(self, inputs: Inputs) -> list[Any]:
        """The values, or a Refusal that names every faulty place."""
        values = self.fixed.copy()
        try:
            for index, fetch, parse in self._open:
                values[index] = parse(fetch(inputs))
        except ValueError:
            faults: list[Fault] = []
            for index, fetch, parse in self._open:
                _try(values, index, parse, fetch(inputs), self.sources[index], faults)
            self._refuse(faults)
        return values

    def is_fixed(self, slot: int) -> bool:
        """Does the value of a slot stand in the request's own text?"""
        return all(index != slot for index, *_ in self._open)

    def _refuse(self, faults: list[Fault]) -> None:
        if faults:
            raise Refusal(self.code, "Some values are not valid.", faults)

    def fault(self, slot: int, message: str) -> Refusal:
        """What to say of a value that turns out wrong later on."""
        return Refusal(self.code, "Some values are not valid.", [Fault(self.sources[slot].place, message)])


def _fetcher(source: Source) -> Fetch:
    """How a value is got from the inputs; what stands near is got quickly."""
    steps = source.place[1:]
    if source.make is not None or source.parts or not 1 <= len(steps) <= 2:
        return source.fetch
    if len(steps) == 1:
        return itemgetter(steps[0])
    outer, inner = steps
    return lambda inputs: inputs[outer][inner]  # type: ignore[index]


def _try(values: list[Any], index: int, parse: Parse, given: Any, source: Source, faults: list[Fault]) -> None:
    try:
        values[index] = parse(given)
    except ValueError as error:
        faults.append(Fault(source.place, str(error)))


def parser(slot: Slot, source: Source, limits: Limits) -> Parse:
    """How the value of a slot is parsed."""
    text = source.text
    parse = slot.scalar.parse_text if text else slot.scalar.parse
    if source.make is not None:
        return lambda made: made
    if source.constraints:
        return _constrained(parse, tests_of(source.constraints))
    if slot.many:
        return lambda given: _list(given, parse, text, limits.in_list)
    if slot.scalar is SIZE:
        return lambda given: _at_most(parse(given), limits.page, "a page size")
    if slot.scalar is OFFSET:
        return lambda given: _at_most(parse(given), limits.offset, "an offset")
    return parse


def _constrained(parse: Parse, tests: Sequence[tuple[Test, str]]) -> Parse:
    def parse_and_test(given: Any) -> Any:
        value = parse(given)
        for holds, told in tests:
            if not holds(value):
                raise ValueError(told)
        return value

    return parse_and_test


def _at_most(value: int, most: int, what: str) -> int:
    if value > most:
        raise ValueError(f"expected {what} of at most {most}, got {value}")
    return value


def _list(given: Any, parse: Parse, text: bool, most: int) -> list[Any]:
    if text:
        given = given.split(",")
    items = given if isinstance(given, list) else [given]
    if len(items) > most:
        raise ValueError(f"expected at most {most} items, got {len(items)}")
    return [parse(item) for item in items]
