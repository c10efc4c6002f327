"""The arguments of a field: literals of the document are fixed values, and a variable has the path where it is sent.

So the next request of the same shape only binds values. `places` are those of literals that were lifted out of the
document: they are bound like variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import (
    FieldNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    ValueNode,
    VariableNode,
    value_from_ast_untyped,
)

from diptych.api.graphql.collect import with_defaults
from diptych.ask.slots import RawValue


class Arguments:
    """The arguments of the fields of one operation."""

    def __init__(
        self, operation: OperationDefinitionNode, variables: Mapping[str, Any], places: Mapping[int, int]
    ) -> None:
        self.places = places
        self.variables = with_defaults(operation, variables)
        self.defaults: dict[str, ValueNode] = {
            definition.variable.name.value: definition.default_value
            for definition in operation.variable_definitions or ()
            if definition.default_value is not None and definition.variable.name.value not in variables
        }

    def of(self, node: FieldNode) -> dict[str, RawValue]:
        """The arguments of a field; a variable that was not sent leaves its argument out."""
        path = response_path(node)
        arguments = {}
        for argument in node.arguments or ():
            raw = self._value(argument.value, (*path, argument.name.value))
            if raw is not None:
                arguments[argument.name.value] = raw
        return arguments

    def _value(self, node: ValueNode, path: tuple[str | int, ...]) -> RawValue | None:
        if isinstance(node, VariableNode):
            name = node.name.value
            if name in self.defaults:
                return self._value(self.defaults[name], ("variables", name))
            return RawValue(self.variables[name], ("variables", name)) if name in self.variables else None
        if isinstance(node, ObjectValueNode):
            entries = {field.name.value: self._value(field.value, (*path, field.name.value)) for field in node.fields}
            return RawValue({key: inner for key, inner in entries.items() if inner is not None}, path, fixed=True)
        if isinstance(node, ListValueNode):
            items = [self._value(item, (*path, index)) for index, item in enumerate(node.values)]
            return self._list_value(items, path)
        lifted = self.places.get(node.loc.start, -1) if self.places and node.loc else -1
        return RawValue(value_from_ast_untyped(node), path, fixed=lifted < 0, literal=lifted)

    @staticmethod
    def _list_value(items: list[RawValue | None], path: tuple[str | int, ...]) -> RawValue:
        """A list literal; a variable in it that was not sent is null, as the specification says."""
        return RawValue(
            [RawValue(None, path, fixed=True) if item is None else item for item in items], path, fixed=True
        )


def response_path(node: FieldNode) -> tuple[str, ...]:
    """The path of a field in the response: its alias or its name."""
    return (node.alias.value if node.alias else node.name.value,)
