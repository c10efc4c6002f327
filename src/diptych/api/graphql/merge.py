"""Merges equal selections, and finds fields that cannot be merged.

    { posts(first: 1) { id } posts(first: 1) { title } }    →    { posts(first: 1) { id title } }

The response is the same, since execution merges them too. graphql-core checks whether fields with one response key
agree by comparing every pair, wherever fragments bring them together: for a hundred small selections that takes a fifth
of a second. There are no unions here, so all fields with the same key and parent must have one name and the same
arguments; comparing each with the first of them is enough. Only a Node has one of several types: there the fields are
compared for each of these by itself, and `response_shape.py` compares their types.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from operator import is_
from typing import Any, cast

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    Node,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
)

from diptych.api.graphql.collect import collect, fragments_of
from diptych.api.graphql.names import NODE
from diptych.errors import MAX_FAULTS


def needs_no_merge(document: DocumentNode) -> bool:
    """Are there only fields, each with a response key of its own? Then nothing is merged, and nothing conflicts."""
    left: list[SelectionSetNode] = []
    for definition in document.definitions:
        if not isinstance(definition, OperationDefinitionNode):
            return False
        left.append(definition.selection_set)
    while left:
        keys = set()
        for node in left.pop().selections:
            if not isinstance(node, FieldNode):
                return False
            key = node.alias.value if node.alias else node.name.value
            if key in keys:
                return False
            keys.add(key)
            if node.selection_set is not None:
                left.append(node.selection_set)
    return True


def merge_selections(document: DocumentNode) -> DocumentNode:
    """Remove duplicate selections from every selection set of a document."""
    definitions = tuple(
        _merged(node) if isinstance(node, OperationDefinitionNode | FragmentDefinitionNode) else node
        for node in document.definitions
    )
    changed = any(new is not old for new, old in zip(definitions, document.definitions, strict=True))
    return replace(document, definitions=definitions) if changed else document


def _merged(
    definition: OperationDefinitionNode | FragmentDefinitionNode,
) -> OperationDefinitionNode | FragmentDefinitionNode:
    selections = _selections(definition.selection_set.selections)
    if selections is definition.selection_set.selections:
        return definition
    return replace(definition, selection_set=replace(definition.selection_set, selections=selections))


def _selections(nodes: tuple[SelectionNode, ...]) -> tuple[SelectionNode, ...]:
    names = {_name(node) for node in nodes}
    groups = [[node] for node in nodes] if len(names) == len(nodes) else _grouped(nodes)
    merged = tuple(_joined(group) for group in groups)
    return nodes if len(merged) == len(nodes) and all(map(is_, merged, nodes)) else merged


def _name(node: SelectionNode) -> str:
    """The response key, or what else two selections must share to be equal."""
    if isinstance(node, FieldNode):
        return node.alias.value if node.alias else node.name.value
    return "..." + node.name.value if isinstance(node, FragmentSpreadNode) else "... on"


def _grouped(nodes: Iterable[SelectionNode]) -> list[list[SelectionNode]]:
    """Group equal selections where that keeps the order of the response: a selection with sub-selections is not moved
    before a fragment, or before another with its key, in which there may be the same."""
    groups: list[list[SelectionNode]] = []
    members: dict[Hashable, list[SelectionNode]] = {}
    latest: dict[str, Hashable] = {}
    """The last selection of each key since the last fragment."""
    before: Hashable = None
    for node in nodes:
        content, name = _same(node, inside=False), _name(node)
        if isinstance(node, InlineFragmentNode):
            is_new = content != before
        elif isinstance(node, FieldNode) and node.selection_set is not None:
            is_new = latest.get(name) != content
        else:
            is_new = content not in members
        if is_new:
            members[content] = []
            groups.append(members[content])
            if not isinstance(node, FieldNode):
                latest.clear()
        members[content].append(node)
        latest[name] = before = content
    return groups


def _joined(nodes: list[SelectionNode]) -> SelectionNode:
    """One node for a group of equal ones, with all their sub-selections."""
    first: Any = nodes[0]
    if isinstance(first, FragmentSpreadNode) or first.selection_set is None:
        return nodes[0]
    inner: tuple[SelectionNode, ...] = first.selection_set.selections
    if len(nodes) > 1:
        sets: list[Any] = [cast(Any, node).selection_set for node in nodes]
        inner = tuple(selection for selected in sets for selection in selected.selections)
    merged = _selections(inner)
    if merged is first.selection_set.selections:
        return nodes[0]
    return cast(SelectionNode, replace(first, selection_set=replace(first.selection_set, selections=merged)))


def _same(node: Node, *, inside: bool = True) -> Hashable:
    """A hashable copy of a node without its location; of a selection also without its sub-selections."""
    parts: list[Hashable] = [node.kind]
    for key in node.keys:
        value = getattr(node, key)
        if key == "selection_set" and not inside:
            parts.append(value is None)
        elif isinstance(value, Node):
            parts.append(_same(value))
        elif isinstance(value, tuple | list):
            parts.append(tuple(_same(item) for item in value))
        elif key != "loc":
            parts.append(value)
    return tuple(parts)


def conflicts(document: DocumentNode) -> list[GraphQLError]:
    """Errors for fields that share a response key and differ; the first few."""
    errors: list[GraphQLError] = []
    fragments = fragments_of(document)
    seen: set[tuple[int, ...]] = set()
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            for error in _conflicts([node.selection_set], fragments, seen):
                errors.append(error)
                if len(errors) >= MAX_FAULTS:
                    return errors
    return errors


def _conflicts(
    sets: list[SelectionSetNode], fragments: dict[str, FragmentDefinitionNode], seen: set[tuple[int, ...]]
) -> Iterator[GraphQLError]:
    """The conflicts in what some selections have together, for each type that the object may have."""
    together = tuple(map(id, sets))
    if together in seen:
        return
    seen.add(together)
    types = _conditions(sets, fragments)
    for name in types if len(types) > 1 else [""]:
        yield from _conflicts_of(name, sets, fragments, seen)


def _conditions(sets: list[SelectionSetNode], fragments: dict[str, FragmentDefinitionNode]) -> list[str]:
    """The object types that fragments are for, if they are for several."""
    names: dict[str, None] = {}
    left: list[SelectionNode] = [node for selected in sets for node in selected.selections]
    spread: set[str] = set()
    while left:
        node = left.pop()
        if isinstance(node, FragmentSpreadNode):
            if node.name.value in spread:
                continue
            spread.add(node.name.value)
            found: InlineFragmentNode | FragmentDefinitionNode = fragments[node.name.value]
        elif isinstance(node, InlineFragmentNode):
            found = node
        else:
            continue
        if found.type_condition is not None and found.type_condition.name.value != NODE:
            names[found.type_condition.name.value] = None
        left += found.selection_set.selections
    return list(names)


def _conflicts_of(
    name: str,
    sets: list[SelectionSetNode],
    fragments: dict[str, FragmentDefinitionNode],
    seen: set[tuple[int, ...]],
) -> Iterator[GraphQLError]:
    for key, nodes in collect(sets, fragments, None, name).items():
        first, *others = nodes
        expected = _arguments(first) if others else None
        for other in others:
            if other.name.value != first.name.value:
                reason = f"'{first.name.value}' and '{other.name.value}' are different fields"
                yield _conflict(key, reason, first, other)
            elif _arguments(other) != expected:
                yield _conflict(key, "they have differing arguments", first, other)
        inner = [node.selection_set for node in nodes if node.selection_set is not None]
        if inner:
            yield from _conflicts(inner, fragments, seen)


def _arguments(node: FieldNode) -> frozenset[Hashable]:
    return frozenset(map(_same, node.arguments or ()))


def _conflict(key: str, reason: str, one: FieldNode, other: FieldNode) -> GraphQLError:
    mend = "Use different aliases on the fields to fetch both if this was intentional."
    return GraphQLError(f"Fields '{key}' conflict because {reason}. {mend}", [one, other])
