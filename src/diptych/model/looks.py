"""What rules look at besides the row that they are about, and what a change alters of that.

A Place is a field of a resource, `("Post", "published")`, or with an empty name which rows there are, `("Post", "")`.
That a to-one relation leads to a row is no place: foreign keys see to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from diptych.model.defs import RelationDef, ResourceDef
from diptych.model.expr import Col, Expr, Has, May, leaves
from diptych.model.reach import reach

Place = tuple[str, str]
Resources = Mapping[str, ResourceDef]
_STAMPS = ("version", "updatedAt")
"""What every update alters."""
_FIXED = ("id", "createdAt")
"""What no change alters."""


def looks(expr: Expr, resource: ResourceDef, model: Resources) -> frozenset[Place]:
    """The places that an expression about a row looks at in other rows."""
    return frozenset(_Looks(model).beside(expr, resource))


def looked_at(model: Resources) -> frozenset[Place]:
    """All places that any rule of a model looks at from another row, whoever asks."""
    found: set[Place] = set()
    for resource in model.values():
        every = _Looks(model)
        for rule in resource.rules:
            found.update(every.beside(rule.expr, resource))
        readable = {each.target for each in resource.relations.values() if each.kind == "one"}
        for field in resource.fields.values():
            if field.computed is not None:
                found.update(every.beside(field.computed, resource))
                readable.update(reach(field.computed, resource, model))
        for name in readable:
            found.update(every.readable(model[name]))
    return frozenset(found)


def altered(verb: str, names: Iterable[str], resource: ResourceDef, model: Resources) -> Iterator[Place]:
    """The places that a change alters: of an update, those that it names; of a deletion, with all that goes along."""
    if verb in ("create", "delete"):
        yield resource.name, ""
    else:
        yield from ((resource.name, name) for name in (*names, *_STAMPS))
    if verb == "delete":
        yield from _along(resource.name, model, set())


def _along(gone: str, model: Resources, seen: set[str]) -> Iterator[Place]:
    """What the foreign keys to deleted rows delete or empty."""
    seen.add(gone)
    for other in model.values():
        for relation in other.relations.values():
            if (relation.kind, relation.target) != ("one", gone) or relation.on_delete == "restrict":
                continue
            if relation.on_delete == "set null":
                yield from altered("update", (relation.name + "Id",), other, model)
            elif other.name not in seen:
                yield other.name, ""
                yield from _along(other.name, model, seen)


class _Looks:
    def __init__(self, model: Resources) -> None:
        self.model = model
        self._read: set[str] = set()
        """The resources whose rules for reading were gone through."""

    def beside(self, expr: Expr, resource: ResourceDef) -> Iterator[Place]:
        """What an expression looks at, but for the fields of the row itself."""
        for part in leaves(expr):
            match part:
                case Col(path):
                    yield from self._column(path, resource, own=True)
                case May(path):
                    yield from self._may(path, resource, own=True)
                case Has():
                    yield from self._has(part, resource)

    def inside(self, expr: Expr, resource: ResourceDef) -> Iterator[Place]:
        """What an expression about another row looks at."""
        for part in leaves(expr):
            match part:
                case Col(path):
                    yield from self._column(path, resource, own=False)
                case May(path):
                    yield from self._may(path, resource, own=False)
                case Has(name):
                    if resource.relations[name].kind == "one":
                        yield resource.name, name + "Id"
                    yield from self._has(part, resource)

    def readable(self, resource: ResourceDef) -> Iterator[Place]:
        """What it depends on whether another row, or a field of it, can be read."""
        if resource.name not in self._read:
            self._read.add(resource.name)
            for rule in resource.rules:
                if "read" in rule.verbs:
                    yield from self.inside(rule.expr, resource)

    def _column(self, path: tuple[str, ...], resource: ResourceDef, *, own: bool) -> Iterator[Place]:
        step, *rest = path
        if rest:
            if not own:
                yield resource.name, step + "Id"
            yield from self._column(tuple(rest), self._target(resource.relations[step]), own=False)
            return
        computed = resource.fields[step].computed
        if computed is not None:
            yield from self.beside(computed, resource) if own else self.inside(computed, resource)
        elif not own and step not in _FIXED:
            yield resource.name, step

    def _may(self, path: tuple[str, ...], resource: ResourceDef, *, own: bool) -> Iterator[Place]:
        for step in path:
            if not own:
                yield resource.name, step + "Id"
            resource, own = self._target(resource.relations[step]), False
        yield from self.readable(resource)

    def _has(self, part: Has, resource: ResourceDef) -> Iterator[Place]:
        relation = resource.relations[part.relation]
        if relation.kind == "many":
            yield from ((relation.target, name) for name in ("", relation.inverse + "Id"))
        elif relation.kind == "through":
            names = ("", relation.link_mine + "Id", relation.link_theirs + "Id")
            yield from ((relation.link, name) for name in names)
            if part.link is not None:
                yield from self.inside(part.link, self.model[relation.link])
        yield from self.inside(part.where, self._target(relation))

    def _target(self, relation: RelationDef) -> ResourceDef:
        return self.model[relation.target]
