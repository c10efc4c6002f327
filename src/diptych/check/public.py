"""May anyone keep it: for how long shared caches may answer with what was asked, in place of the service.

Private is the rule. A model declares what is public, and the least public part of a request decides: every resource
that it reads, follows a relation to, filters or counts by, and every field of them that it shows, filters or sorts by.

    class Post(Resource, public=60)       { posts { title } }                    60 s
    views: Annotated[int, Public(5)]      { posts(orderBy: {views: DESC}) { title } }   5 s
    class User(Resource)                  { posts { author { name } } }          never: User is not declared public

A computed field depends on all that it is made of. Rules are no part of it: whoever declares a resource public says for
how long an answer may outlive the rule that allowed it. Only what an anonymous viewer is told can be public at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from diptych.ask.nodes import Call, EdgePart, Edges, Field, Follow, Nodes, Part, Pick, Read
from diptych.model.defs import FieldDef, QueryDef, RelationDef, ResourceDef
from diptych.model.expr import Col, Expr, Has, May, leaves
from diptych.model.view import View

Resources = Mapping[str, ResourceDef]


class Age(NamedTuple):
    """For how many seconds anyone may keep an answer, and which part of it allows no more; 0 is never."""

    seconds: int
    because: str


def age_of(asks: Iterable[Read], view: View) -> Age:
    """The age of the answer to some Asks."""
    if view.signature.signed_in:
        return Age(0, "it is for whoever has the token")
    return _least(each for ask in asks for each in _Ages(view.model).read(ask))


def age_of_call(call: Call, view: View) -> Age:
    """The same of what code of the model's own gives."""
    if view.signature.signed_in:
        return Age(0, "it is for whoever has the token")
    definition = view.model[call.resource].call(call.name)
    if not isinstance(definition, QueryDef):
        return Age(0, f"{call.resource}.{definition.attr} is an action")
    own = _said(definition.public, f"{call.resource}.{definition.attr}")
    target = definition.result.resource
    ages = _Ages(view.model)
    return _least([own, *(ages.rows(target, call.pick) if target else ())])


def _least(ages: Iterable[Age]) -> Age:
    return min(ages, key=lambda age: age.seconds, default=Age(0, "nothing is read"))


def _said(seconds: int, name: str) -> Age:
    return Age(seconds, f"{name} is {'' if seconds else 'not '}declared public")


class _Ages:
    """Walks through an Ask, and tells the age of every part of it."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    def read(self, read: Read) -> Iterator[Age]:
        resource = self.resources[read.resource]
        yield from self.rows(read.resource, read.pick)
        for expr in (read.where, *(key.by for key in read.order)):
            yield from self._expr(expr, resource)

    def rows(self, name: str, parts: Iterable[Pick | Part | EdgePart]) -> Iterator[Age]:
        """The rows of a resource, and what is picked of them."""
        resource = self.resources[name]
        yield _said(resource.public, name)
        for part in parts:
            yield from self._part(part, resource)

    def _part(self, part: Pick | Part | EdgePart, resource: ResourceDef) -> Iterator[Age]:
        match part:
            case Field(name):
                yield from self._field(resource.fields[name], resource)
            case Follow(name):
                yield from self._way(resource.relations[name], resource)
                yield from self.read(part.read)
            case Nodes(pick=inner) | Edges(parts=inner) | EdgePart(pick=inner):
                for each in inner:
                    yield from self._part(each, resource)

    def _field(self, field: FieldDef, resource: ResourceDef) -> Iterator[Age]:
        if field.public is not None:
            yield Age(field.public, f"{resource.name}.{field.name} says so")
        for need in field.needs:
            yield from self._field(resource.fields[need], resource)
        if field.computed is not None:
            yield from self._expr(field.computed, resource)

    def _way(self, relation: RelationDef, resource: ResourceDef) -> Iterator[Age]:
        """A relation tells which rows belong together, as the fields do in which that is kept; and leads to a row."""
        target = self.resources[relation.target]
        yield _said(target.public, target.name)
        if relation.kind == "one":
            yield from self._field(resource.fields[relation.name + "Id"], resource)
        elif relation.kind == "many":
            yield from self._field(target.fields[relation.inverse + "Id"], target)
        else:
            link = self.resources[relation.link]
            yield _said(link.public, link.name)
            for end in (relation.link_mine, relation.link_theirs):
                yield from self._field(link.fields[end + "Id"], link)

    def _expr(self, expr: Expr, resource: ResourceDef) -> Iterator[Age]:
        for part in leaves(expr):
            match part:
                case Col(path):
                    yield from self._path(path[:-1], resource, path[-1])
                case May(path):
                    yield from self._path(path, resource)
                case Has(name, where):
                    relation = resource.relations[name]
                    yield from self._way(relation, resource)
                    yield from self._expr(where, self.resources[relation.target])

    def _path(self, ways: tuple[str, ...], resource: ResourceDef, last: str = "") -> Iterator[Age]:
        for name in ways:
            relation = resource.relations[name]
            yield from self._way(relation, resource)
            resource = self.resources[relation.target]
        if last:
            yield from self._field(resource.fields[last], resource)
