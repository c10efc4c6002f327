"""The deprecated parts of the API that a request uses.

A request uses what it names: resources, relations that it follows, fields that it selects, filters, sorts, groups or
writes by, arguments, and values of enums. It does not use the fields that a response has because no selection was sent
(REST without `fields`), nor what rules read.

    { posts(where: {title: {eq: "x"}}) { id } }        Post.title, if that is deprecated
    GET /posts                                         nothing, unless Post is

What the shape of a request decides is found once, with its plan; values of enums are looked at in each request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from diptych.ask.nodes import Call, ConnectionPart, Field, Follow, Nodes, Pick, Read, Watch, Write
from diptych.ask.walk import cells, picks
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.model.defs import FieldDef, RelationDef, ResourceDef, Resources
from diptych.model.deprecation import Deprecated
from diptych.model.rules.expr import Col, Expr, Has, May, Measure, Via, leaves
from diptych.model.scalars import Scalar

AnyWish = Wish | WatchWish | CallWish | WriteWish


class Uses(Struct, frozen=True, eq=False):
    """The deprecated parts that all requests of a shape use, and the slots whose values may be deprecated."""

    always: tuple[Deprecated, ...]
    slots: tuple[tuple[int, Mapping[str, Deprecated]], ...] = ()

    def of(self, values: Sequence[Any]) -> tuple[Deprecated, ...]:
        """All of them, with these values of the request."""
        found = dict.fromkeys(self.always)
        for index, choices in self.slots:
            value = values[index]
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, str) and each in choices:
                    found[choices[each]] = None
        return tuple(found)


def uses_of(wish: AnyWish, resources: Resources) -> Uses | None:
    """The deprecated parts that requests of a shape use; None if there are none."""
    walk = _Walk(resources, implied=wish.implied)
    asks = wish.asks if isinstance(wish, Wish) else (wish.ask,)
    always = tuple(dict.fromkeys(found for ask in asks for found in walk.ask(ask)))
    slots = tuple((slot.index, choices) for slot in wish.slots if (choices := _choices(slot.scalar)))
    return Uses(always, slots) if always or slots else None


def _choices(scalar: Scalar) -> Mapping[str, Deprecated]:
    item = scalar.items or scalar
    return {choice: Deprecated(f"{item.name}.{choice}", each) for choice, each in item.deprecated.items()}


class _Walk:
    """Walks through an Ask and yields every deprecated part; with `implied`, its selection is the default one."""

    def __init__(self, resources: Resources, *, implied: bool) -> None:
        self.resources = resources
        self.implied = implied

    def ask(self, ask: Read | Write | Call | Watch) -> Iterator[Deprecated]:
        match ask:
            case Read():
                yield from self._read(ask)
            case Write():
                yield from self._write(ask)
            case Call():
                yield from self._call(ask)
            case Watch():
                resource = self.resources[ask.resource]
                yield from _own(resource)
                yield from self._expr(ask.where, resource)
                for part in ask.parts:
                    yield from self._picked(resource, part.pick)

    def _read(self, read: Read) -> Iterator[Deprecated]:
        resource = self.resources[read.resource]
        yield from _own(resource)
        yield from self._picked(resource, read.pick)
        grouped = () if read.groups is None else (*read.groups.by, read.groups.having)
        measured = (cell.of for cell in cells(read.pick)) if read.take in ("summary", "groups") else ()
        for expr in (read.where, *(key.by for key in read.order), *grouped, *measured):
            yield from self._expr(expr, resource)

    def _write(self, write: Write) -> Iterator[Deprecated]:
        resource = self.resources[write.resource]
        yield from _own(resource)
        for assign in write.values:
            yield from _field(resource, resource.fields[assign.name])
        for name in resource.unique_keys.get(write.key, ()):
            yield from _field(resource, resource.fields[name])
        if write.rows is not None:
            yield from self._expr(write.rows.where, resource)
        shown = (part for part in write.parts if isinstance(part, Nodes))
        yield from self._picked(resource, (*write.pick, *shown))

    def _call(self, call: Call) -> Iterator[Deprecated]:
        resource = self.resources[call.resource]
        definition = resource.call(call.name)
        yield from _own(resource)
        if definition.deprecated is not None and definition.deprecated is not resource.deprecated:
            yield Deprecated(f"{resource.name}.{definition.name}", definition.deprecated)
        sent = {assign.name for assign in call.values}
        for argument in definition.arguments:
            if argument.name in sent and argument.deprecated is not None:
                yield Deprecated(f"{resource.name}.{definition.name}.{argument.name}", argument.deprecated)
        if definition.result.resource:
            yield from self._picked(self.resources[definition.result.resource], call.pick)

    def _picked(self, resource: ResourceDef, parts: Iterable[Pick | ConnectionPart]) -> Iterator[Deprecated]:
        for part in picks(parts):
            match part:
                case Field(name) if not self.implied:
                    yield from _field(resource, resource.fields[name])
                case Follow(name):
                    yield from self._relation(resource, resource.relations[name])
                    yield from self._read(part.read)

    def _relation(self, resource: ResourceDef, relation: RelationDef) -> Iterator[Deprecated]:
        target = self.resources[relation.target]
        if relation.deprecated is not None and relation.deprecated is not target.deprecated:
            yield Deprecated(f"{resource.name}.{relation.name}", relation.deprecated)
        yield from _own(target)

    def _expr(self, expr: Expr, resource: ResourceDef) -> Iterator[Deprecated]:
        for part in leaves(expr):
            match part:
                case Col(path):
                    yield from self._path(path[:-1], resource, path[-1])
                case May(path):
                    yield from self._path(path, resource)
                case Has(name, where):
                    relation = resource.relations[name]
                    yield from self._relation(resource, relation)
                    yield from self._expr(where, self.resources[relation.target])
                case Via(name, of, where) | Measure(of=of, relation=name, where=where):
                    relation = resource.relations[name]
                    yield from self._relation(resource, relation)
                    for inner in (of, where):
                        yield from self._expr(inner, self.resources[relation.target])

    def _path(self, relations: tuple[str, ...], resource: ResourceDef, last: str = "") -> Iterator[Deprecated]:
        for name in relations:
            relation = resource.relations[name]
            yield from self._relation(resource, relation)
            resource = self.resources[relation.target]
        if last:
            yield from _field(resource, resource.fields[last])


def _own(resource: ResourceDef) -> Iterator[Deprecated]:
    if resource.deprecated is not None:
        yield Deprecated(resource.name, resource.deprecated)


def _field(resource: ResourceDef, field: FieldDef) -> Iterator[Deprecated]:
    if field.deprecated is not None:
        yield Deprecated(f"{resource.name}.{field.relation or field.name}", field.deprecated)
