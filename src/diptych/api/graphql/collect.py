"""Collects the fields of a selection: fragments unfolded, @skip and @include decided, equal keys together.

{ name ...F }  fragment F on User { name email @include(if: $all) }      →      {"name": [.., ..], "email": [..]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    NamedTypeNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    VariableNode,
    value_from_ast_untyped,
)

from diptych.api.graphql.names import NODE
from diptych.ask.nodes import InfoKind, PageInfo
from diptych.errors import Code, Fault, Refusal

Fields = dict[str, list[FieldNode]]


def fragments_of(document: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    return {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}


def with_defaults(operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the variables, with defaults for those that were not sent."""
    values = dict(variables)
    for definition in operation.variable_definitions or ():
        if definition.default_value is not None:
            values.setdefault(definition.variable.name.value, value_from_ast_untyped(definition.default_value))
    return values


def collect(
    sets: Iterable[SelectionSetNode | None],
    fragments: Mapping[str, FragmentDefinitionNode],
    variables: Mapping[str, Any] | None,
    of: str = "",
) -> Fields:
    """Collect the fields of selection sets by response key, with fragments unfolded, in order.

    Without variables, @skip and @include are ignored: every field is included. With the name `of` an object type, only
    fragments that apply to it are unfolded.
    """
    fields: Fields = {}
    seen: set[str] = set()

    def visit(nodes: Iterable[SelectionNode]) -> None:
        for node in nodes:
            if variables is not None and not _included(node, variables):
                continue
            if isinstance(node, FieldNode):
                fields.setdefault(node.alias.value if node.alias else node.name.value, []).append(node)
            elif isinstance(node, InlineFragmentNode):
                if _applies(node.type_condition, of):
                    visit(node.selection_set.selections)
            elif isinstance(node, FragmentSpreadNode) and node.name.value not in seen:
                seen.add(node.name.value)
                fragment = fragments[node.name.value]
                if _applies(fragment.type_condition, of):
                    visit(fragment.selection_set.selections)

    for selection in sets:
        visit(selection.selections if selection else ())
    return fields


def _applies(condition: NamedTypeNode | None, of: str) -> bool:
    """Does a fragment apply to an object type? (Only NODE has several types.)"""
    return not of or condition is None or condition.name.value in (of, NODE)


def _included(node: SelectionNode, variables: Mapping[str, Any]) -> bool:
    for directive in node.directives or ():
        name = directive.name.value
        if name in ("skip", "include") and directive.arguments:
            value = directive.arguments[0].value
            condition = value_from_ast_untyped(value, cast("dict[str, Any]", variables))
            if condition is None and isinstance(value, VariableNode):
                fault = Fault(("variables", value.name.value), f"null does not decide @{name}")
                raise Refusal(Code.BAD_USER_INPUT, "Some arguments are not valid.", [fault])
            if bool(condition) != (name == "include"):
                return False
    return True


def page_info_parts(label: str, fields: Fields) -> PageInfo:
    """What is selected of the `pageInfo` of a connection."""
    return PageInfo(label, tuple((cast(InfoKind, nodes[0].name.value), key) for key, nodes in fields.items()))
