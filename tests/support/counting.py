"""What a document holds, counted the obvious way: on the tree that graphql-core's own parser makes, every fragment
unfolded wherever it is spread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    ValueNode,
    Visitor,
    parse,
    visit,
)

LISTS = ("types", "fields", "args", "inputFields", "enumValues", "interfaces", "possibleTypes", "directives")


@dataclass
class Counted:
    aliases: int = 0
    directives: int = 0
    selections: int = 0
    definitions: int = 0
    expanded: int = 0
    described: float = 0
    depth: int = 0
    listed: int = 0
    filter_terms: int = 0
    sort_keys: int = 0


def counted(text: str) -> Counted:
    """The numbers of a document whose fragments are all there, and in no circle."""
    document = parse(text)
    found = Counted(definitions=len(document.definitions))
    visit(document, _Nodes(found))
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            free = node.operation is OperationType.SUBSCRIPTION
            before, found.described = found.described, 0
            _unfold(node.selection_set, fragments, found, 0 - free, (1, 1.0), False)
            found.described = before + math.ceil(found.described)
    return found


class _Nodes(Visitor):
    """What is the same wherever it stands."""

    def __init__(self, found: Counted) -> None:
        super().__init__()
        self.found = found

    def enter_directive(self, node: Any, *_: Any) -> None:
        self.found.directives += 1
        self.found.selections = max(self.found.selections, len(node.arguments or ()))

    def enter_operation_definition(self, node: OperationDefinitionNode, *_: Any) -> None:
        self.found.selections = max(self.found.selections, len(node.variable_definitions or ()))

    def enter_selection_set(self, node: SelectionSetNode, *_: Any) -> None:
        self.found.selections = max(self.found.selections, len(node.selections))

    def enter_list_value(self, node: ListValueNode, *_: Any) -> None:
        self.found.listed = max(self.found.listed, len(node.values))

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        self.found.aliases += node.alias is not None
        self.found.selections = max(self.found.selections, len(node.arguments or ()))
        for argument in node.arguments or ():
            value = argument.value
            if argument.name.value == "where":
                self.found.filter_terms = max(self.found.filter_terms, _terms(value))
            if argument.name.value == "orderBy" and isinstance(value, ListValueNode):
                self.found.sort_keys = max(self.found.sort_keys, len(value.values))


def _terms(value: ValueNode) -> int:
    if isinstance(value, ObjectValueNode):
        return sum(_term(each.value) for each in value.fields)
    return sum(map(_terms, value.values)) if isinstance(value, ListValueNode) else 0


def _term(value: ValueNode) -> int:
    """A value of a filter: by itself it is compared; a list is compared if it holds no filters."""
    if isinstance(value, ObjectValueNode):
        return _terms(value)
    if isinstance(value, ListValueNode):
        plain = value.values and not isinstance(value.values[0], ObjectValueNode | ListValueNode)
        return 1 if plain else _terms(value)
    return 1


def _unfold(
    selected: SelectionSetNode,
    fragments: dict[str, FragmentDefinitionNode],
    found: Counted,
    deep: int,
    weight: tuple[int, float],
    about: bool,
) -> None:
    """Count a selection set with all that is spread in it. Below a question about the schema it has a weight, which is
    four for each list on the way, and a share of it, a quarter for each `ofType` since the last list."""
    for node in selected.selections:
        name = node.name.value if isinstance(node, FieldNode) else ""
        found.expanded += 1
        found.described += weight[0] * weight[1] * about
        found.depth = max(found.depth, deep)
        if isinstance(node, FragmentSpreadNode):
            _unfold(fragments[node.name.value].selection_set, fragments, found, deep, weight, about)
            continue
        inner: SelectionSetNode | None = node.selection_set  # type: ignore[attr-defined]  # fields and fragments have one
        if inner is None:
            continue
        below = about or name in ("__schema", "__type")
        counts = isinstance(node, FieldNode) and not below and name not in ("nodes", "edges", "node", "pageInfo")
        times = (weight[0] * 4, 1.0) if name in LISTS else (weight[0], weight[1] / 4) if name == "ofType" else weight
        _unfold(inner, fragments, found, deep + counts, times, below)
