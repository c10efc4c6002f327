"""Validation of values: each is parsed by the type of its slot, and every fault is reported with its path.

A Binder is made once for a request's shape: literals in the request's own text are parsed then; values that vary from
request to request are fetched from the inputs and parsed for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

from diptych.ask.measures import Limits
from diptych.ask.slots import ID_COUNT, LITERALS, MOST, OFFSET, SIZE, Ref, Source
from diptych.errors import Code, Fault, Refusal
from diptych.lru import footprint
from diptych.model.constraints import Test, tests_of
from diptych.model.list_scalar import ElementError
from diptych.model.rules.expr import Slot

Parse = Callable[[Any], Any]
Inputs = Mapping[str, Any]
Fetch = Callable[[Inputs], Any]
_PAGE_SIZES: Mapping[str, int] = {str(size): size for size in range(1, 101)}
"""Page sizes as most query strings have them: they need no parsing."""
_PER_SLOT = 1_000
"""Estimated bytes of memory for a slot, with its source and its parser."""


class Binder:
    """Parses the values of all slots from the inputs of a request. `code` is the error code of a fault."""

    def __init__(self, slots: Sequence[Slot], sources: Sequence[Source], limits: Limits, code: Code) -> None:
        self.sources = sources
        self.fetch: tuple[Fetch, ...] = tuple([_fetcher(source) for source in sources])
        """Gets the value of each slot from the inputs, as it was sent."""
        self.code = code
        self.fixed: list[Any] = [None] * len(slots)
        """The values of literals in the request's own text, by slot."""
        self._open: list[tuple[int, Fetch, Parse]] = []
        self.size = _PER_SLOT * len(slots) + sum(footprint(source.value) for source in sources if source.fixed)
        """Estimated bytes of memory."""
        self.literals: list[tuple[Fetch, Parse]] = []
        """The values that contain lifted literals of the document."""
        self.lifted: set[int] = set()
        """The indexes of these literals."""
        self.references = tuple(slot.index for slot, source in zip(slots, sources, strict=True) if source.target)
        """The slots whose value may be a Ref."""
        faults: list[Fault] = []
        for slot, source in zip(slots, sources, strict=True):
            parse = parser(slot, source, limits)
            if source.fixed:
                _try(self.fixed, slot.index, parse, source.value, source, faults)
            else:
                fetch = self.fetch[slot.index]
                self._open.append((slot.index, fetch, parse))
                indexes = () if source.literal < 0 and not source.parts else tuple(source.literals())
                if indexes and slot.scalar is not SIZE:  # a page size decides the price and the plan
                    self.literals.append((fetch, parse))
                    self.lifted.update(indexes)
        self._refuse(faults)

    def __call__(self, inputs: Inputs) -> list[Any]:
        """The values of all slots. Raises a Refusal that names every fault."""
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
        """Is the value of a slot a literal in the request's own text?"""
        return all(index != slot for index, *_ in self._open)

    def _refuse(self, faults: list[Fault]) -> None:
        if faults:
            raise Refusal(self.code, "Some values are not valid.", faults)

    def fault(self, slot: int, message: str) -> Refusal:
        """The Refusal of a value that turns out to be invalid later on."""
        return Refusal(self.code, "Some values are not valid.", [Fault(self.sources[slot].path, message)])


def _fetcher(source: Source) -> Fetch:
    """The function that gets a value from the inputs, with fast paths for one and two steps."""
    if source.literal >= 0:
        index = source.literal
        return lambda inputs: inputs[LITERALS].values[index]
    if source.make is not None:
        make = source.make
        return lambda _: make()
    steps = source.path[1:]
    if source.fixed or source.parts or not 1 <= len(steps) <= 2:
        return source.fetch
    if len(steps) == 1:
        return itemgetter(steps[0])
    outer, inner = steps
    return lambda inputs: inputs[outer][inner]  # type: ignore[index]  # as `fetch`, in one step


def _try(values: list[Any], index: int, parse: Parse, raw: Any, source: Source, faults: list[Fault]) -> None:
    try:
        values[index] = parse(raw)
    except ValueError as error:
        inside = error.path if isinstance(error, ElementError) else ()
        faults.append(Fault((*source.path, *inside), str(error)))


def parser(slot: Slot, source: Source, limits: Limits) -> Parse:
    """The parser of a slot's value: of each element if `slot.many`, then the constraints of its source."""
    text = source.text
    parse = slot.scalar.parse_text if text else slot.scalar.parse
    if source.make is not None:
        return lambda made: made
    if slot.scalar.items is not None and not text and source.path[:1] != ("body",):
        parse = _one_or_more(parse)
    if source.target:
        return _ids_or_refs(parse) if slot.many else _id_or_ref(parse)
    if source.constraints:
        return _constrained(parse, tests_of(source.constraints))
    if slot.many:
        return lambda raw: _list(raw, parse, text, limits.in_list)
    if slot.scalar is SIZE:
        return _page_size(parse, text, limits.page)
    if slot.scalar is ID_COUNT:
        return lambda raw: _at_most(parse(raw), limits.page, "a number of ids")
    if slot.scalar is MOST:
        return lambda raw: _at_most(parse(raw), limits.bulk, "a number of rows")
    if slot.scalar is OFFSET:
        return lambda raw: _at_most(parse(raw), limits.offset, "an offset")
    return parse


def _one_or_more(parse: Parse) -> Parse:
    """GraphQL takes a single value for a list of one."""
    return lambda raw: parse(raw if isinstance(raw, list) else [raw])


def _id_or_ref(parse: Parse) -> Parse:
    def parse_or_keep(raw: Any) -> Any:
        if type(raw) is str:
            return Ref(raw[1:]) if raw[:1] == "$" else parse(raw)
        return raw if type(raw) is Ref else parse(raw)  # JSON has no Refs: that of a nested write

    return parse_or_keep


def _ids_or_refs(parse: Parse) -> Parse:
    """The ids of the rows that a `set` names. What is no id is reported by the write of its link."""
    one = _id_or_ref(parse)

    def parse_all(raw: Any) -> list[Any]:
        values = []
        for item in raw:
            with suppress(ValueError):
                values.append(one(item))
        return values

    return parse_all


def _constrained(parse: Parse, tests: Sequence[tuple[Test, str]]) -> Parse:
    if len(tests) == 1:
        ((test, broken),) = tests

        def parse_and_test_once(raw: Any) -> Any:
            value = parse(raw)
            if test(value):
                return value
            raise ValueError(broken)

        return parse_and_test_once

    def parse_and_test(raw: Any) -> Any:
        value = parse(raw)
        for holds, message in tests:
            if not holds(value):
                raise ValueError(message)
        return value

    return parse_and_test


def _page_size(parse: Parse, text: bool, most: int) -> Parse:
    def parse_text(raw: str) -> int:
        size = _PAGE_SIZES.get(raw, most + 1)
        return size if size <= most else _at_most(parse(raw), most, "a page size")

    return parse_text if text else lambda raw: _at_most(parse(raw), most, "a page size")


def _at_most(value: int, most: int, what: str) -> int:
    if value > most:
        raise ValueError(f"expected {what} of at most {most}, got {value}")
    return value


def _list(raw: Any, parse: Parse, text: bool, most: int) -> list[Any]:
    if text:
        raw = raw.split(",")
    items = raw if isinstance(raw, list) else [raw]
    if len(items) > most:
        raise ValueError(f"expected at most {most} items, got {len(items)}")
    return [parse(item) for item in items]
