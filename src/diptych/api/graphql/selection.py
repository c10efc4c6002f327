"""Translates the selections of a GraphQL operation: fields, relations, lists and connections with their arguments.

    { title author { name } }    →    Field("title", …), Follow("author", …, Read("User", "one", …))

Names were validated against the schema of the role before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, cast

from graphql import FieldNode, FragmentDefinitionNode, OperationDefinitionNode, SelectionSetNode

from diptych.api.ask_builder import DEFAULT_SIZE, NESTED_SIZE, AskBuilder, all_or, default_order
from diptych.api.graphql.aggregates import Aggregates
from diptych.api.graphql.arguments import Arguments, response_path
from diptych.api.graphql.collect import Fields, collect, page_info_parts
from diptych.ask.nodes import (
    ConnectionPart,
    EdgePart,
    Edges,
    Field,
    Follow,
    MemberPick,
    Nodes,
    OrderBy,
    Pick,
    Read,
    Total,
    TypeName,
)
from diptych.ask.slots import RawValue
from diptych.errors import Path
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, and_
from diptych.model.view import View


class Selections:
    """The selections of one operation. `builder` collects slots and faults; each write has one of its own."""

    def __init__(
        self,
        fragments: Mapping[str, FragmentDefinitionNode],
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any],
        view: View,
        places: Mapping[int, int],
    ) -> None:
        self.fragments = fragments
        self.view = view
        self.builder = AskBuilder(view)
        self.arguments = Arguments(operation, variables, places)
        self.aggregates = Aggregates(
            lambda: self.builder, self.arguments.of, self.below, response_path, self._sort_paths
        )

    def collect(self, *sets: SelectionSetNode | None, of: str = "") -> Fields:
        """The fields of selection sets, by their label in the response."""
        return collect(sets, self.fragments, self.arguments.variables, of)

    def below(self, nodes: Iterable[FieldNode], of: str = "") -> Fields:
        """The fields that are selected of fields with the same label."""
        return self.collect(*(node.selection_set for node in nodes), of=of)

    def picks(self, nodes: Iterable[FieldNode], resource: ResourceView) -> tuple[Pick, ...]:
        """What is selected of a row."""
        fields = self.below(nodes, of=resource.resource.name)
        return tuple(self._pick(label, inner, resource) for label, inner in fields.items())

    def _pick(self, label: str, nodes: list[FieldNode], resource: ResourceView) -> Pick:
        name = nodes[0].name.value
        if name == "__typename":
            return TypeName(label, resource.resource.name)
        if name in resource.fields:
            members = resource.fields[name].field.scalar.members
            return Field(name, label) if members is None else self._members(name, label, nodes, resource)
        if name not in resource.relations and name.endswith("Summary"):
            relation = resource.relations[name.removesuffix("Summary")].relation
            target = self.view.resources[relation.target]
            return Follow(relation.name, label, self.aggregates.summary(nodes, target))
        connection = name not in resource.relations
        relation = resource.relations[name.removesuffix("Connection") if connection else name].relation
        target = self.view.resources[relation.target]
        if relation.kind == "one":
            return Follow(relation.name, label, Read(relation.target, "one", self.picks(nodes, target)))
        return Follow(relation.name, label, self.rows(nodes, target, NESTED_SIZE, connection=connection))

    def _members(self, name: str, label: str, nodes: list[FieldNode], resource: ResourceView) -> Field:
        """A value object with the members that are selected."""
        scalar = resource.fields[name].field.scalar
        inside: list[MemberPick | TypeName] = []
        for key, inner in self.below(nodes, of=scalar.name).items():
            member = inner[0].name.value
            inside.append(TypeName(key, scalar.name) if member == "__typename" else MemberPick(member, key))
        return Field(name, label, inside=all_or(inside, scalar))

    def _parts(self, nodes: Iterable[FieldNode], resource: ResourceView) -> tuple[ConnectionPart, ...]:
        result: list[ConnectionPart] = []
        for label, inner in self.below(nodes).items():
            match inner[0].name.value:
                case "__typename":
                    result.append(TypeName(label, resource.resource.name + "Connection"))
                case "nodes":
                    result.append(Nodes(label, self.picks(inner, resource)))
                case "edges":
                    result.append(Edges(label, self._edges(inner, resource)))
                case "pageInfo":
                    result.append(page_info_parts(label, self.below(inner)))
                case "totalCount":
                    result.append(Total(label))
        return tuple(result)

    def _edges(self, nodes: Iterable[FieldNode], resource: ResourceView) -> tuple[EdgePart, ...]:
        parts: list[EdgePart] = []
        for label, inner in self.below(nodes).items():
            kind = cast(Literal["cursor", "node", "__typename"], inner[0].name.value)
            parts.append(EdgePart(kind, label, self.picks(inner, resource) if kind == "node" else ()))
        return tuple(parts)

    def rows(
        self, nodes: list[FieldNode], resource: ResourceView, default: int = DEFAULT_SIZE, *, connection: bool
    ) -> Read:
        """A list or a connection, with its filter, its order and its page."""
        arguments = self.arguments.of(nodes[0])
        where = arguments.get("where")
        filtered = self.builder.where(where, resource) if where is not None and where.value is not None else TRUE
        filtered = and_(filtered, self.builder.search(arguments.get("search"), resource))
        order = self._order(arguments.get("orderBy"), resource)
        page = self.builder.page(arguments, response_path(nodes[0]), default)
        if connection:
            return Read(resource.resource.name, "page", self._parts(nodes, resource), filtered, order, page)
        return Read(resource.resource.name, "list", self.picks(nodes, resource), filtered, order, page)

    def _order(self, raw: RawValue | None, resource: ResourceView) -> tuple[OrderBy, ...]:
        keys = (
            self.builder.sort_key(".".join(names), descending, path, resource)
            for names, descending, path in self._sort_paths(raw)
        )
        return tuple(key for key in keys if key) or default_order(resource)

    def _sort_paths(self, raw: RawValue | None) -> Iterator[tuple[list[str], bool, Path]]:
        """The keys of a sort: the names of each, from the outermost, whether it is descending, and its path."""
        for item in raw.items() if raw is not None and raw.value is not None else ():
            names: list[str] = []
            value = item
            while isinstance(value.value, dict) and len(value.value) == 1:
                ((name, value),) = value.entries()
                names.append(name)
            if not names or value.value not in ("ASC", "DESC"):
                self.builder.fault(item.path, "expected exactly one field with ASC or DESC")
            else:
                yield names, value.value == "DESC", item.path
