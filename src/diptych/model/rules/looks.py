"""Dependencies of rules on other rows: the fields that an expression reads there, and the fields that a write changes.

A FieldRef names a field of a resource, `("Post", "published")`, or, with an empty name, the existence of its rows.
The existence of the row of a to-one relation is no dependency: foreign keys ensure it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diptych.model.defs import DELETED_AT, RelationDef, ResourceDef, Resources
from diptych.model.reach import reach
from diptych.model.rules.expr import Col, Expr, Has, May, leaves

FieldRef = tuple[str, str]
_STAMPS = ("version", "updatedAt")
"""The fields that every update changes."""
_WHOLE = ("delete", "restore", "purge")
"""The verbs by which a row goes or comes back, with those that are deleted along."""
_FIXED = ("id", "createdAt")
"""The fields that no write changes."""


def looks(expr: Expr, resource: ResourceDef, model: Resources) -> frozenset[FieldRef]:
    """The fields of other rows that an expression reads."""
    return frozenset(_Dependencies(model).beside(expr, resource))


def looked_at(model: Resources) -> frozenset[FieldRef]:
    """The fields of other rows that any rule of a model reads, for any viewer."""
    refs: set[FieldRef] = set()
    for resource in model.values():
        dependencies = _Dependencies(model)
        for rule in resource.rules:
            refs.update(dependencies.beside(rule.expr, resource))
        readable = {relation.target for relation in resource.relations.values() if relation.kind == "one"}
        for field in resource.fields.values():
            if field.computed is not None:
                refs.update(dependencies.beside(field.computed, resource))
                readable.update(reach(field.computed, resource, model))
        for name in readable:
            refs.update(dependencies.readable(model[name]))
    return frozenset(refs)


def altered(verb: str, names: Iterable[str], resource: ResourceDef, model: Resources) -> Iterator[FieldRef]:
    """The fields that a write changes; for a deletion, with those that cascade."""
    if verb in ("create", *_WHOLE):
        yield from _existence(resource)
    else:
        yield from ((resource.name, name) for name in (*names, *_STAMPS))
    if verb in _WHOLE:
        yield from _cascade(resource.name, model, set())


def _existence(resource: ResourceDef) -> Iterator[FieldRef]:
    """What changes when a row comes or goes."""
    yield resource.name, ""
    if resource.trash:
        yield resource.name, DELETED_AT


def _cascade(deleted: str, model: Resources, seen: set[str]) -> Iterator[FieldRef]:
    """The fields that `on delete` of foreign keys to deleted rows changes."""
    seen.add(deleted)
    for other in model.values():
        for relation in other.relations.values():
            if (relation.kind, relation.target) != ("one", deleted) or relation.on_delete == "restrict":
                continue
            if relation.on_delete == "set null":
                yield from altered("update", _keys(other, relation.name), other, model)
            elif other.name not in seen:
                yield from _existence(other)
                yield from _cascade(other.name, model, seen)


def _keys(resource: ResourceDef, relation: str) -> tuple[str, ...]:
    """The fields by which a to-one relation refers to a row."""
    key = resource.fields.get(relation + "Id")
    if key is None or key.computed is None:
        return (relation + "Id",)
    return tuple(part.path[0] for part in leaves(key.computed) if isinstance(part, Col))


class _Dependencies:
    def __init__(self, model: Resources) -> None:
        self.model = model
        self._read: set[str] = set()
        """The resources whose read rules were visited."""

    def beside(self, expr: Expr, resource: ResourceDef, *, own: bool = True) -> Iterator[FieldRef]:
        """The fields that an expression reads; without those of the row itself, if it is about its `own` row."""
        for part in leaves(expr):
            match part:
                case Col(path):
                    yield from self._column(path, resource, own=own)
                case May(path):
                    yield from self._may(path, resource, own=own)
                case Has(name):
                    if not own and resource.relations[name].kind == "one":
                        yield from ((resource.name, key) for key in _keys(resource, name))
                    yield from self._has(part, resource)

    def inside(self, expr: Expr, resource: ResourceDef) -> Iterator[FieldRef]:
        """The fields that an expression over another row reads, including those of that row."""
        return self.beside(expr, resource, own=False)

    def readable(self, resource: ResourceDef) -> Iterator[FieldRef]:
        """The fields on which the readability of another row, or of its fields, depends."""
        if resource.name not in self._read:
            self._read.add(resource.name)
            for rule in resource.rules:
                if "read" in rule.verbs:
                    yield from self.inside(rule.expr, resource)

    def _column(self, path: tuple[str, ...], resource: ResourceDef, *, own: bool) -> Iterator[FieldRef]:
        step, *rest = path
        if rest:
            if not own:
                yield from ((resource.name, key) for key in _keys(resource, step))
            yield from self._column(tuple(rest), self._target(resource.relations[step]), own=False)
            return
        computed = resource.fields[step].computed
        if computed is not None:
            yield from self.beside(computed, resource) if own else self.inside(computed, resource)
        elif not own and step not in _FIXED:
            yield resource.name, step

    def _may(self, path: tuple[str, ...], resource: ResourceDef, *, own: bool) -> Iterator[FieldRef]:
        for step in path:
            if not own:
                yield from ((resource.name, key) for key in _keys(resource, step))
            resource, own = self._target(resource.relations[step]), False
        yield from self.readable(resource)

    def _has(self, part: Has, resource: ResourceDef) -> Iterator[FieldRef]:
        relation = resource.relations[part.relation]
        if relation.kind == "many":
            keys = _keys(self._target(relation), relation.inverse)
            yield from ((relation.target, name) for name in ("", *keys))
        elif relation.kind == "through":
            link = self.model[relation.link]
            names = (*_keys(link, relation.link_mine), *_keys(link, relation.link_theirs))
            yield from ((relation.link, name) for name in ("", *names))
            if part.link is not None:
                yield from self.inside(part.link, self.model[relation.link])
        yield from self.inside(part.where, self._target(relation))

    def _target(self, relation: RelationDef) -> ResourceDef:
        return self.model[relation.target]
