"""Read → what the database answers of it, and what is left to Python.

A field that Python computes has no SQL. In its place the database answers whether it shows on the row, and what it
needs is picked too, under labels that nobody asked for. A Finish says where all of that stands in the answer:

    { posts { title minutes } }                           minutes needs body

    Read("Post", "list", (Field("title", "title"), Field("minutes", "minutes"), Field("body", "__body")))

    [{"title":"x","minutes":true,"__body":"…"}]

The answer is read into structs in which every value that Python has no part in stays the bytes that it was. Rules
are joined to a Read after it is split, to the needs as to all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from diptych.ask.nodes import ChangePart, EdgePart, Edges, Field, Follow, Nodes, Part, Pick, Read, Watch
from diptych.model.defs import FieldDef, ResourceDef

Resources = Mapping[str, ResourceDef]


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A field that Python computes of the objects at one place: the attributes that its value goes to (first they say
    whether it shows), and those in which the values that it needs are, by their names."""

    resource: ResourceDef
    field: FieldDef
    attributes: tuple[str, ...]
    needs: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """The objects at one place of an answer: the struct that they are, and what there is to do."""

    kind: Any
    tasks: tuple[Task, ...]
    hidden: tuple[str, ...]
    """The attributes that nobody asked for."""
    below: tuple[tuple[str, bool, Spot], ...]
    """The places below: in which attribute, and whether it is a list there or one object, or null."""


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """What Python does with the answer to a Read: a list, or one object."""

    spot: Spot
    many: bool
    decoder: msgspec.json.Decoder[Any]

    def tasks(self) -> Iterator[Task]:
        """All that there is to do, outer before inner."""
        spots = [self.spot]
        while spots:
            spot = spots.pop(0)
            yield from spot.tasks
            spots += [inner for *_, inner in spot.below]


def split(read: Read, resources: Resources) -> tuple[Read, Finish | None]:
    """What the database is asked for, and what Python does then; None if that is nothing."""
    whole, spot = _Splitter(resources).read(read)
    if spot is None:
        return read, None
    many = read.take == "list"
    return whole, Finish(spot, many, msgspec.json.Decoder(_held(spot, many)))


def split_watch(watch: Watch, resources: Resources) -> tuple[Watch, tuple[Finish | None, ...]]:
    """The same for changes: what Python does stands there for each part that shows the row."""
    parts: list[ChangePart] = []
    todo: list[Finish | None] = []
    for part in watch.parts:
        if part.what != "row":
            parts.append(part)
            continue
        whole, rest = split(Read(watch.resource, "one", part.pick), resources)
        parts.append(replace(part, pick=cast("tuple[Pick, ...]", whole.pick)))
        todo.append(rest)
    return replace(watch, parts=tuple(parts)), tuple(todo)


def _held(spot: Spot, many: bool) -> Any:
    """The type of a value that holds the objects of a place."""
    return list[spot.kind] if many else spot.kind | None  # type: ignore[name-defined]


class _Shape:
    """The members of an object, one by one. Its struct has an attribute for each, whatever its label is."""

    def __init__(self) -> None:
        self.attributes: dict[str, str] = {}
        self.below: list[tuple[str, bool, Spot]] = []
        self._members: list[tuple[str, Any, Any]] = []

    def add(self, label: str, spot: Spot | None = None, many: bool = False, kind: Any = msgspec.Raw) -> str:
        """A member with objects, or with a value that stays as it is."""
        attribute = self.attributes[label] = f"m{len(self._members)}"
        if spot is not None:
            self.below.append((attribute, many, spot))
            kind = _held(spot, many)
        self._members.append((attribute, kind, msgspec.field(default=msgspec.UNSET, name=label)))
        return attribute

    def free(self, name: str) -> str:
        """A label that is not taken."""
        label = f"__{name}"
        while label in self.attributes:
            label = "_" + label
        return label

    def spot(self, name: str, tasks: Sequence[Task] = (), hidden: Sequence[str] = ()) -> Spot | None:
        """The place, if there is something to do at it or below."""
        if not tasks and not self.below:
            return None
        kind = msgspec.defstruct(name, self._members)
        return Spot(kind, tuple(tasks), tuple(hidden), tuple(self.below))


class _Splitter:
    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    def read(self, read: Read) -> tuple[Read, Spot | None]:
        resource = self.resources[read.resource]
        pick: tuple[Pick | Part, ...]
        if read.take == "page":
            pick, spot = self._parts(cast("tuple[Part, ...]", read.pick), resource)
        else:
            pick, spot = self._picks(cast("tuple[Pick, ...]", read.pick), resource)
        return replace(read, pick=pick), spot

    def _picks(self, picks: Sequence[Pick], resource: ResourceDef) -> tuple[tuple[Pick, ...], Spot | None]:
        """The picks of a row, and behind them all that is needed and not picked anyway."""
        shape = _Shape()
        out = [self._pick(pick, resource, shape) for pick in picks]
        plain = [pick for pick in picks if isinstance(pick, Field)]
        made = {pick.name: field for pick in plain if (field := _made(pick, resource))}
        found = {pick.name: shape.attributes[pick.label] for pick in plain}
        hidden = []
        for need in dict.fromkeys(need for field in made.values() for need in field.needs):
            if need not in found:
                out.append(Field(need, shape.free(need)))
                found[need] = shape.add(out[-1].label)
                hidden.append(found[need])
        tasks = []
        for name, field in made.items():
            attributes = tuple(shape.attributes[pick.label] for pick in plain if pick.name == name)
            tasks.append(Task(resource, field, attributes, {need: found[need] for need in field.needs}))
        return tuple(out), shape.spot(resource.name, tasks, hidden)

    def _pick(self, pick: Pick, resource: ResourceDef, shape: _Shape) -> Pick:
        if isinstance(pick, Follow):
            inner, spot = self.read(pick.read)
            shape.add(pick.label, spot, many=pick.read.take == "list")
            return replace(pick, read=inner)
        shape.add(pick.label, kind=bool if _made(pick, resource) else msgspec.Raw)
        return pick

    def _parts(self, parts: Sequence[Part], resource: ResourceDef) -> tuple[tuple[Part, ...], Spot | None]:
        shape = _Shape()
        out: list[Part] = []
        for part in parts:
            whole, spot = self._part(part, resource)
            shape.add(part.label, spot, many=True)
            out.append(whole)
        return tuple(out), shape.spot(resource.name + "Connection")

    def _part(self, part: Part, resource: ResourceDef) -> tuple[Part, Spot | None]:
        match part:
            case Nodes(label, pick):
                picks, spot = self._picks(pick, resource)
                return Nodes(label, picks), spot
            case Edges(label, parts):
                edges, spot = self._edge(parts, resource)
                return Edges(label, edges), spot
        return part, None

    def _edge(self, parts: Sequence[EdgePart], resource: ResourceDef) -> tuple[tuple[EdgePart, ...], Spot | None]:
        shape = _Shape()
        out = []
        for part in parts:
            pick, spot = self._picks(part.pick, resource)
            shape.add(part.label, spot)
            out.append(replace(part, pick=pick))
        return tuple(out), shape.spot(resource.name + "Edge")


def _made(pick: Pick, resource: ResourceDef) -> FieldDef | None:
    """The field that is picked, if Python computes it."""
    field = resource.fields.get(pick.name) if isinstance(pick, Field) else None
    return field if field is not None and field.python is not None else None
