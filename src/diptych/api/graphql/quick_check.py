"""Recognises valid documents in one pass; graphql-core validates all others, and finds their errors.

    is_surely_valid(document, schema)        True: no rule of the specification finds anything. False: who knows?

graphql-core's rules are two dozen visitors that are called at every node: for most documents, which are valid, more
than half of all that planning takes. Here one walk along the types of the schema checks what those rules check. It
gives up where a document has anything wrong, or anything rare: introspection, directives but @skip and @include,
literals of custom scalars in brackets. So it needs no messages, and cannot reject a document; that it never accepts an
invalid one is tested against graphql-core. (Conflicts of fields are left to `merge.py`, as in `rules.py`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphql import (
    ArgumentNode,
    BooleanValueNode,
    DirectiveNode,
    DocumentNode,
    EnumValueNode,
    FieldNode,
    FloatValueNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLFloat,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLString,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    NullValueNode,
    ObjectFieldNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    StringValueNode,
    Undefined,
    ValueNode,
    VariableNode,
    is_input_type,
    type_from_ast,
)

_LITERALS: Mapping[GraphQLScalarType, tuple[type[ValueNode], ...]] = {
    GraphQLString: (StringValueNode,),
    GraphQLID: (StringValueNode, IntValueNode),
    GraphQLInt: (IntValueNode,),
    GraphQLFloat: (IntValueNode, FloatValueNode),
    GraphQLBoolean: (BooleanValueNode,),
}
_DIGITS = 9
"""Digits of a number that surely has 32 bits."""
_CONDITIONS = ("skip", "include")


class _Unsure(Exception):
    """Something is wrong, or rare."""


def is_surely_valid(document: DocumentNode, schema: GraphQLSchema) -> bool:
    """Is a document valid, as far as one walk can see?"""
    try:
        _Walk(document, schema).run()
    except (_Unsure, RecursionError):
        return False
    return True


class _Walk:
    """One walk through all operations of a document."""

    def __init__(self, document: DocumentNode, schema: GraphQLSchema) -> None:
        self.schema = schema
        self.operations: list[OperationDefinitionNode] = []
        self.fragments: dict[str, FragmentDefinitionNode] = {}
        for node in document.definitions:
            if isinstance(node, OperationDefinitionNode):
                self.operations.append(node)
            elif isinstance(node, FragmentDefinitionNode) and node.name.value not in self.fragments:
                self.fragments[node.name.value] = node
            else:
                raise _Unsure
        self.variables: dict[str, Any] = {}
        """The types of the variables of an operation."""
        self.used: set[str] = set()
        self.spread: set[str] = set()
        """The fragments that an operation has spread."""
        self.inside: set[str] = set()
        """The fragments that the walk is inside of."""

    def run(self) -> None:
        names = {node.name.value if node.name else "" for node in self.operations}
        if len(names) < len(self.operations) or ("" in names and len(names) > 1):
            raise _Unsure
        reached: set[str] = set()
        for node in self.operations:
            self._operation(node)
            reached |= self.spread
        if reached != self.fragments.keys():
            raise _Unsure

    def _operation(self, node: OperationDefinitionNode) -> None:
        root = self.schema.get_root_type(node.operation)
        if root is None or node.directives:
            raise _Unsure
        if node.operation is OperationType.SUBSCRIPTION:
            first, *others = node.selection_set.selections
            if others or first.directives or not isinstance(first, FieldNode) or first.name.value == "__typename":
                raise _Unsure
        self.variables, self.used, self.spread = {}, set(), set()
        for definition in node.variable_definitions or ():
            name, declared = definition.variable.name.value, type_from_ast(self.schema, definition.type)
            if definition.directives or declared is None or not is_input_type(declared) or name in self.variables:
                raise _Unsure
            if definition.default_value is not None:
                self._value(definition.default_value, declared)
                if not isinstance(definition.default_value, NullValueNode) and not isinstance(declared, GraphQLNonNull):
                    declared = GraphQLNonNull(declared)
            self.variables[name] = declared
        if self.used:  # in a default
            raise _Unsure
        self._selections(node.selection_set, root)
        if self.used != self.variables.keys():
            raise _Unsure

    def _selections(self, selected: SelectionSetNode, parent: GraphQLObjectType | GraphQLInterfaceType) -> None:
        fields = parent.fields
        for node in selected.selections:
            if node.directives:
                self._conditions(node.directives)
            if isinstance(node, FieldNode):
                name = node.name.value
                field = fields.get(name)
                if field is not None:
                    self._field(node, field.args, field.type)
                elif name != "__typename" or node.arguments or node.selection_set:
                    raise _Unsure
            elif isinstance(node, FragmentSpreadNode):
                self._spread(node.name.value, parent)
            elif isinstance(node, InlineFragmentNode):
                inner = (
                    parent if node.type_condition is None else self._narrowed(node.type_condition.name.value, parent)
                )
                self._selections(node.selection_set, inner)
            else:
                raise _Unsure

    def _narrowed(
        self, name: str, parent: GraphQLObjectType | GraphQLInterfaceType
    ) -> GraphQLObjectType | GraphQLInterfaceType:
        """The type of a fragment: that of the selection around it, or one of those that it applies to."""
        if name == parent.name:
            return parent
        found = self.schema.get_type(name)
        if not isinstance(found, GraphQLObjectType) or parent not in found.interfaces:
            raise _Unsure
        return found

    def _spread(self, name: str, parent: GraphQLObjectType | GraphQLInterfaceType) -> None:
        fragment = self.fragments.get(name)
        if fragment is None or fragment.directives:
            raise _Unsure
        inner = self._narrowed(fragment.type_condition.name.value, parent)
        if getattr(fragment, "variable_definitions", None):
            raise _Unsure
        if name in self.inside:  # a cycle
            raise _Unsure
        if name not in self.spread:
            self.spread.add(name)
            self.inside.add(name)
            self._selections(fragment.selection_set, inner)
            self.inside.remove(name)

    def _field(self, node: FieldNode, arguments: Mapping[str, GraphQLArgument], result: Any) -> None:
        if arguments or node.arguments:
            self._entries(node.arguments or (), arguments)
        while isinstance(result, GraphQLNonNull | GraphQLList):
            result = result.of_type
        if isinstance(result, GraphQLObjectType | GraphQLInterfaceType):
            if node.selection_set is None:
                raise _Unsure
            self._selections(node.selection_set, result)
        elif node.selection_set is not None or not isinstance(result, GraphQLScalarType | GraphQLEnumType):
            raise _Unsure

    def _conditions(self, directives: Sequence[DirectiveNode]) -> None:
        if len({node.name.value for node in directives}) < len(directives):
            raise _Unsure
        for node in directives:
            directive = self.schema.get_directive(node.name.value)
            if directive is None or directive.name not in _CONDITIONS:
                raise _Unsure
            self._entries(node.arguments or (), directive.args)

    def _entries(
        self,
        nodes: Iterable[ArgumentNode] | Iterable[ObjectFieldNode],
        known: Mapping[str, GraphQLArgument] | Mapping[str, GraphQLInputField],
    ) -> None:
        """The arguments of a field, or the fields of an object: known, once each, of their types, and all that must."""
        seen = set()
        expected: Any
        for node in nodes:
            name = node.name.value
            expected = known.get(name)
            if expected is None or name in seen:
                raise _Unsure
            seen.add(name)
            is_optional = isinstance(node.value, VariableNode) and not _is_required(expected)
            nullable = is_optional and isinstance(expected.type, GraphQLNonNull)
            self._value(node.value, expected.type.of_type if nullable else expected.type)
        if len(seen) < len(known):
            for name, expected in known.items():
                if name not in seen and _is_required(expected):
                    raise _Unsure

    def _value(self, node: ValueNode, expected: Any) -> None:
        if isinstance(node, VariableNode):
            name = node.name.value
            if not _is_subtype(self.variables.get(name), expected):
                raise _Unsure
            self.used.add(name)
            return
        if isinstance(expected, GraphQLNonNull):
            expected = expected.of_type
            if isinstance(node, NullValueNode):
                raise _Unsure
        if isinstance(node, NullValueNode):
            return
        if isinstance(expected, GraphQLList):
            for item in node.values if isinstance(node, ListValueNode) else (node,):
                self._value(item, expected.of_type)
        elif isinstance(expected, GraphQLInputObjectType):
            if not isinstance(node, ObjectValueNode) or (expected.is_one_of and not _is_one(node)):
                raise _Unsure
            self._entries(node.fields, expected.fields)
        elif not _is_literal(node, expected):
            raise _Unsure


def _is_one(node: ObjectValueNode) -> bool:
    """Has an object exactly one field, which is a literal?"""
    return len(node.fields) == 1 and not isinstance(node.fields[0].value, NullValueNode | VariableNode)


def _is_required(expected: Any) -> bool:
    is_set = expected.default is not None or expected.default_value is not Undefined
    return isinstance(expected.type, GraphQLNonNull) and not is_set


def _is_subtype(given: Any, expected: Any) -> bool:
    """Does a variable of one type fit where another is expected? (Types in brackets are equal if those inside are.)"""
    if given is None:
        return False
    if isinstance(expected, GraphQLNonNull):
        return isinstance(given, GraphQLNonNull) and _is_subtype(given.of_type, expected.of_type)
    if isinstance(given, GraphQLNonNull):
        return _is_subtype(given.of_type, expected)
    if isinstance(expected, GraphQLList):
        return isinstance(given, GraphQLList) and _is_subtype(given.of_type, expected.of_type)
    return given is expected


def _is_literal(node: Any, expected: Any) -> bool:
    """Is a literal surely one of a scalar or an enum?"""
    if isinstance(expected, GraphQLEnumType):
        return isinstance(node, EnumValueNode) and node.value in expected.values
    kinds: Any = _LITERALS.get(expected)
    if kinds is not None:
        return isinstance(node, kinds) and (expected is not GraphQLInt or len(node.value) <= _DIGITS)
    if not isinstance(expected, GraphQLScalarType) or isinstance(node, ListValueNode | ObjectValueNode):
        return False
    literal: Any = expected.coerce_input_literal or expected.parse_literal
    try:
        return literal(node) is not Undefined
    except Exception:
        return False
