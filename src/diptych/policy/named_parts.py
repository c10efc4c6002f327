"""Walks over everything that an Ask names, resource by resource: what it picks, follows, filters, sorts and groups by.

    { posts(where: {author: {name: {eq: "x"}}}) { title } }        Post, Post.title, Post.author, User, User.name

A subclass says what is yielded for a resource, a field and a relation: `cache_age` the age of each, `deprecations` what
is deprecated. Rules are no part of an Ask that is walked here: the client does not know of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from diptych.ask.nodes import ConnectionPart, Field, Follow, Pick, Read
from diptych.ask.walk import group_values, picks
from diptych.model.defs import FieldDef, RelationDef, ResourceDef, Resources
from diptych.model.rules.expr import Col, Expr, Has, May, Measure, Via, leaves

T = TypeVar("T")


class NamedParts(Generic[T]):
    """The walk; it yields what `of_resource`, `of_field` and `of_relation` say, in the order of the Ask."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources

    def of_resource(self, resource: ResourceDef) -> Iterator[T]:
        raise NotImplementedError

    def of_field(self, resource: ResourceDef, field: FieldDef) -> Iterator[T]:
        raise NotImplementedError

    def of_picked(self, resource: ResourceDef, field: FieldDef) -> Iterator[T]:
        """The findings about a field that the response shows."""
        return self.of_field(resource, field)

    def of_relation(self, resource: ResourceDef, relation: RelationDef) -> Iterator[T]:
        """The findings about a relation, and about the resource at its end."""
        raise NotImplementedError

    def read(self, read: Read) -> Iterator[T]:
        resource = self.resources[read.resource]
        yield from self.rows(resource, read.pick)
        yield from self.expr(read.where, resource)
        for key in read.order:
            yield from self.expr(key.by, resource)
        if read.take in ("summary", "groups"):
            grouped = () if read.groups is None else (*read.groups.by, read.groups.having)
            for expr in (*(cell.of for cell in group_values(read.pick)), *grouped):
                yield from self.expr(expr, resource)

    def rows(self, resource: ResourceDef, parts: Iterable[Pick | ConnectionPart]) -> Iterator[T]:
        """The rows of a resource, and what is picked of them."""
        yield from self.of_resource(resource)
        yield from self.picked(resource, parts)

    def picked(self, resource: ResourceDef, parts: Iterable[Pick | ConnectionPart]) -> Iterator[T]:
        """What is picked of rows that were named before."""
        for part in picks(parts):
            match part:
                case Field(name):
                    yield from self.of_picked(resource, resource.fields[name])
                case Follow(name):
                    yield from self.of_relation(resource, resource.relations[name])
                    yield from self.read(part.read)

    def expr(self, expr: Expr, resource: ResourceDef) -> Iterator[T]:
        """What a condition, a sort key or a measure names."""
        for part in leaves(expr):
            match part:
                case Col(path):
                    yield from self._path(path[:-1], resource, path[-1])
                case May(path):
                    yield from self._path(path, resource)
                case Has(name, where):
                    yield from self._through(name, (where,), resource)
                case Via(name, of, where) | Measure(of=of, relation=name, where=where):
                    yield from self._through(name, (of, where), resource)

    def _through(self, name: str, inner: Iterable[Expr], resource: ResourceDef) -> Iterator[T]:
        relation = resource.relations[name]
        yield from self.of_relation(resource, relation)
        for expr in inner:
            yield from self.expr(expr, self.resources[relation.target])

    def _path(self, relations: tuple[str, ...], resource: ResourceDef, last: str = "") -> Iterator[T]:
        for name in relations:
            relation = resource.relations[name]
            yield from self.of_relation(resource, relation)
            resource = self.resources[relation.target]
        if last:
            yield from self.of_field(resource, resource.fields[last])
