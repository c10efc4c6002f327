"""Translates requests for numbers of rows: `/orders/summary`, `/orders/groups`, and `ordersSummary(…)` in `fields`.

GET /orders/summary?status=paid&fields=count,total(sum)
GET /orders/groups?by=status,createdAt:month&having={"count":{"gte":2}}&sort=-total.sum&first=20
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from diptych.api.aggregates import Selected, key_of_groups, shows_key
from diptych.api.ask_builder import AskBuilder
from diptych.api.query_string import Item, json_of
from diptych.ask.nodes import Follow, GroupObject, Groups, GroupValue, OrderBy, Pick, Read, TypeName
from diptych.ask.slots import RawValue
from diptych.model.aggregates import COUNT, VALUE, group_type, summary_type
from diptych.model.defs import RelationDef
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Col, Expr, GroupKey, and_

_FIELDS = ("query", "fields")
_COUNT = Selected(COUNT, COUNT)


def summary_cells(
    items: tuple[Item, ...] | None, resource: ResourceView, builder: AskBuilder
) -> tuple[GroupValue | GroupObject | TypeName, ...]:
    """What `fields` selects of a summary; without it, the count."""
    selected = [_COUNT] if items is None else _selected(items, builder)
    return builder.picked(selected, resource, None, summary_type(resource.resource), _FIELDS)


def grouped(
    parameters: Mapping[str, str],
    inputs: Mapping[str, Any],
    items: tuple[Item, ...] | None,
    resource: ResourceView,
    builder: AskBuilder,
) -> tuple[Groups, tuple[OrderBy, ...], tuple[GroupValue | GroupObject | TypeName, ...]]:
    """The groups that parameters ask for, their sort, and what `fields` selects of them."""
    by = _group_keys(parameters.get("by"), resource, builder)
    having = RawValue(inputs.get("having"), ("query", "having"))
    groups = Groups(by, builder.having(having, resource) if "having" in parameters else TRUE, paged=True)
    order = _group_order(parameters.get("sort"), resource, groups, builder)
    return groups, order, _group_cells(items, resource, groups, builder)


def related_summary(item: Item, relation: RelationDef, builder: AskBuilder) -> list[Pick]:
    """Numbers of the rows of a to-many relation: `ordersSummary[where={…}](count)`."""
    if relation.kind == "one" or item.inner is None:
        message = f"'{item.name}' is no relation" if relation.kind == "one" else f"select from {item.name}(count)"
        builder.fault(_FIELDS, message)
        return []
    target = builder.view.resources[relation.target]
    conditions: dict[str, Expr] = {}
    for key, value in item.arguments:
        path = (*_FIELDS, item.label, key)
        if key in conditions or key not in ("where", "search"):
            builder.fault(path, "there is no such argument, or it occurs twice")
        elif key == "where":
            conditions[key] = builder.where(RawValue(json_of(value, "fields"), path, fixed=True), target)
        else:
            conditions[key] = builder.search(RawValue(value, path, fixed=True, text=True), target)
    where = and_(conditions.get("where", TRUE), conditions.get("search", TRUE))
    cells = summary_cells(item.inner, target, builder)
    return [Follow(relation.name, item.label, Read(relation.target, "summary", cells, where))]


def _group_cells(
    items: tuple[Item, ...] | None, resource: ResourceView, groups: Groups, builder: AskBuilder
) -> tuple[GroupValue | GroupObject | TypeName, ...]:
    """What `fields` selects of groups; without it, their keys and the count."""
    selected = _default(resource, groups) if items is None else _selected(items, builder)
    return builder.picked(selected, resource, groups, group_type(resource.resource), _FIELDS)


def _group_keys(text: str | None, resource: ResourceView, builder: AskBuilder) -> tuple[GroupKey, ...]:
    """The keys of `by=status,createdAt:month`."""
    path = ("query", "by")
    if not text:
        builder.fault(path, "expected at least one key")
        return ()
    keys = []
    for part in text.split(","):
        name, _, bucket = part.partition(":")
        keys.append(builder.group_key(name, bucket or VALUE, path, resource))
    return builder.group_keys(keys, path)


def _group_order(text: str | None, resource: ResourceView, groups: Groups, builder: AskBuilder) -> tuple[OrderBy, ...]:
    """The sort of groups: `-total.sum,status`."""
    keys = text.split(",") if text is not None else []
    path = ("query", "sort")
    sorts = (
        builder.group_sort(key.removeprefix("-").split("."), key.startswith("-"), path, resource, groups)
        for key in keys
    )
    return tuple(key for key in sorts if key)


def _default(resource: ResourceView, groups: Groups) -> list[Selected]:
    selected = []
    for name, field in resource.searchable.items():
        if key_of_groups(name, groups) is not None:
            selected.append(Selected(name, name, None if shows_key(field) else (Selected(VALUE, VALUE),)))
    order = {key.of: place for place, key in enumerate(groups.by)}
    return [*sorted(selected, key=lambda item: order[Col((item.name,))]), _COUNT]


def _selected(items: Iterable[Item], builder: AskBuilder) -> tuple[Selected, ...]:
    selected = []
    for item in items:
        if item.bracketed or item.name == "*":
            builder.fault(_FIELDS, f"'{item.name}' is not possible here")
        inner = None if item.inner is None else _selected(item.inner, builder)
        selected.append(Selected(item.name, item.label, inner))
    return tuple(selected)
