"""The max-age of an answer: for how long shared caches may reuse it.

Answers are private unless the model says otherwise. It declares what is public, and the least public part of a request
decides: every resource that it reads, follows a relation to, filters or counts by, and every field of these that it
shows, filters or sorts by.

    class Post(Resource, public=60)       { posts { title } }                    60 s
    views: Annotated[int, Public(5)]      { posts(orderBy: {views: DESC}) { title } }   5 s
    class User(Resource)                  { posts { author { name } } }          never: User is not declared public

A computed field depends on all fields that it is computed from; one that depends on the current time is never public,
unless it says for how long: `@computed(public=5)`. Rules do not count: declaring a resource public says
for how long an answer may outlive the rule that allowed it. Only answers to anonymous viewers can be public.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from diptych.ask.nodes import Call, ConnectionPart, Field, Follow, Pick, Read
from diptych.ask.walk import cells, picks
from diptych.model.defs import FieldDef, QueryDef, RelationDef, ResourceDef, Resources
from diptych.model.rules.expr import Col, Expr, Has, May, Measure, Moment, Via, leaves
from diptych.model.view import View


class MaxAge(NamedTuple):
    """For how many seconds shared caches may keep an answer (0: never), and the part of it that decides."""

    seconds: int
    because: str


def max_age(asks: Iterable[Read], view: View) -> MaxAge:
    """The max-age of the answer to some Reads."""
    if view.signature.signed_in:
        return MaxAge(0, "it depends on the token")
    return _least(age for ask in asks for age in _Ages(view.model).read(ask))


def max_age_of_call(call: Call, view: View) -> MaxAge:
    """The max-age of the result of an action or a query of the model's own code."""
    if view.signature.signed_in:
        return MaxAge(0, "it depends on the token")
    definition = view.model[call.resource].call(call.name)
    if not isinstance(definition, QueryDef):
        return MaxAge(0, f"{call.resource}.{definition.attr} is an action")
    own = _declared(definition.public, f"{call.resource}.{definition.attr}")
    target = definition.result.resource
    ages = _Ages(view.model)
    return _least([own, *(ages.rows(target, call.pick) if target else ())])


def _least(ages: Iterable[MaxAge]) -> MaxAge:
    return min(ages, key=lambda age: age.seconds, default=MaxAge(0, "nothing is read"))


def _declared(seconds: int, name: str) -> MaxAge:
    return MaxAge(seconds, f"{name} is {'' if seconds else 'not '}declared public")


class _Ages:
    """Walks through an Ask and yields the age of every part."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    def read(self, read: Read) -> Iterator[MaxAge]:
        resource = self.resources[read.resource]
        yield from self.rows(read.resource, read.pick)
        for expr in (read.where, *(key.by for key in read.order)):
            yield from self._expr(expr, resource)
        if read.take in ("summary", "groups"):
            grouped = () if read.groups is None else (*read.groups.by, read.groups.having)
            for expr in (*(cell.of for cell in cells(read.pick)), *grouped):
                yield from self._expr(expr, resource)

    def rows(self, name: str, parts: Iterable[Pick | ConnectionPart]) -> Iterator[MaxAge]:
        """The ages of the rows of a resource, and of what is picked of them."""
        resource = self.resources[name]
        yield _declared(resource.public, name)
        for part in picks(parts):
            match part:
                case Field(name):
                    yield from self._field(resource.fields[name], resource)
                case Follow(name):
                    yield from self._relation(resource.relations[name], resource)
                    yield from self.read(part.read)

    def _field(self, field: FieldDef, resource: ResourceDef) -> Iterator[MaxAge]:
        if field.public is not None:
            yield MaxAge(field.public, f"{resource.name}.{field.name} says so")
        for need in field.needs:
            yield from self._field(resource.fields[need], resource)
        if field.computed is not None:
            if field.public is None and any(isinstance(part, Moment) for part in leaves(field.computed)):
                yield MaxAge(0, f"{resource.name}.{field.name} depends on the current time")
            yield from self._expr(field.computed, resource)

    def _relation(self, relation: RelationDef, resource: ResourceDef) -> Iterator[MaxAge]:
        """The ages of a relation: of the resource it leads to, and of the foreign keys that it reveals."""
        target = self.resources[relation.target]
        yield _declared(target.public, target.name)
        if relation.kind == "one":
            if (key := resource.fields.get(relation.name + "Id")) is not None:  # the viewer has none
                yield from self._field(key, resource)
        elif relation.kind == "many":
            yield from self._field(target.fields[relation.inverse + "Id"], target)
        else:
            link = self.resources[relation.link]
            yield _declared(link.public, link.name)
            for end in (relation.link_mine, relation.link_theirs):
                yield from self._field(link.fields[end + "Id"], link)

    def _expr(self, expr: Expr, resource: ResourceDef) -> Iterator[MaxAge]:
        for part in leaves(expr):
            match part:
                case Col(path):
                    yield from self._path(path[:-1], resource, path[-1])
                case May(path):
                    yield from self._path(path, resource)
                case Has(name, where):
                    relation = resource.relations[name]
                    yield from self._relation(relation, resource)
                    yield from self._expr(where, self.resources[relation.target])
                case Via(name, of) | Measure(of=of, relation=name):
                    relation = resource.relations[name]
                    yield from self._relation(relation, resource)
                    yield from self._expr(of, self.resources[relation.target])

    def _path(self, relations: tuple[str, ...], resource: ResourceDef, last: str = "") -> Iterator[MaxAge]:
        for name in relations:
            relation = resource.relations[name]
            yield from self._relation(relation, resource)
            resource = self.resources[relation.target]
        if last:
            yield from self._field(resource.fields[last], resource)
