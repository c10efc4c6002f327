"""The deprecated parts of the API that a request uses.

A request uses what it names: resources, relations that it follows, fields that it selects, filters, sorts, groups or
writes by, arguments, and values of enums. It does not use the fields that a response has because no selection was sent
(REST without `fields`), nor what rules read.

    { posts(where: {title: {eq: "x"}}) { id } }        Post.title, if that is deprecated
    GET /posts                                         nothing, unless Post is

What the shape of a request decides is found once, with its plan; values of enums are looked at in each request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from diptych.ask.nodes import Call, Nodes, Read, Watch, Write
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.model.defs import FieldDef, RelationDef, ResourceDef, Resources
from diptych.model.deprecation import Deprecated
from diptych.model.scalars import Scalar
from diptych.policy.named_parts import NamedParts

AnyWish = Wish | WatchWish | CallWish | WriteWish


class Uses(Struct, frozen=True, eq=False):
    """The deprecated parts that all requests of a shape use, and the slots whose values may be deprecated."""

    always: tuple[Deprecated, ...]
    slots: tuple[tuple[int, Mapping[str, Deprecated]], ...] = ()

    def of(self, values: Sequence[Any]) -> tuple[Deprecated, ...]:
        """All deprecated parts of the API that a request uses with these values."""
        found = dict.fromkeys(self.always)
        for index, choices in self.slots:
            value = values[index]
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, str) and item in choices:
                    found[choices[item]] = None
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


class _Walk(NamedParts[Deprecated]):
    """Every deprecated part that an Ask names; with `implied`, its selection is the default one."""

    def __init__(self, resources: Resources, *, implied: bool) -> None:
        super().__init__(resources)
        self.implied = implied

    def of_resource(self, resource: ResourceDef) -> Iterator[Deprecated]:
        if resource.deprecated is not None:
            yield Deprecated(resource.name, resource.deprecated)

    def of_field(self, resource: ResourceDef, field: FieldDef) -> Iterator[Deprecated]:
        if field.deprecated is not None:
            yield Deprecated(f"{resource.name}.{field.relation or field.name}", field.deprecated)

    def of_picked(self, resource: ResourceDef, field: FieldDef) -> Iterator[Deprecated]:
        return iter(()) if self.implied else self.of_field(resource, field)

    def of_relation(self, resource: ResourceDef, relation: RelationDef) -> Iterator[Deprecated]:
        target = self.resources[relation.target]
        if relation.deprecated is not None and relation.deprecated is not target.deprecated:
            yield Deprecated(f"{resource.name}.{relation.name}", relation.deprecated)
        yield from self.of_resource(target)

    def ask(self, ask: Read | Write | Call | Watch) -> Iterator[Deprecated]:
        match ask:
            case Read():
                yield from self.read(ask)
            case Write():
                yield from self._write(ask)
            case Call():
                yield from self._call(ask)
            case Watch():
                resource = self.resources[ask.resource]
                yield from self.of_resource(resource)
                yield from self.expr(ask.where, resource)
                for part in ask.parts:
                    yield from self.picked(resource, part.pick)

    def _write(self, write: Write) -> Iterator[Deprecated]:
        resource = self.resources[write.resource]
        for assign in write.values:
            yield from self.of_field(resource, resource.fields[assign.name])
        for name in resource.unique_keys.get(write.key, ()):
            yield from self.of_field(resource, resource.fields[name])
        if write.rows is not None:
            yield from self.expr(write.rows.where, resource)
        shown = (part for part in write.parts if isinstance(part, Nodes))
        yield from self.rows(resource, (*write.pick, *shown))

    def _call(self, call: Call) -> Iterator[Deprecated]:
        resource = self.resources[call.resource]
        definition = resource.call(call.name)
        yield from self.of_resource(resource)
        if definition.deprecated is not None and definition.deprecated is not resource.deprecated:
            yield Deprecated(f"{resource.name}.{definition.name}", definition.deprecated)
        sent = {assign.name for assign in call.values}
        for argument in definition.arguments:
            if argument.name in sent and argument.deprecated is not None:
                yield Deprecated(f"{resource.name}.{definition.name}.{argument.name}", argument.deprecated)
        if definition.result.resource:
            yield from self.picked(self.resources[definition.result.resource], call.pick)
