"""Is the data of an answer what the document asked for: exactly those keys, in that order, of those types?

misshapen(schema, "{ a: user(id: 1) { name } }", {"a": {"name": None}})      'a.name is null, and String! is not'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import graphql
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    is_enum_type,
    is_interface_type,
    is_list_type,
    is_non_null_type,
    is_object_type,
)

_LEAVES: dict[str, tuple[type, ...]] = {"Int": (int,), "Boolean": (bool,), "Float": (int, float)}


def misshapen(schema: GraphQLSchema, document: str, data: Any) -> str:
    """The first place where data differ from what was asked for; nothing, if there is none."""
    tree = graphql.parse(document)
    operation = next(each for each in tree.definitions if isinstance(each, OperationDefinitionNode))
    shape = _Shape(
        schema, {each.name.value: each for each in tree.definitions if isinstance(each, FragmentDefinitionNode)}
    )
    root = schema.get_root_type(operation.operation)
    assert root is not None
    return next(shape.faults(root, [operation.selection_set], data, "data"), "")


class _Shape:
    def __init__(self, schema: GraphQLSchema, fragments: dict[str, FragmentDefinitionNode]) -> None:
        self._schema = schema
        self._fragments = fragments

    def faults(
        self, kind: GraphQLOutputType, sets: Sequence[SelectionSetNode], value: Any, place: str
    ) -> Iterator[str]:
        if is_non_null_type(kind):
            if value is None:
                yield f"{place} is null, and {kind} is not"
                return
            kind = kind.of_type
        if value is None:
            return
        if is_list_type(kind):
            if not isinstance(value, list):
                yield f"{place} is no list"
                return
            for index, each in enumerate(value):
                yield from self.faults(kind.of_type, sets, each, f"{place}.{index}")
        elif is_object_type(kind):
            yield from self._of_object(kind, sets, value, place)
        elif is_interface_type(kind):
            yield from self._of_any(kind, sets, value, place)
        elif is_enum_type(kind):
            if value not in kind.values:
                yield f"{place} is {value!r}, which {kind} has not"
        elif not isinstance(value, _LEAVES.get(str(kind), (str,))) or (str(kind) == "Int" and isinstance(value, bool)):
            yield f"{place} is {value!r}, which is no {kind}"

    def _of_any(
        self, kind: GraphQLInterfaceType, sets: Sequence[SelectionSetNode], value: Any, place: str
    ) -> Iterator[str]:
        """Of one of the types that it stands for."""
        told = [[*self._of_object(each, sets, value, place)] for each in self._schema.get_possible_types(kind)]
        if all(told):
            yield from told[0]

    def _of_object(
        self, kind: GraphQLObjectType, sets: Sequence[SelectionSetNode], value: Any, place: str
    ) -> Iterator[str]:
        asked: dict[str, list[FieldNode]] = {}
        for each in sets:
            self._collect(each, asked, kind)
        if not isinstance(value, dict) or list(value) != list(asked):
            yield f"{place} has {list(value) if isinstance(value, dict) else value!r}, and {list(asked)} was asked for"
            return
        for label, nodes in asked.items():
            name = nodes[0].name.value
            if name == "__typename":
                if value[label] != kind.name:
                    yield f"{place}.{label} is {value[label]!r}"
                continue
            inner = [node.selection_set for node in nodes if node.selection_set is not None]
            yield from self.faults(kind.fields[name].type, inner, value[label], f"{place}.{label}")

    def _collect(self, chosen: SelectionSetNode, asked: dict[str, list[FieldNode]], kind: GraphQLObjectType) -> None:
        names = (kind.name, *(each.name for each in kind.interfaces))
        for each in chosen.selections:
            if isinstance(each, FieldNode):
                asked.setdefault((each.alias or each.name).value, []).append(each)
                continue
            found = self._fragments[each.name.value] if isinstance(each, FragmentSpreadNode) else each
            assert isinstance(found, FragmentDefinitionNode | InlineFragmentNode)
            if found.type_condition is None or found.type_condition.name.value in names:
                self._collect(found.selection_set, asked, kind)
