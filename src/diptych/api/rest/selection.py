"""Translates `fields` into the selection of an Ask: plain fields, value objects, relations and their arguments.

    fields=title,author(name),comments[first=3;sort=-createdAt](text)

It is resolved through the View of the role: what the role may never see has no name.
"""

from __future__ import annotations

from diptych.api.ask_builder import NESTED_SIZE, AskBuilder, all_or, default_order
from diptych.api.query_string import Item, json_of
from diptych.api.rest.aggregates import related_summary
from diptych.ask.nodes import Field, Follow, MemberPick, OrderBy, Page, Pick, Read
from diptych.ask.slots import RawValue
from diptych.model.defs import RelationDef
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Expr, and_
from diptych.model.scalars import Scalar

PAGE_PARAMETERS = ("first", "last", "after", "before", "offset")


def select(items: tuple[Item, ...] | None, resource: ResourceView, builder: AskBuilder) -> tuple[Pick, ...]:
    """What the items of `fields` select of a resource; without any, all plain fields."""
    picks: dict[str, Pick] = {}
    for item in (Item("*", "*"),) if items is None else items:
        for pick in _plain(resource, builder) if item.name == "*" else _pick(item, resource, builder):
            if pick.label in picks:
                builder.fault(("query", "fields"), f"'{pick.label}' occurs twice")
            picks[pick.label] = pick
    return tuple(picks.values())


def _plain(resource: ResourceView, builder: AskBuilder) -> list[Pick]:
    """All plain fields; of a version, also those of the row as it was."""
    picks: list[Pick] = [Field(name, name) for name in resource.fields]
    if resource.resource.versions_of:
        row = builder.view.resources[resource.resource.versions_of]
        fields = tuple(Field(name, name) for name in row.fields)
        picks.append(Follow(row.resource.one, row.resource.one, Read(row.resource.name, "one", fields)))
    return picks


def _pick(item: Item, resource: ResourceView, builder: AskBuilder) -> list[Pick]:
    if item.name in resource.fields and resource.fields[item.name].field.scalar.members is not None:
        return [_members(item, resource.fields[item.name].field.scalar, builder)]
    if item.name in resource.fields:
        if item.inner is not None or item.bracketed:
            builder.fault(("query", "fields"), f"'{item.name}' is a plain field and takes no ( ) or [ ]")
        return [Field(item.name, item.label)]
    if item.name not in resource.relations and item.name.removesuffix("Summary") in resource.ways:
        relation = resource.relations[item.name.removesuffix("Summary")].relation
        return related_summary(item, relation, builder)
    if item.name not in resource.relations:
        builder.fault(("query", "fields"), f"{resource.resource.name} has no field '{item.name}'")
        return []
    if item.inner is None:
        builder.fault(("query", "fields"), f"'{item.name}' is a relation: select from it, {item.name}(id)")
        return []
    return [_follow(item, resource.relations[item.name].relation, builder)]


def _members(item: Item, scalar: Scalar, builder: AskBuilder) -> Field:
    """A value object, whole or with the members in ( )."""
    members = scalar.members or {}
    inside: dict[str, MemberPick] = {}
    for part in item.inner or (Item("*", "*"),):
        names = list(members) if part.name == "*" else [part.name]
        if part.name not in ("*", *members):
            builder.fault(("query", "fields"), f"{scalar.name} has no field '{part.name}'")
            continue
        for name in names:
            label = name if part.name == "*" else part.label
            if label in inside:
                builder.fault(("query", "fields"), f"'{label}' occurs twice")
            inside[label] = MemberPick(name, label)
        if part.inner is not None or part.bracketed:
            builder.fault(("query", "fields"), f"'{part.name}' is a plain field and takes no ( ) or [ ]")
    if item.bracketed:
        builder.fault(("query", "fields"), f"'{item.name}' is a plain field and takes no [ ]")
    return Field(item.name, item.label, inside=all_or(inside.values(), scalar))


def _follow(item: Item, relation: RelationDef, builder: AskBuilder) -> Pick:
    target = builder.view.resources[relation.target]
    if relation.kind == "one":
        if item.bracketed:
            builder.fault(("query", "fields"), f"'{item.name}' is a to-one relation and takes no [ ]")
        return Follow(relation.name, item.label, Read(relation.target, "one", select(item.inner, target, builder)))
    where, order, page = _arguments(item, target, builder)
    picks = select(item.inner, target, builder)
    return Follow(relation.name, item.label, Read(relation.target, "list", picks, where, order, page))


def _arguments(item: Item, target: ResourceView, builder: AskBuilder) -> tuple[Expr, tuple[OrderBy, ...], Page]:
    """The arguments in [ ] of a to-many relation; their values are part of the text of `fields`."""
    arguments: dict[str, RawValue] = {}
    path = ("query", "fields", item.label)
    for key, value in item.arguments:
        if key in arguments or key not in (*PAGE_PARAMETERS, "sort", "where", "search"):
            builder.fault((*path, key), "there is no such argument, or it occurs twice")
        arguments[key] = RawValue(value, (*path, key), fixed=True, text=True)
    where: Expr = TRUE
    if "where" in arguments:
        tree = json_of(arguments["where"].value, "fields")
        where = builder.where(RawValue(tree, arguments["where"].path, fixed=True), target)
    where = and_(where, builder.search(arguments.get("search"), target))
    sort = arguments["sort"].value if "sort" in arguments else None
    order = requested_sort(sort, (*path, "sort"), target, builder)
    pages = {key: argument for key, argument in arguments.items() if key in PAGE_PARAMETERS}
    return where, order, builder.page(pages, path, NESTED_SIZE)


def requested_sort(
    text: str | None, path: tuple[str, ...], resource: ResourceView, builder: AskBuilder
) -> tuple[OrderBy, ...]:
    """The keys of `sort`: names, with `-` for descending."""
    if text is None:
        return default_order(resource)
    keys = [builder.sort_key(key.removeprefix("-"), key.startswith("-"), path, resource) for key in text.split(",")]
    return tuple(key for key in keys if key)
