"""Selections that say the same become one, and those that cannot go together are told.

    { posts(first: 1) { id } posts(first: 1) { title } }    →    { posts(first: 1) { id title } }

What is asked for is the same, since the answer merges them too. Whether fields with one key in the answer agree,
graphql-core finds out by comparing every one with every other, wherever fragments bring them together: a hundred small
selections take it a fifth of a second. There is no type here that could be one or another, so that all fields with the
same key and the same parent must have one name and the same arguments; comparing each with the first of them is enough.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
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

from diptych.api.graphql.translate import collect, fragments_of
from diptych.errors import MAX_FAULTS


def merge(document: DocumentNode) -> DocumentNode:
    """The same document, in which no selection stands twice in one set."""
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
    return nodes if len(merged) == len(nodes) and all(map(_is, merged, nodes)) else merged


def _is(one: object, other: object) -> bool:
    return one is other


def _name(node: SelectionNode) -> str:
    """What two selections have in common that may be the same."""
    if isinstance(node, FieldNode):
        return node.alias.value if node.alias else node.name.value
    return "..." + node.name.value if isinstance(node, FragmentSpreadNode) else "... on"


def _grouped(nodes: Iterable[SelectionNode]) -> list[list[SelectionNode]]:
    """Those that say the same, where that leaves the order of the answer as it is: what has something inside is not
    moved before a fragment, or before others with its key, in which there may be the same."""
    groups: list[list[SelectionNode]] = []
    found: dict[Hashable, list[SelectionNode]] = {}
    latest: dict[str, Hashable] = {}
    """What was said last with each key, since the last fragment."""
    before: Hashable = None
    for node in nodes:
        said, name = _same(node, inside=False), _name(node)
        if isinstance(node, InlineFragmentNode):
            is_new = said != before
        elif isinstance(node, FieldNode) and node.selection_set is not None:
            is_new = latest.get(name) != said
        else:
            is_new = said not in found
        if is_new:
            found[said] = []
            groups.append(found[said])
            if not isinstance(node, FieldNode):
                latest.clear()
        found[said].append(node)
        latest[name] = before = said
    return groups


def _joined(nodes: list[SelectionNode]) -> SelectionNode:
    """One node for some that say the same of themselves, with all that is selected in them."""
    first: Any = nodes[0]
    if isinstance(first, FragmentSpreadNode) or first.selection_set is None:
        return nodes[0]
    inner: tuple[SelectionNode, ...] = first.selection_set.selections
    if len(nodes) > 1:
        sets: list[Any] = [node.selection_set for node in nodes]  # type: ignore[attr-defined]
        inner = tuple(each for selected in sets for each in selected.selections)
    merged = _selections(inner)
    if merged is first.selection_set.selections:
        return nodes[0]
    return cast(SelectionNode, replace(first, selection_set=replace(first.selection_set, selections=merged)))


def _same(node: Node, *, inside: bool = True) -> Hashable:
    """All that a node says, but for where it stands; a selection without what is selected in it."""
    said: list[Hashable] = [node.kind]
    for key in node.keys:
        value = getattr(node, key)
        if key == "selection_set" and not inside:
            said.append(value is None)
        elif isinstance(value, Node):
            said.append(_same(value))
        elif isinstance(value, tuple | list):
            said.append(tuple(_same(each) for each in value))
        elif key != "loc":
            said.append(value)
    return tuple(said)


def conflicts(document: DocumentNode) -> list[GraphQLError]:
    """The fields of a sound document that share a key and differ; the first few."""
    found: list[GraphQLError] = []
    fragments = fragments_of(document)
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            for error in _conflicts([node.selection_set], fragments):
                found.append(error)
                if len(found) >= MAX_FAULTS:
                    return found
    return found


def _conflicts(
    sets: list[SelectionSetNode], fragments: dict[str, FragmentDefinitionNode]
) -> Iterator[GraphQLError]:
    for key, nodes in collect(sets, fragments, None).items():
        first, *others = nodes
        asked = _arguments(first) if others else None
        for other in others:
            if other.name.value != first.name.value:
                reason = f"'{first.name.value}' and '{other.name.value}' are different fields"
                yield _conflict(key, reason, first, other)
            elif _arguments(other) != asked:
                yield _conflict(key, "they have differing arguments", first, other)
        inner = [node.selection_set for node in nodes if node.selection_set is not None]
        if inner:
            yield from _conflicts(inner, fragments)


def _arguments(node: FieldNode) -> frozenset[Hashable]:
    return frozenset(map(_same, node.arguments or ()))


def _conflict(key: str, reason: str, one: FieldNode, other: FieldNode) -> GraphQLError:
    mend = "Use different aliases on the fields to fetch both if this was intentional."
    return GraphQLError(f"Fields '{key}' conflict because {reason}. {mend}", [one, other])
