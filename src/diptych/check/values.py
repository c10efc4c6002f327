"""Is it sound: every value is held against the type of its slot, and every fault is told with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.ask.slots import OFFSET, SIZE, Source
from diptych.check.cost import Limits
from diptych.errors import Code, Fault, Refusal
from diptych.model.expr import Slot


def bind(
    slots: Sequence[Slot], sources: Sequence[Source], inputs: Mapping[str, Any], limits: Limits, code: Code
) -> list[Any]:
    """The canonical values of all slots, or a Refusal that names every faulty place."""
    values: list[Any] = []
    faults: list[Fault] = []
    for slot, source in zip(slots, sources, strict=True):
        try:
            values.append(_value(slot, source, inputs, limits))
        except ValueError as error:
            faults.append(Fault(source.place, str(error)))
    if faults:
        raise Refusal(code, "Some values are not valid.", faults)
    return values


def _value(slot: Slot, source: Source, inputs: Mapping[str, Any], limits: Limits) -> Any:
    given = source.fetch(inputs)
    if slot.many:
        return _list(slot, given, source.text, limits)
    value = (slot.scalar.parse_text if source.text else slot.scalar.parse)(given)
    if slot.scalar is SIZE and value > limits.page:
        raise ValueError(f"expected a page size of at most {limits.page}, got {value}")
    if slot.scalar is OFFSET and value > limits.offset:
        raise ValueError(f"expected an offset of at most {limits.offset}, got {value}")
    return value


def _list(slot: Slot, given: Any, text: bool, limits: Limits) -> list[Any]:
    if text:
        given = given.split(",") if given else []
    items = given if isinstance(given, list) else [given]
    if len(items) > limits.in_list:
        raise ValueError(f"expected at most {limits.in_list} items, got {len(items)}")
    parse = slot.scalar.parse_text if text else slot.scalar.parse
    return [parse(item) for item in items]
