"""Reads relations: a parsed annotation → RelationDef, then `link_relations` resolves inverses and linking resources.

author: User                                      one       this row's author_id holds the id
posts: list[Post] = inverse("author")             many      a Post's author_id holds this row's id
tags: list[Tag] = through("PostTag", "post", "tag")  through   a PostTag holds both
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from msgspec.structs import replace

from diptych.model.declare import markers as mark
from diptych.model.declare.declared import MISSING, FromViewer, Inverse, Through
from diptych.model.declare.deprecated import DeprecatedMark
from diptych.model.declare.resource import Resource, VerbGrant
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.naming import camel
from diptych.model.read.annotations import Annotation, Wrong, check_markers, check_use
from diptych.model.read.fields import column_of, key_scalar, of_viewer
from diptych.model.rules.expr import Col, KeyText
from diptych.model.scalars import ID, TEXT_ID

_ON_A_RELATION = (
    *(mark.OnDelete, mark.ReadBy, mark.WriteBy, mark.Unique, mark.Index, mark.Weight, mark.Public),
    mark.Column,
    mark.Columns,
    mark.RenamedFrom,
    DeprecatedMark,
)
_ON_MANY = (mark.Weight, DeprecatedMark)


def read_relation(
    line: Annotation, target: str, restricted: frozenset[str], wrong: Wrong
) -> tuple[FieldDef, RelationDef]:
    """A to-one relation: the field of its key, and the relation. (The key's type is set by `link_relations`.)"""
    _check_one(line, target, wrong)
    on_delete = line.marker(mark.OnDelete) or mark.OnDelete("restrict")
    read_by = line.roles(mark.ReadBy)
    hideable = read_by is not None or line.attr in restricted
    name = camel(line.attr)
    from_viewer = isinstance(line.default, FromViewer)
    several = line.marker(mark.Columns)
    field = FieldDef(
        name=name + "Id",
        attr=line.attr + "_id",
        column="" if several else column_of(line, line.attr + "_id"),
        scalar=ID,
        nullable=line.optional,
        hideable=hideable,
        required=not (line.optional or from_viewer or several),
        generated="viewer" if from_viewer else "",
        of_viewer=of_viewer(line, ID, wrong),
        unique=line.marker(mark.Unique) is not None,
        indexed=True,
        read_roles=read_by,
        write_roles=line.roles(mark.WriteBy),
        relation=name,
        public=line.public,
        description=f"The id of `{name}`.",
        deprecated=line.deprecated,
        renamed_from=line.renamed_from and line.renamed_from + "_id",
    )
    return field, RelationDef(
        name=name,
        attr=line.attr,
        kind="one",
        target=target,
        column=field.column,
        columns=several.names if several else (),
        nullable=line.optional,
        hideable=hideable,
        on_delete=on_delete.do,
        weight=line.weight,
        description=line.description,
        deprecated=line.deprecated,
    )


def _check_one(line: Annotation, target: str, wrong: Wrong) -> None:
    check_markers(line, wrong)
    check_use(line, _ON_A_RELATION, "a relation", wrong)
    if line.marker(mark.Index):
        wrong("a relation has an index already", "Remove Index()")
    if isinstance(line.default, Inverse | Through):
        wrong("a relation to one cannot be an inverse", f"Write list[{target}], or remove the default")
    elif not (
        line.default is MISSING or isinstance(line.default, FromViewer) or (line.default is None and line.optional)
    ):
        cause = "a relation cannot have a default, other than from_viewer(), or None if it is optional"
        wrong(cause, "Remove the default")
    on_delete = line.marker(mark.OnDelete)
    if on_delete is not None and on_delete.do == "set null" and not line.optional:
        wrong('OnDelete("set null") on a relation that must not be null', f"Declare it as {target} | None")


def read_list(line: Annotation, classes: Mapping[str, type[Resource]], wrong: Wrong) -> RelationDef | None:
    """A to-many relation; `inverse` and `through` are resolved by `link_relations`."""
    (item,) = get_args(line.type) or (None,)
    if isinstance(item, type) and issubclass(item, Resource) and item not in classes.values():
        wrong(f"{item.__name__} is not in the model", f"Add it: Model(…, {item.__name__})")
        return None
    if item not in classes.values():
        wrong("a list can only hold resources", "Write list[Post] = inverse(…), or Json for plain lists")
        return None
    declared = line.default
    if not isinstance(declared, Inverse | Through):
        wrong(
            "a list of resources does not say how they are related",
            'Write = inverse("author"), or = through("PostTag", "post", "tag")',
        )
        return None
    check_markers(line, wrong)
    if line.optional or any(not isinstance(marker, _ON_MANY) and marker is not mark.Weight for marker in line.markers):
        fix = "Remove them; only Weight and deprecated are allowed there"
        wrong("markers and None mean nothing on a to-many relation", fix)
    empty = RelationDef(
        camel(line.attr),
        line.attr,
        "many",
        item.__name__,
        column="",
        weight=line.weight,
        description=line.description,
        deprecated=line.deprecated,
    )
    if isinstance(declared, Inverse):
        return replace(empty, inverse=declared.field)
    return replace(empty, kind="through", link=declared.link, link_mine=declared.mine, link_theirs=declared.theirs)


Report = Callable[[ResourceDef, str, str, str], None]


def link_relations(resources: Mapping[str, ResourceDef], wrong: Report) -> dict[str, ResourceDef]:
    """The resources with every relation resolved, and the type of every key set."""
    return {name: _link(resource, resources, wrong) for name, resource in resources.items()}


def _link(resource: ResourceDef, resources: Mapping[str, ResourceDef], wrong: Report) -> ResourceDef:
    relations: dict[str, RelationDef] = {}
    for name, relation in resource.relations.items():
        resolved = _resolve(resource, relation, resources)
        if isinstance(resolved, str):
            wrong(resource, relation.attr, resolved, _HOW[relation.kind])
        else:
            target = resources[resolved.target].deprecated
            relations[name] = replace(resolved, deprecated=resolved.deprecated or target)
    fields = {
        name: _key_field(field, relations[field.relation], resource, resources)
        if field.relation in relations
        else field
        for name, field in resource.fields.items()
    }
    return replace(resource, relations=relations, fields=fields)


def _key_field(
    field: FieldDef, relation: RelationDef, resource: ResourceDef, resources: Mapping[str, ResourceDef]
) -> FieldDef:
    """The key of a to-one relation. One of several columns is made of their fields, and so is written by them."""
    if not relation.columns:
        return replace(field, scalar=key_scalar(resources[relation.target].cls.__diptych__["ids"]))
    names = _fields_of(relation.columns, resource)
    return replace(
        field, scalar=TEXT_ID, computed=KeyText(tuple(Col((name,)) for name in names)), hideable=relation.hideable
    )


def _fields_of(columns: Iterable[str], resource: ResourceDef) -> list[str]:
    """The fields that have these columns."""
    names = {field.column: name for name, field in resource.fields.items() if field.stored}
    return [names[column] for column in columns if column in names]


_HOW = {
    "one": 'Declare each column as a field; write Columns("list_id", "place") in the order of the key',
    "many": 'Write inverse("author"): the field there that leads here',
    "through": 'Write through("PostTag", "post", "tag"): the link, its field to here, its field to there',
}


def _resolve(resource: ResourceDef, relation: RelationDef, resources: Mapping[str, ResourceDef]) -> RelationDef | str:
    """The resolved relation, or the fault in it."""
    if relation.kind == "one":
        return _resolve_one(resource, relation, resources[relation.target])
    if relation.kind == "many":
        back = _to_one(resources.get(relation.target), relation.inverse, resource.name)
        if back is None:
            ways = [way.attr for way in _to_ones(resources.get(relation.target), resource.name)]
            there = f"; there is {', '.join(map(repr, ways))}" if ways else ""
            return f"{relation.target} has no relation {relation.inverse!r} to {resource.name}{there}"
        return replace(relation, column=back.column, columns=back.columns, inverse=back.name)
    linking = resources.get(relation.link)
    mine = _to_one(linking, relation.link_mine, resource.name)
    theirs = _to_one(linking, relation.link_theirs, relation.target)
    if linking is None:
        return f"the model has no resource {relation.link!r}"
    if mine is None or theirs is None:
        return (
            f"{relation.link} does not link {resource.name} by {relation.link_mine!r} to {relation.target} by "
            f"{relation.link_theirs!r}"
        )
    mine_by = {"column": mine.column, "columns": mine.columns, "link_mine": mine.name}
    theirs_by = {"other_column": theirs.column, "other_columns": theirs.columns, "link_theirs": theirs.name}
    return replace(relation, **mine_by, **theirs_by)


def _resolve_one(resource: ResourceDef, relation: RelationDef, target: ResourceDef) -> RelationDef | str:
    count = len(target.key_columns)
    hideable = relation.hideable or not _is_open(target)
    if max(1, len(relation.columns)) != count:
        return f"the key of {relation.target} has {'several columns' if count > 1 else 'one column'}"
    if not relation.columns:
        return replace(relation, hideable=hideable)
    if resource.managed:
        return "a table that Diptych makes refers by one column"
    names = _fields_of(relation.columns, resource)
    if len(names) < count:
        stored = {field.column for field in resource.fields.values()}
        return f"no field has the column {next(name for name in relation.columns if name not in stored)}"
    return replace(relation, hideable=hideable or any(resource.fields[name].hideable for name in names))


def _to_one(owner: ResourceDef | None, attr: object, target: str) -> RelationDef | None:
    return next((relation for relation in _to_ones(owner, target) if relation.attr == attr), None)


def _to_ones(owner: ResourceDef | None, target: str) -> list[RelationDef]:
    """The to-one relations of a resource to another."""
    relations = owner.relations.values() if owner else ()
    return [relation for relation in relations if (relation.kind, relation.target) == ("one", target)]


def _is_open(resource: ResourceDef) -> bool:
    """Does a grant let anyone read every row?"""
    grants = resource.cls.access
    return isinstance(grants, tuple) and any(
        isinstance(grant, VerbGrant) and "read" in grant.verbs and grant.to is None for grant in grants
    )
