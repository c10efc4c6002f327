"""Values beside an Ask: where each slot's value is found, and the special types of page arguments.

A Source says where the client put a value: a place in the inputs of the request ("variables" or "query"), or
a value that stands in the document itself. So a plan that was made once is bound again by looking, not by
translating.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from diptych.errors import Place
from diptych.model.expr import Slot
from diptych.model.scalars import INT, STRING, Scalar


def _size(value: Any) -> int:
    number = INT.parse(value)
    if number < 1:
        raise ValueError("expected a page size of 1 or more")
    return int(number)


def _offset(value: Any) -> int:
    number = INT.parse(value)
    if number < 0:
        raise ValueError("expected an offset of 0 or more")
    return int(number)


def _size_text(value: str) -> int:
    return _size(INT.parse_text(value))


def _offset_text(value: str) -> int:
    return _offset(INT.parse_text(value))


SIZE = Scalar("PageSize", int, {}, _size, _size_text, "INTEGER", "integer", "integer", graphql="Int")
OFFSET = Scalar("Offset", int, {}, _offset, _offset_text, "INTEGER", "integer", "integer", graphql="Int")
CURSOR = Scalar("Cursor", str, {}, STRING.parse, STRING.parse, "TEXT", "text", "text", graphql="String")


CHANGE_KINDS = ("CREATED", "UPDATED", "DELETED", "LEFT")


def _kind(value: Any) -> str:
    if value not in CHANGE_KINDS:
        raise ValueError(f"expected one of {', '.join(CHANGE_KINDS)}")
    return str(value)


CHANGE_KIND = Scalar(
    "ChangeKind", str, {}, _kind, _kind, "TEXT", "text", "text", choices=CHANGE_KINDS,
    description="What became of a row. It LEFT if an update took it out of what you may see, or asked for.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """Where one value comes from. `fixed` values stand in the request's own text; others are looked up."""

    place: Place
    fixed: bool = False
    value: Any = None
    text: bool = False
    """Is it the text of a query parameter, rather than JSON?"""
    parts: tuple[Source, ...] = ()
    """A list or an object in the document that holds variables somewhere: a source for each of its values."""
    keys: tuple[str, ...] | None = None
    """The keys of an object."""
    make: Callable[[], Any] | None = None
    """The client does not give it: the server makes it anew for every request."""
    constraints: tuple[object, ...] = ()
    """What the value must satisfy besides its type."""

    def fetch(self, inputs: Mapping[str, Any]) -> Any:
        if self.make is not None:
            return self.make()
        if self.parts:
            found = [part.fetch(inputs) for part in self.parts]
            return found if self.keys is None else dict(zip(self.keys, found, strict=True))
        if self.fixed:
            return self.value
        value: Any = inputs
        for step in self.place[1:]:
            value = value[step]
        return value


@dataclass(frozen=True, slots=True)
class Given:
    """A JSON value that a client gave, with its place; a document's own value holds Givens in turn."""

    value: Any
    place: Place
    fixed: bool = False
    text: bool = False

    def entries(self) -> list[tuple[str, Given]]:
        """The entries of an object."""
        return [(key, self._inner(key, item)) for key, item in self.value.items()]

    def items(self) -> list[Given]:
        """The items of a list; a single value stands for a list of one, as GraphQL has it."""
        if not isinstance(self.value, list):
            return [self]
        return [self._inner(index, item) for index, item in enumerate(self.value)]

    def plain(self) -> Any:
        """The bare JSON value."""
        if isinstance(self.value, dict):
            return {key: inner.plain() for key, inner in self.entries()}
        if isinstance(self.value, list):
            return [inner.plain() for inner in self.items()]
        return self.value

    def source(self) -> Source:
        """Where to find this value again."""
        if self.fixed and isinstance(self.value, list | dict):
            keys = tuple(self.value) if isinstance(self.value, dict) else None
            inside = self.items() if keys is None else [inner for _, inner in self.entries()]
            parts = tuple(inner.source() for inner in inside)
            if not all(part.fixed for part in parts):
                return Source(self.place, parts=parts, keys=keys)
        return Source(self.place, self.fixed, self.plain() if self.fixed else None, self.text)

    def _inner(self, step: str | int, item: Any) -> Given:
        return item if isinstance(item, Given) else Given(item, (*self.place, step), self.fixed)


class Slots:
    """Deals out slots in the order in which an Ask is drawn."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.sources: list[Source] = []

    def take(self, scalar: Scalar, given: Given, many: bool = False, constraints: tuple[object, ...] = ()) -> Slot:
        source = given.source()
        return self.add(scalar, replace(source, constraints=constraints) if constraints else source, many)

    def add(self, scalar: Scalar, source: Source, many: bool = False) -> Slot:
        slot = Slot(len(self.slots), scalar, many)
        self.slots.append(slot)
        self.sources.append(source)
        return slot
