"""The resources that an expression reads. A rule that can query the table of its own row sees a change of that row only
after it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diptych.model.defs import ResourceDef
from diptych.model.rules.expr import Col, Expr, Has, May, leaves


def reach(expr: Expr, resource: ResourceDef, model: Mapping[str, ResourceDef]) -> Iterator[str]:
    """The resources whose rows an expression reads, besides its own row."""
    for part in leaves(expr):
        if isinstance(part, Col):
            yield from _along(part.path, resource, model)
        elif isinstance(part, Has):
            relation = resource.relations[part.relation]
            yield relation.target
            if relation.link:
                yield relation.link
            yield from reach(part.where, model[relation.target], model)


def read_first(expr: Expr, resource: ResourceDef, model: Mapping[str, ResourceDef]) -> Iterator[str]:
    """The resources that an expression tests by `may_read`."""
    for part in leaves(expr):
        if isinstance(part, May):
            target = resource
            for step in part.path:
                target = model[target.relations[step].target]
            yield target.name
        elif isinstance(part, Has):
            yield from read_first(part.where, model[resource.relations[part.relation].target], model)


def _along(path: tuple[str, ...], resource: ResourceDef, model: Mapping[str, ResourceDef]) -> Iterator[str]:
    for step in path[:-1]:
        resource = model[resource.relations[step].target]
        yield resource.name
    computed = resource.fields[path[-1]].computed
    if computed is not None:
        yield from reach(computed, resource, model)
