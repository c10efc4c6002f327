"""Answers `__schema` and `__type` as JSON.

    describe(document, variables, schema)    →    {"__schema": b'{"types":[…'}

graphql-core's executor makes an object for each value of the answer: that of 300 resources of 50 fields takes it twelve
seconds, and millions of objects. Here the selections are compiled once, into functions that write the JSON of a type, a
field or an argument; what they describe, the resolvers of graphql-core say. A type that is referred to is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    SchemaMetaFieldDef,
    SelectionSetNode,
    TypeMetaFieldDef,
    Undefined,
    value_from_ast_untyped,
)

from diptych.api.graphql.collect import collect, fragments_of, with_defaults
from diptych.api.graphql.document import Document
from diptych.api.reply import DocumentRefusal
from diptych.errors import Code

Answer = dict[str, bytes]
"""The JSON of each root field, by response key."""
Write = Callable[[Any], bytes]
_ROOTS = {"__schema": SchemaMetaFieldDef, "__type": TypeMetaFieldDef}
_encode = msgspec.json.encode


def introspection_of(document: Document, variables: Mapping[str, Any], schema: GraphQLSchema) -> Answer:
    """The introspection of a document."""
    values = with_defaults(document.operation, variables)
    writer = _Writer(schema, fragments_of(document.node), values)
    fields = collect([document.operation.selection_set], writer.fragments, values)
    try:
        return {
            key: writer.root(_ROOTS[nodes[0].name.value], nodes)
            for key, nodes in fields.items()
            if nodes[0].name.value in _ROOTS
        }
    except GraphQLError as error:
        raise DocumentRefusal(Code.BAD_USER_INPUT, [error]) from None


class _Writer:
    """The functions that write each selection of a document."""

    def __init__(self, schema: GraphQLSchema, fragments: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self.fragments = fragments
        self._values = dict(values)
        self._info: Any = SimpleNamespace(schema=schema)  # all that the resolvers ask for
        self._objects: dict[tuple[str, tuple[int, ...]], Write] = {}
        self._selections: dict[tuple[int, ...], dict[bytes, list[FieldNode]]] = {}

    def root(self, field: Any, nodes: Sequence[FieldNode]) -> bytes:
        """Write `__schema` or `__type`."""
        arguments = self._arguments(nodes[0])
        if field is TypeMetaFieldDef and not isinstance(arguments.get("name"), str):
            raise GraphQLError("Argument 'name' of required type 'String!' was not provided.", nodes[0])
        return self._value(field.type, nodes)(field.resolve(None, self._info, **arguments))

    def _collected(self, sets: Sequence[SelectionSetNode | None]) -> dict[bytes, list[FieldNode]]:
        """The fields of selection sets by their keys in the JSON."""
        mark = tuple(map(id, sets))
        if mark not in self._selections:
            fields = collect(sets, self.fragments, self._values)
            self._selections[mark] = {_encode(key) + b":": nodes for key, nodes in fields.items()}
        return self._selections[mark]

    def _field(self, kind: GraphQLObjectType, nodes: Sequence[FieldNode]) -> Write:
        """What writes the value of a field of an object."""
        name = nodes[0].name.value
        if name == "__typename":
            constant = _encode(kind.name)
            return lambda _: constant
        field = kind.fields[name]
        read, write = self._read(field, nodes), self._value(field.type, nodes)
        return lambda source: write(read(source))

    def _read(self, field: Any, nodes: Sequence[FieldNode]) -> Callable[[Any], Any]:
        resolve, info = field.resolve, self._info
        arguments = self._arguments(nodes[0])
        return lambda source: resolve(source, info, **arguments)

    def _arguments(self, node: FieldNode) -> dict[str, Any]:
        """The arguments of a field: strings and booleans, which are the same in Python."""
        given = {
            argument.name.value: value_from_ast_untyped(argument.value, self._values)
            for argument in node.arguments or ()
        }
        return {name: value for name, value in given.items() if value is not Undefined}

    def _value(self, kind: Any, nodes: Sequence[FieldNode]) -> Write:
        """What writes a value of a type."""
        if isinstance(kind, GraphQLNonNull):
            return self._value(kind.of_type, nodes)
        if isinstance(kind, GraphQLList):
            item = self._value(kind.of_type, nodes)
            return lambda values: b"null" if values is None else b"[%b]" % b",".join([item(inner) for inner in values])
        if isinstance(kind, GraphQLObjectType):
            return self._object(kind, [node.selection_set for node in nodes])
        serialize = kind.serialize
        return lambda value: b"null" if value is None else _encode(serialize(value))

    def _object(self, kind: GraphQLObjectType, sets: Sequence[SelectionSetNode | None]) -> Write:
        """What writes an object; that of a named type is kept, since many fields refer to it."""
        mark = (kind.name, tuple(map(id, sets)))
        if mark in self._objects:
            return self._objects[mark]
        fields: list[tuple[bytes, Write]] = []
        kept: dict[int, bytes] = {}

        def write(source: Any) -> bytes:
            if source is None:
                return b"null"
            is_named = isinstance(source, GraphQLNamedType)
            if is_named and id(source) in kept:
                return kept[id(source)]
            written = b"{%b}" % b",".join([key + part(source) for key, part in fields])
            if is_named:
                kept[id(source)] = written
            return written

        self._objects[mark] = write
        for key, nodes in self._collected(sets).items():
            fields.append((key, self._field(kind, nodes)))
        return write
