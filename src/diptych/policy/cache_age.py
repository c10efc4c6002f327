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

from diptych.ask.nodes import Call, Read
from diptych.model.call_defs import QueryDef
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.rules.expr import Moment, leaves
from diptych.model.view import View
from diptych.policy.named_parts import NamedParts


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
    return _least([own, *(ages.rows(view.model[target], call.pick) if target else ())])


def _least(ages: Iterable[MaxAge]) -> MaxAge:
    return min(ages, key=lambda age: age.seconds, default=MaxAge(0, "nothing is read"))


def _declared(seconds: int, name: str) -> MaxAge:
    return MaxAge(seconds, f"{name} is {'' if seconds else 'not '}declared public")


class _Ages(NamedParts[MaxAge]):
    """The age of every part that an Ask names."""

    def of_resource(self, resource: ResourceDef) -> Iterator[MaxAge]:
        yield _declared(resource.public, resource.name)

    def of_field(self, resource: ResourceDef, field: FieldDef) -> Iterator[MaxAge]:
        if field.public is not None:
            yield MaxAge(field.public, f"{resource.name}.{field.name} says so")
        for need in field.needs:
            yield from self.of_field(resource, resource.fields[need])
        if field.computed is not None:
            if field.public is None and any(isinstance(part, Moment) for part in leaves(field.computed)):
                yield MaxAge(0, f"{resource.name}.{field.name} depends on the current time")
            yield from self.expr(field.computed, resource)

    def of_relation(self, resource: ResourceDef, relation: RelationDef) -> Iterator[MaxAge]:
        """The ages of a relation: of the resource it leads to, and of the foreign keys that it reveals."""
        target = self.resources[relation.target]
        yield _declared(target.public, target.name)
        if relation.kind == "one":
            if (key := resource.fields.get(relation.name + "Id")) is not None:  # the viewer has none
                yield from self.of_field(resource, key)
        elif relation.past:  # versions are never cached
            yield _declared(target.public, target.name)
        elif relation.kind == "many":
            yield from self.of_field(target, target.fields[relation.inverse + "Id"])
        else:
            link = self.resources[relation.link]
            yield _declared(link.public, link.name)
            for end in (relation.link_mine, relation.link_theirs):
                yield from self.of_field(link, link.fields[end + "Id"])
