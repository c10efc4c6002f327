"""The sources of slot values, and the scalar types of pagination arguments.

A Source says where the value of a slot comes from: a path into the inputs of the request ("variables" or "query"), or
a literal in the document itself. So a cached plan is bound to new values by lookup, without translating again. The
same holds for literals of a GraphQL document that were lifted out of its text (`api/graphql/literals.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from diptych.errors import Path
from diptych.model.rules.expr import Slot
from diptych.model.scalars import INT, STRING, Scalar


def _count(name: str, least: int, what: str) -> Scalar:
    def parse(value: Any) -> int:
        number = int(INT.parse(value))
        if number < least:
            raise ValueError(f"expected {what} of {least} or more")
        return number

    def parse_text(text: str) -> int:
        return parse(INT.parse_text(text))

    return Scalar(name, int, {}, parse, parse_text, "INTEGER", "integer", "integer", graphql="Int")


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1


ID_COUNT = Scalar("IdCount", int, {}, _length, _length, "INTEGER", "integer", "integer", graphql="Int")
"""The number of ids in a list, which is the size of the page that they are."""
SIZE = _count("PageSize", 1, "a page size")
MOST = _count("Most", 1, "a number of rows")
OFFSET = _count("Offset", 0, "an offset")
CURSOR = Scalar("Cursor", str, {}, STRING.parse, STRING.parse, "TEXT", "text", "text", graphql="String")
LITERALS = '"'
"""The key in the inputs under which the lifted literals of a document are; no variable has this name."""
SlotValues = Sequence[Any]
"""The values of the slots of an Ask, by index."""
CHANGE_KINDS = ("CREATED", "UPDATED", "DELETED", "LEFT")


def _kind(value: Any) -> str:
    if value not in CHANGE_KINDS:
        raise ValueError(f"expected one of {', '.join(CHANGE_KINDS)}")
    return str(value)


CHANGE_KIND = Scalar(
    "ChangeKind",
    str,
    {},
    _kind,
    _kind,
    "TEXT",
    "text",
    "text",
    choices=CHANGE_KINDS,
    description="What became of a row. It LEFT if an update took it out of what you may see, or asked for.",
)


class Ref(Struct, frozen=True):
    """A reference to an earlier step of the same request: the id of the row that it wrote.

    It is the value of a slot until that step has run. A client writes `"$name"`; no id begins so. Inside a nested write
    a number says how many steps before this one: -1 is the one before. No client can write that.
    """

    step: str | int


class Source(Struct, frozen=True):
    """Where one value comes from: a `fixed` value is a literal in the request's text, others are looked up by path."""

    path: Path
    fixed: bool = False
    value: Any = None
    text: bool = False
    """Is it the text of a query parameter, not JSON?"""
    parts: tuple[Source, ...] = ()
    """The sources of the items of a list or an object literal that contains variables."""
    keys: tuple[str, ...] | None = None
    """The keys of an object literal, in the order of `parts`."""
    make: Callable[[], Any] | None = None
    """The server generates the value for every request."""
    constraints: tuple[object, ...] = ()
    """Constraints on the value besides its type."""
    literal: int = -1
    """The index of the value among the lifted literals of the document, if it is one."""
    target: str = ""
    """The resource whose id it is, where it may be a Ref."""

    def literals(self) -> Iterator[int]:
        """The lifted literals that the value is made of."""
        if self.literal >= 0:
            yield self.literal
        for part in self.parts:
            yield from part.literals()

    def inputs(self) -> Iterator[str]:
        """The inputs below the first step of its path that the value is made of."""
        if not self.fixed and self.literal < 0 and not self.parts:
            yield from (str(step) for step in self.path[1:2])
        for part in self.parts:
            yield from part.inputs()

    def fetch(self, inputs: Mapping[str, Any]) -> Any:
        if self.literal >= 0:
            return inputs[LITERALS].values[self.literal]
        if self.make is not None:
            return self.make()
        if self.parts:
            values = [part.fetch(inputs) for part in self.parts]
            return values if self.keys is None else dict(zip(self.keys, values, strict=True))
        if self.fixed:
            return self.value
        value: Any = inputs
        for step in self.path[1:]:
            value = value[step]
        return value


class RawValue(Struct, frozen=True):
    """A JSON value from the client, with its path; a literal of a document holds RawValues again."""

    value: Any
    path: Path
    fixed: bool = False
    text: bool = False
    literal: int = -1
    """The index of the value among the lifted literals of the document, if it is one."""

    def entries(self, most: int | None = None) -> list[tuple[str, RawValue]]:
        """The entries of an object, or the first of them."""
        return [(key, self._inner(key, item)) for key, item in islice(self.value.items(), most)]

    def items(self) -> list[RawValue]:
        """The items of a list; a single value is coerced to a list of one, as in GraphQL."""
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
        """The Source from which later requests get this value."""
        if self.fixed and isinstance(self.value, list | dict):
            keys = tuple(self.value) if isinstance(self.value, dict) else None
            inside = self.items() if keys is None else [inner for _, inner in self.entries()]
            parts = tuple(inner.source() for inner in inside)
            if not all(part.fixed for part in parts):
                return Source(self.path, parts=parts, keys=keys)
        if self.literal >= 0:
            return Source(self.path, literal=self.literal)
        return Source(self.path, self.fixed, self.plain() if self.fixed else None, self.text)

    def _inner(self, step: str | int, item: Any) -> RawValue:
        return item if isinstance(item, RawValue) else RawValue(item, (*self.path, step), self.fixed)


class Slots:
    """Numbers the slots of an Ask in the order in which they are added."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.sources: list[Source] = []

    def take(
        self,
        scalar: Scalar,
        raw: RawValue,
        many: bool = False,
        constraints: tuple[object, ...] = (),
        target: str = "",
    ) -> Slot:
        source = raw.source()
        if constraints or target:
            source = replace(source, constraints=constraints, target=target)
        return self.add(scalar, source, many)

    def add(self, scalar: Scalar, source: Source, many: bool = False) -> Slot:
        slot = Slot(len(self.slots), scalar, many)
        self.slots.append(slot)
        self.sources.append(source)
        return slot
