"""Finds fields of different types with one response key and different types of values, as only a Node can have them.

    { node(id: "…") { ... on User { x: name } ... on Order { x: total } } }        x is a String, and a Decimal

Fields of one object are compared by `merge.py`. Here all types that an object may have are taken together, in one walk:
each field is compared with the first that has its key. (graphql-core compares every pair.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLList,
    GraphQLNonNull,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_named_type,
    is_leaf_type,
)

Selected = tuple[Any, SelectionSetNode]
"""A selection, and the type that it is of."""


def shape_conflicts(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode], schema: GraphQLSchema
) -> Iterator[GraphQLError]:
    """Errors for fields that share a response key and have values of different types."""
    left: list[list[Selected]] = [[(schema.get_root_type(operation.operation), operation.selection_set)]]
    while left:
        by_key: dict[str, list[tuple[FieldNode, Any]]] = {}
        for node, kind in _fields(left.pop(), fragments, schema):
            by_key.setdefault(node.alias.value if node.alias else node.name.value, []).append((node, kind))
        for key, (first, *others) in by_key.items():
            for other in others:
                if _shape(other[1]) != _shape(first[1]):
                    yield _conflict(key, first, other)
            inner = [(get_named_type(kind), node.selection_set) for node, kind in (first, *others)]
            left.append([(kind, selected) for kind, selected in inner if selected is not None])


def _fields(
    sets: list[Selected], fragments: Mapping[str, FragmentDefinitionNode], schema: GraphQLSchema
) -> Iterator[tuple[FieldNode, Any]]:
    """The fields of some selections with their types, fragments unfolded."""
    left = list(sets)
    spread: set[str] = set()
    while left:
        parent, selected = left.pop(0)
        for node in selected.selections:
            if isinstance(node, FieldNode):
                field = parent.fields.get(node.name.value)
                if field is not None:  # `__typename` is a String! in all of them
                    yield node, field.type
                continue
            fragment: Any = node
            if isinstance(node, FragmentSpreadNode):
                if node.name.value in spread:
                    continue
                spread.add(node.name.value)
                fragment = fragments[node.name.value]
            assert isinstance(fragment, InlineFragmentNode | FragmentDefinitionNode)
            condition = fragment.type_condition
            left.append((schema.get_type(condition.name.value) if condition else parent, fragment.selection_set))


def _shape(kind: Any) -> str:
    """What of a type the client sees: lists, what is never null, and the name of a leaf."""
    if isinstance(kind, GraphQLNonNull):
        return _shape(kind.of_type) + "!"
    if isinstance(kind, GraphQLList):
        return f"[{_shape(kind.of_type)}]"
    return str(kind.name) if is_leaf_type(kind) else "{}"


def _conflict(key: str, one: tuple[FieldNode, Any], other: tuple[FieldNode, Any]) -> GraphQLError:
    reason = f"they return conflicting types '{one[1]}' and '{other[1]}'"
    mend = "Use different aliases on the fields to fetch both if this was intentional."
    return GraphQLError(f"Fields '{key}' conflict because {reason}. {mend}", [one[0], other[0]])
