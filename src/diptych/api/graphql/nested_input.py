"""The input of a mutation as plain JSON, with the values of its variables."""

from __future__ import annotations

from typing import Any

from graphql import FieldNode, OperationDefinitionNode, parse, value_from_ast_untyped

from diptych.api.graphql.http import Parameters

_INPUTS = ("input", "patch")


def nested_input(sent: Parameters) -> Any:
    """The `input` or `patch` of the one root field of a mutation that was accepted; None if there are several."""
    operations = [node for node in parse(sent.query or "").definitions if isinstance(node, OperationDefinitionNode)]
    chosen = sent.operationName
    named = [node for node in operations if not chosen or (node.name and node.name.value == chosen)]
    roots = [node for operation in named for node in operation.selection_set.selections]
    if len(roots) != 1 or not isinstance(roots[0], FieldNode):
        return None
    inputs = [argument.value for argument in roots[0].arguments or () if argument.name.value in _INPUTS]
    return value_from_ast_untyped(inputs[0], sent.variables or {}) if inputs else None
