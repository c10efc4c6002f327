"""Parses ordinary documents from tokens to the syntax tree of graphql-core, in half the time that its parser takes.

    parse_ordinary(text, tokenize(text, 2_000))     a DocumentNode; or None: graphql-core parses it, or finds its error

Ordinary are operations and fragments with fields, arguments, variables and directives. Defaults of variables, floats,
block strings, descriptions and everything that is no document are left to graphql-core. The tree and its locations are
the same, which tests compare; only the tokens of a location are left out.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeVar

from graphql import (
    ArgumentNode,
    BooleanValueNode,
    DirectiveNode,
    DocumentNode,
    EnumValueNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    ListTypeNode,
    ListValueNode,
    Location,
    NamedTypeNode,
    NameNode,
    Node,
    NonNullTypeNode,
    NullValueNode,
    ObjectFieldNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    Source,
    StringValueNode,
    VariableDefinitionNode,
    VariableNode,
)

from diptych.api.graphql.tokens import DocumentTokens, unquote
from diptych.api.graphql.tokens import parse_tokens as parse_by_core

N = TypeVar("N", bound=Node)
_OPERATIONS = {kind.value: kind for kind in OperationType}
_CONSTANTS: dict[str, Any] = {"true": True, "false": False}
_INT = re.compile("-?(?:0|[1-9][0-9]*)")
_new = object.__new__


class _Uncommon(Exception):
    """Something that graphql-core is to parse."""


class _Location(Location):
    """A location without its tokens."""

    __slots__ = ()

    def __init__(self, start: int, end: int, source: Source) -> None:
        self.start = start
        self.end = end
        self.source = source


def parse(text: str, tokens: DocumentTokens) -> DocumentNode:
    """Parse a document: an ordinary one here, any other by graphql-core."""
    return parse_ordinary(text, tokens) or parse_by_core(text, tokens)


def parse_ordinary(text: str, tokens: DocumentTokens) -> DocumentNode | None:
    """The tree of a document; None if it is not an ordinary one."""
    try:
        return _Parser(text, tokens).document()
    except _Uncommon:
        return None


def _node(kind: type[N], attributes: dict[str, Any]) -> N:
    """A node with its attributes. (The constructors of these classes set each by a call; defaults are in the class.)"""
    node = _new(kind)
    node.__dict__.update(attributes)
    return node


class _Parser:
    """Recursive descent over the tokens of a document."""

    def __init__(self, text: str, tokens: DocumentTokens) -> None:
        self.source = Source(text)
        self.kinds: list[str] = []
        self.values: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.at = 0
        for match in tokens:
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            value = match[kind]
            if match.end(1) != start or kind == "block" or (kind == "name" and not value.isascii()):
                raise _Uncommon
            self.kinds.append(kind)
            self.values.append(value)
            self.starts.append(start)
            self.ends.append(end)
        if not self.kinds or self.kinds[-1] != "end":
            raise _Uncommon

    def _loc(self, start: int) -> _Location:
        """From the token at which a node begins to the last one that was consumed."""
        return _Location(self.starts[start], self.ends[self.at - 1], self.source)

    def _take(self, mark: str) -> None:
        if self.values[self.at] != mark:
            raise _Uncommon
        self.at += 1

    def _is(self, mark: str) -> bool:
        return self.values[self.at] == mark

    def _name(self) -> NameNode:
        at = self.at
        if self.kinds[at] != "name":
            raise _Uncommon
        self.at = at + 1
        location = _Location(self.starts[at], self.ends[at], self.source)
        return _node(NameNode, {"loc": location, "value": self.values[at]})

    def document(self) -> DocumentNode:
        definitions: list[Any] = []
        while self.kinds[self.at] != "end":
            definitions.append(self._definition())
        if not definitions:
            raise _Uncommon
        location = _Location(0, len(self.source.body), self.source)
        return _node(DocumentNode, {"loc": location, "definitions": tuple(definitions)})

    def _definition(self) -> OperationDefinitionNode | FragmentDefinitionNode:
        start, word = self.at, self.values[self.at]
        attributes: dict[str, Any] = {}
        if word == "{":
            attributes["operation"] = OperationType.QUERY
        elif self.kinds[start] != "name":
            raise _Uncommon
        elif word == "fragment":
            return self._fragment()
        elif word in _OPERATIONS:
            attributes["operation"] = _OPERATIONS[word]
            self.at += 1
            if self.kinds[self.at] == "name":
                attributes["name"] = self._name()
            attributes["variable_definitions"] = self._variables() if self._is("(") else None
            attributes["directives"] = self._directives()
        else:
            raise _Uncommon
        attributes["selection_set"] = self._selections()
        attributes["loc"] = self._loc(start)
        return _node(OperationDefinitionNode, attributes)

    def _fragment(self) -> FragmentDefinitionNode:
        start = self.at
        self.at += 1
        if self._is("on"):
            raise _Uncommon
        name = self._name()
        self._take("on")
        condition = self._named_type()
        directives = self._directives()
        selections = self._selections()
        attributes = {"name": name, "type_condition": condition, "directives": directives, "selection_set": selections}
        return _node(FragmentDefinitionNode, {**attributes, "variable_definitions": (), "loc": self._loc(start)})

    def _variables(self) -> tuple[VariableDefinitionNode, ...]:
        self.at += 1
        variables: list[VariableDefinitionNode] = []
        while not self._is(")"):
            start = self.at
            variable = self._variable()
            self._take(":")
            declared = self._type()
            if self._is("=") or self._is("@"):
                raise _Uncommon
            attributes = {"variable": variable, "type": declared, "loc": self._loc(start)}
            variables.append(_node(VariableDefinitionNode, attributes))
        return self._closed(variables)

    def _closed(self, nodes: list[N]) -> tuple[N, ...]:
        """What was in brackets: at least one."""
        if not nodes:
            raise _Uncommon
        self.at += 1
        return tuple(nodes)

    def _variable(self) -> VariableNode:
        start = self.at
        self._take("$")
        name = self._name()
        return _node(VariableNode, {"name": name, "loc": self._loc(start)})

    def _named_type(self) -> NamedTypeNode:
        start = self.at
        name = self._name()
        return _node(NamedTypeNode, {"name": name, "loc": self._loc(start)})

    def _type(self) -> Any:
        start = self.at
        declared: Any
        if self._is("["):
            self.at += 1
            inner = self._type()
            self._take("]")
            declared = _node(ListTypeNode, {"type": inner, "loc": self._loc(start)})
        else:
            declared = self._named_type()
        if self._is("!"):
            self.at += 1
            return _node(NonNullTypeNode, {"type": declared, "loc": self._loc(start)})
        return declared

    def _selections(self) -> SelectionSetNode:
        start = self.at
        self._take("{")
        nodes: list[Any] = []
        values = self.values
        while values[self.at] != "}":
            nodes.append(self._spread() if values[self.at] == "..." else self._field())
        selections = self._closed(nodes)
        return _node(SelectionSetNode, {"selections": selections, "loc": self._loc(start)})

    def _field(self) -> FieldNode:
        start = self.at
        attributes: dict[str, Any] = {"name": self._name()}
        if self._is(":"):
            self.at += 1
            attributes["alias"] = attributes["name"]
            attributes["name"] = self._name()
        if self._is("("):
            attributes["arguments"] = self._arguments()
        if self._is("@"):
            attributes["directives"] = self._directives()
        if self._is("{"):
            attributes["selection_set"] = self._selections()
        attributes["loc"] = self._loc(start)
        return _node(FieldNode, attributes)

    def _spread(self) -> FragmentSpreadNode | InlineFragmentNode:
        start = self.at
        self.at += 1
        attributes: dict[str, Any] = {}
        is_on = self._is("on")
        if self.kinds[self.at] == "name" and not is_on:
            attributes["name"] = self._name()
            if self._is("("):
                raise _Uncommon
            attributes["directives"] = self._directives()
            attributes["loc"] = self._loc(start)
            return _node(FragmentSpreadNode, attributes)
        if is_on:
            self.at += 1
            attributes["type_condition"] = self._named_type()
        attributes["directives"] = self._directives()
        attributes["selection_set"] = self._selections()
        attributes["loc"] = self._loc(start)
        return _node(InlineFragmentNode, attributes)

    def _directives(self) -> tuple[DirectiveNode, ...] | None:
        nodes: list[DirectiveNode] = []
        while self._is("@"):
            start = self.at
            self.at += 1
            name = self._name()
            arguments = self._arguments() if self._is("(") else None
            nodes.append(_node(DirectiveNode, {"name": name, "arguments": arguments, "loc": self._loc(start)}))
        return tuple(nodes) or None

    def _arguments(self) -> tuple[ArgumentNode, ...]:
        self.at += 1
        nodes: list[ArgumentNode] = []
        while not self._is(")"):
            nodes.append(self._pair(ArgumentNode))
        return self._closed(nodes)

    def _pair(self, kind: type[N]) -> N:
        """A name with its value: an argument, or a field of an object."""
        start = self.at
        name = self._name()
        self._take(":")
        value = self._value()
        return _node(kind, {"name": name, "value": value, "loc": self._loc(start)})

    def _value(self) -> Any:
        start, kind = self.at, self.kinds[self.at]
        if kind == "name":
            return self._word()
        if kind == "string" or kind == "number":
            self.at += 1
            return self._literal(start, kind)
        mark = self.values[start]
        if mark == "$":
            return self._variable()
        self.at += 1
        nodes: list[Any] = []
        if mark == "[":
            while self.values[self.at] != "]":
                nodes.append(self._value())
            self.at += 1
            return _node(ListValueNode, {"values": tuple(nodes), "loc": self._loc(start)})
        if mark == "{":
            while self.values[self.at] != "}":
                nodes.append(self._pair(ObjectFieldNode))
            self.at += 1
            return _node(ObjectValueNode, {"fields": tuple(nodes), "loc": self._loc(start)})
        return self._give_up()

    def _word(self) -> BooleanValueNode | NullValueNode | EnumValueNode:
        value = self.values[self.at]
        self.at += 1
        location = self._loc(self.at - 1)
        if value in _CONSTANTS:
            return _node(BooleanValueNode, {"value": _CONSTANTS[value], "loc": location})
        if value == "null":
            return _node(NullValueNode, {"loc": location})
        return _node(EnumValueNode, {"value": value, "loc": location})

    def _literal(self, at: int, kind: str) -> StringValueNode | IntValueNode:
        value = self.values[at]
        if kind == "number":
            if not _INT.fullmatch(value):
                self._give_up()
            return _node(IntValueNode, {"value": value, "loc": self._loc(at)})
        try:
            return _node(StringValueNode, {"value": unquote(value), "block": False, "loc": self._loc(at)})
        except ValueError:
            return self._give_up()

    def _give_up(self) -> NoReturn:
        raise _Uncommon
