"""Reads `trash=`: the time for which a deleted row can be restored (soft delete).

    class Post(Resource, trash=timedelta(days=30))

A row that is not deleted never refers to a deleted one: `cascade` deletes rows along, `set null` takes the reference
away, and `restrict` refuses. So a class whose rows are deleted along needs a trash itself. What a rule or a computed
field looks for through a to-many relation is not deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from msgspec.structs import replace

from diptych.model.defs import DELETED_AT, FieldDef, RelationDef, ResourceDef
from diptych.model.naming import NameFault
from diptych.model.rules.expr import TRUE, Expr, Has, and_, rewrite
from diptych.model.scalars import DATETIME

LONGEST_TRASH = 3_650 * 86_400
"""Ten years."""

_FIELD = FieldDef(
    DELETED_AT,
    "deleted_at",
    "deleted_at",
    DATETIME,
    nullable=True,
    marks_deleted=True,
    description="When it was deleted; null if it was not.",
)


def trash_seconds(trash: object) -> int:
    """The time in seconds; 0 if there is none, or if it is not valid."""
    if not isinstance(trash, timedelta) or trash.microseconds:
        return 0
    seconds = trash.days * 86_400 + trash.seconds
    return seconds if 1 <= seconds <= LONGEST_TRASH else 0


def trash_fault(trash: object) -> NameFault | None:
    """The fault of the `trash` of a resource; None if it is valid or absent."""
    if trash is None or trash_seconds(trash):
        return None
    return f"trash={trash!r} is no time of whole seconds, up to ten years", "Write trash=timedelta(days=30)"


def deleted_at() -> FieldDef:
    """The field of a resource with a trash."""
    return _FIELD


def unkept(resources: Mapping[str, ResourceDef]) -> Iterator[tuple[ResourceDef, RelationDef, NameFault]]:
    """Relations whose rows would be deleted along with a row that can be restored, for good."""
    for resource in resources.values():
        for relation in resource.relations.values():
            target = resources.get(relation.target)
            deletes = relation.kind == "one" and relation.on_delete == "cascade"
            if deletes and target is not None and target.trash and not resource.trash:
                cause = f"a {target.name} can be restored, and what is deleted with it could not"
                yield resource, relation, (cause, f"Write class {resource.name}(Resource, trash=…)")


def hides_deleted(resource: ResourceDef, resources: Mapping[str, ResourceDef]) -> ResourceDef:
    """The resource with its rules and computed fields restricted to what is not deleted, and with the to-one relations
    that may lead from one deleted row to another, where they are null."""
    if not any(other.trash for other in resources.values()):
        return resource
    rules = tuple(replace(rule, expr=_present(rule.expr, resource, resources)) for rule in resource.rules)
    fields = {
        name: field
        if field.computed is None
        else replace(field, computed=_present(field.computed, resource, resources))
        for name, field in resource.fields.items()
    }
    relations = {
        name: replace(relation, hideable=True)
        if resource.trash and relation.kind == "one" and resources[relation.target].trash
        else relation
        for name, relation in resource.relations.items()
    }
    return replace(resource, rules=rules, fields=fields, relations=relations)


def _present(expr: Expr, resource: ResourceDef, resources: Mapping[str, ResourceDef]) -> Expr:
    def leaf(part: Expr) -> Expr | None:
        if not isinstance(part, Has):
            return None
        relation = resource.relations[part.relation]
        target = resources[relation.target]
        where = _present(part.where, target, resources)
        if relation.kind == "one":
            return replace(part, where=where)
        link = part.link
        if relation.link and resources[relation.link].trash:
            link = and_(TRUE if link is None else link, resources[relation.link].present)
        return replace(part, where=and_(where, target.present), link=link)

    return rewrite(expr, leaf)
