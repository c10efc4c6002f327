"""Translates fields that ask for numbers of rows: `ordersSummary`, `ordersGroups` and its connection.

{ ordersGroups(by: [{status: VALUE}], orderBy: [{count: DESC}], first: 20) { status count total { sum } } }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from graphql import FieldNode
from msgspec import Struct

from diptych.api.aggregates import Selected
from diptych.api.ask_builder import DEFAULT_SIZE, AskBuilder
from diptych.api.graphql.collect import Fields, page_info_parts
from diptych.ask.nodes import ConnectionPart, Groups, Nodes, OrderBy, Pick, Read, Total, TypeName
from diptych.ask.slots import RawValue
from diptych.errors import Path
from diptych.model.aggregates import group_type, summary_type
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Expr, GroupKey, and_


class Aggregates(Struct, frozen=True, eq=False):
    """Translates summaries and groups, with the help of the translator of an operation."""

    builder: Callable[[], AskBuilder]
    arguments: Callable[[FieldNode], dict[str, RawValue]]
    below: Callable[[Iterable[FieldNode]], Fields]
    path: Callable[[FieldNode], tuple[str, ...]]
    sort_paths: Callable[[RawValue | None], Iterator[tuple[list[str], bool, Path]]]

    def summary(self, nodes: list[FieldNode], resource: ResourceView) -> Read:
        where = self._where(self.arguments(nodes[0]), resource)
        picks = self._picks(nodes, resource, None, summary_type(resource.resource))
        return Read(resource.resource.name, "summary", picks, where)

    def groups(self, nodes: list[FieldNode], resource: ResourceView, *, connection: bool) -> Read:
        builder = self.builder()
        arguments = self.arguments(nodes[0])
        path = self.path(nodes[0])
        where = self._where(arguments, resource)
        by = builder.group_keys(self._keys(arguments.get("by"), (*path, "by"), resource), (*path, "by"))
        raw = arguments.get("having")
        having = builder.having(raw, resource) if raw is not None and raw.value is not None else TRUE
        groups = Groups(by, having, connection)
        order = self._order(arguments.get("orderBy"), resource, groups)
        page = builder.page(arguments, path, DEFAULT_SIZE)
        type_name = group_type(resource.resource)
        parts: tuple[Pick | ConnectionPart, ...] = (
            self._parts(nodes, resource, groups, type_name)
            if connection
            else self._picks(nodes, resource, groups, type_name)
        )
        return Read(resource.resource.name, "groups", parts, where, order, page, groups=groups)

    def _where(self, arguments: dict[str, RawValue], resource: ResourceView) -> Expr:
        where = arguments.get("where")
        condition = self.builder().where(where, resource) if where is not None and where.value is not None else TRUE
        return and_(condition, self.builder().search(arguments.get("search"), resource))

    def _keys(self, raw: RawValue | None, path: Path, resource: ResourceView) -> Iterator[GroupKey | None]:
        items = raw.items() if raw is not None and raw.value is not None else []
        if not items:
            self.builder().fault(path, "expected at least one key")
        for item in items:
            entries = item.entries() if isinstance(item.value, dict) else []
            if len(entries) != 1 or not isinstance(entries[0][1].value, str):
                self.builder().fault(item.path, "expected exactly one field with what to group by")
                continue
            ((name, bucket),) = entries
            yield self.builder().group_key(name, bucket.value.lower(), item.path, resource)

    def _order(self, raw: RawValue | None, resource: ResourceView, groups: Groups) -> tuple[OrderBy, ...]:
        keys = (
            self.builder().group_sort(names, descending, path, resource, groups)
            for names, descending, path in self.sort_paths(raw)
        )
        return tuple(key for key in keys if key)

    def _picks(
        self, nodes: Iterable[FieldNode], resource: ResourceView, groups: Groups | None, type_name: str
    ) -> tuple[Pick, ...]:
        nodes = list(nodes)
        selected = self._selected(self.below(nodes))
        return self.builder().picked(selected, resource, groups, type_name, self.path(nodes[0]))

    def _selected(self, fields: Fields) -> tuple[Selected, ...]:
        return tuple(
            Selected(
                nodes[0].name.value,
                label,
                self._selected(self.below(nodes)) if nodes[0].selection_set is not None else None,
            )
            for label, nodes in fields.items()
        )

    def _parts(
        self, nodes: Iterable[FieldNode], resource: ResourceView, groups: Groups, type_name: str
    ) -> tuple[ConnectionPart, ...]:
        result: list[ConnectionPart] = []
        for label, inner in self.below(nodes).items():
            match inner[0].name.value:
                case "__typename":
                    result.append(TypeName(label, type_name + "Connection"))
                case "nodes":
                    result.append(Nodes(label, self._picks(inner, resource, groups, type_name)))
                case "pageInfo":
                    result.append(page_info_parts(label, self.below(inner)))
                case "totalCount":
                    result.append(Total(label))
        return tuple(result)
