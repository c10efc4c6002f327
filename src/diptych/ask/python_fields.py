"""Extract the fields that Python computes from a Read: what is left to the database, and what Python adds.

A field that Python computes has no SQL. Instead, the database returns whether it is visible on the row, and the fields
that it needs are picked too, under hidden labels. PythonFields says where all of that is in the answer:

    { posts { title minutes } }                           minutes needs body

    Read("Post", "list", (Field("title", "title"), Field("minutes", "minutes"), Field("body", "__body")))

    [{"title":"x","minutes":true,"__body":"…"}]

The answer is decoded into structs in which every value that Python does not touch stays raw bytes. Rules are added to
the Read afterwards, so they hold for the needed fields as for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import GenericAlias
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from diptych.ask.nodes import ChangePart, ConnectionPart, EdgePart, Edges, Field, Follow, Nodes, Pick, Read, Watch
from diptych.ask.walk import picks, reads
from diptych.model.defs import FieldDef, ResourceDef, Resources


class PythonField(Struct, frozen=True, eq=False):
    """A field that Python computes for the objects of one shape.

    `attributes` receive its value (before, they hold whether the field is visible); `needs` maps the name of each
    needed field to the attribute that holds it.
    """

    resource: ResourceDef
    field: FieldDef
    attributes: tuple[str, ...]
    needs: Mapping[str, str]


class ObjectShape(Struct, frozen=True, eq=False):
    """The objects at one path of an answer: their struct, and the fields to compute."""

    kind: Any
    tasks: tuple[PythonField, ...]
    hidden: tuple[str, ...]
    """The attributes that were not requested, to be removed again."""
    below: tuple[tuple[str, bool, ObjectShape], ...]
    """The nested shapes: the attribute, whether it holds a list (else one object or null), and the shape."""


class PythonFields(Struct, frozen=True, eq=False):
    """The fields that Python computes in the answer to a Read: a list, or one object."""

    spot: ObjectShape
    many: bool
    decoder: msgspec.json.Decoder[Any]

    def tasks(self) -> Iterator[PythonField]:
        """All fields to compute, outer before inner."""
        spots = [self.spot]
        while spots:
            spot = spots.pop(0)
            yield from spot.tasks
            spots += [inner for *_, inner in spot.below]


def extract(read: Read, resources: Resources) -> tuple[Read, PythonFields | None]:
    """The Read for the database, and the fields that Python computes; None if there are none."""
    if not any(
        _python_field(pick, resources[inner.resource]) for inner in reads((read,)) for pick in picks(inner.pick)
    ):
        return read, None
    whole, spot = _Extractor(resources).read(read)
    if spot is None:
        return read, None
    many = read.take in ("list", "each")
    kind = GenericAlias(list, (spot.kind | None,)) if read.take == "each" else _held(spot, many)
    return whole, PythonFields(spot, many, msgspec.json.Decoder(kind))


def extract_watch(watch: Watch, resources: Resources) -> tuple[Watch, tuple[PythonFields | None, ...]]:
    """The Watch for the database, and the fields that Python computes, for each part that shows the row."""
    parts: list[ChangePart] = []
    todo: list[PythonFields | None] = []
    for part in watch.parts:
        if part.what != "row":
            parts.append(part)
            continue
        whole, rest = extract(Read(watch.resource, "one", part.pick), resources)
        parts.append(replace(part, pick=cast("tuple[Pick, ...]", whole.pick)))
        todo.append(rest)
    return replace(watch, parts=tuple(parts)), tuple(todo)


def _held(spot: ObjectShape, many: bool) -> Any:
    """The type of a value that holds objects of a shape."""
    return GenericAlias(list, (spot.kind,)) if many else spot.kind | None


class _ShapeBuilder:
    """Builds the struct of an object: one attribute for each member, whatever its label is."""

    def __init__(self) -> None:
        self.attributes: dict[str, str] = {}
        self.below: list[tuple[str, bool, ObjectShape]] = []
        self._members: list[tuple[str, Any, Any]] = []

    def add(self, label: str, spot: ObjectShape | None = None, many: bool = False, kind: Any = msgspec.Raw) -> str:
        """Add a member that holds objects of a shape, or a value that stays raw; returns its attribute."""
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

    def spot(self, name: str, tasks: Sequence[PythonField] = (), hidden: Sequence[str] = ()) -> ObjectShape | None:
        """The finished shape; None if there is nothing to compute in it or below."""
        if not tasks and not self.below:
            return None
        kind = msgspec.defstruct(name, self._members)
        return ObjectShape(kind, tuple(tasks), tuple(hidden), tuple(self.below))


class _Extractor:
    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    def read(self, read: Read) -> tuple[Read, ObjectShape | None]:
        resource = self.resources[read.resource]
        pick: tuple[Pick | ConnectionPart, ...]
        if read.take == "page":
            pick, spot = self._parts(cast("tuple[ConnectionPart, ...]", read.pick), resource)
        else:
            pick, spot = self._picks(cast("tuple[Pick, ...]", read.pick), resource)
        return replace(read, pick=pick), spot

    def _picks(self, picks: Sequence[Pick], resource: ResourceDef) -> tuple[tuple[Pick, ...], ObjectShape | None]:
        """The picks of a row, followed by the needed fields that were not picked."""
        shape = _ShapeBuilder()
        out = [self._pick(pick, resource, shape) for pick in picks]
        plain = [pick for pick in picks if isinstance(pick, Field)]
        computed = {pick.name: field for pick in plain if (field := _python_field(pick, resource))}
        attribute_of = {pick.name: shape.attributes[pick.label] for pick in plain if pick.inside is None}
        hidden = []
        for need in dict.fromkeys(need for field in computed.values() for need in field.needs):
            if need not in attribute_of:
                out.append(Field(need, shape.free(need)))
                attribute_of[need] = shape.add(out[-1].label)
                hidden.append(attribute_of[need])
        tasks = []
        for name, field in computed.items():
            attributes = tuple(shape.attributes[pick.label] for pick in plain if pick.name == name)
            tasks.append(PythonField(resource, field, attributes, {need: attribute_of[need] for need in field.needs}))
        return tuple(out), shape.spot(resource.name, tasks, hidden)

    def _pick(self, pick: Pick, resource: ResourceDef, shape: _ShapeBuilder) -> Pick:
        if isinstance(pick, Follow):
            inner, spot = self.read(pick.read)
            shape.add(pick.label, spot, many=pick.read.take == "list")
            return replace(pick, read=inner)
        shape.add(pick.label, kind=bool if _python_field(pick, resource) else msgspec.Raw)
        return pick

    def _parts(
        self, parts: Sequence[ConnectionPart], resource: ResourceDef
    ) -> tuple[tuple[ConnectionPart, ...], ObjectShape | None]:
        shape = _ShapeBuilder()
        out: list[ConnectionPart] = []
        for part in parts:
            whole, spot = self._part(part, resource)
            shape.add(part.label, spot, many=True)
            out.append(whole)
        return tuple(out), shape.spot(resource.name + "Connection")

    def _part(self, part: ConnectionPart, resource: ResourceDef) -> tuple[ConnectionPart, ObjectShape | None]:
        match part:
            case Nodes(label, pick):
                picks, spot = self._picks(pick, resource)
                return Nodes(label, picks), spot
            case Edges(label, parts):
                edges, spot = self._edge(parts, resource)
                return Edges(label, edges), spot
        return part, None

    def _edge(
        self, parts: Sequence[EdgePart], resource: ResourceDef
    ) -> tuple[tuple[EdgePart, ...], ObjectShape | None]:
        shape = _ShapeBuilder()
        out = []
        for part in parts:
            pick, spot = self._picks(part.pick, resource)
            shape.add(part.label, spot)
            out.append(replace(part, pick=pick))
        return tuple(out), shape.spot(resource.name + "Edge")


def _python_field(pick: Pick | ConnectionPart, resource: ResourceDef) -> FieldDef | None:
    """The picked field, if Python computes it."""
    field = resource.fields.get(pick.name) if isinstance(pick, Field) else None
    return field if field is not None and field.python is not None else None
