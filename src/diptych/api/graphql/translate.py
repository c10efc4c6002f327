"""Translates a GraphQL operation into Asks.

The document was parsed and validated against the schema of the viewer before. Here its fields are collected
(`collect.py`), and a Read is built for each root field; `node` and `nodes` are a Read for each type that a row may
have. Literals of the document are fixed values; for variables, the path is recorded, so that the next request of the
same shape only binds values.

    query($n: Int) { posts(first: $n) { title } }    →    Read("Post", "list", …), slot 0 from variables.n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    value_from_ast_untyped,
)

from diptych.api.ask_builder import DEFAULT_SIZE, NESTED_SIZE, AskBuilder
from diptych.api.graphql.collect import Fields, collect, fragments_of, with_defaults
from diptych.api.graphql.mutations import mutation_names
from diptych.api.graphql.node_lookup import NODE_FIELDS, check_lookups, node_types
from diptych.api.graphql.schema import EMPTY_ROOT
from diptych.ask.nodes import (
    Call,
    ChangePart,
    ChangeWhat,
    ConnectionPart,
    EdgePart,
    Edges,
    Field,
    Follow,
    InfoKind,
    Nodes,
    OrderBy,
    Page,
    PageInfo,
    Pick,
    Read,
    Total,
    TypeName,
    Write,
)
from diptych.ask.slots import ID_COUNT, RawValue
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.errors import Code, Refusal
from diptych.model.rules.expr import TRUE, Col, Compare, Expr, and_
from diptych.model.scalars import ID
from diptych.model.view import ResourceView, View
from diptych.model.viewer_object import ROOT, VIEWER

_NO_PLACES: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class Root:
    """A root field: its key in the response, and how it is answered."""

    label: str
    kind: Literal["ask", "call", "constant", "introspection"]
    constant: bytes = b""
    types: int = 1
    """The number of Asks that look for the row, one for each type that it may have."""
    many: bool = False
    """Does each of these Asks look for several rows?"""


@dataclass(frozen=True, slots=True, eq=False)
class TranslatedOperation:
    """A translated operation: its Asks, and its root fields in the order of the request."""

    wish: Wish
    roots: tuple[Root, ...]
    writes: tuple[WriteWish | CallWish, ...] = ()
    calls: tuple[CallWish, ...] = ()
    watch: WatchWish | None = None
    """The Ask of a subscription."""


def translate(
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: Mapping[str, Any],
    view: View,
    places: Mapping[int, int] = _NO_PLACES,
) -> TranslatedOperation:
    """The Asks of an operation. One Refusal has all faults of its arguments. `places` are those of lifted literals."""
    return _Translator(fragments_of(document), operation, variables, view, places).operation()


class _Translator:
    def __init__(
        self,
        fragments: Mapping[str, FragmentDefinitionNode],
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any],
        view: View,
        places: Mapping[int, int],
    ) -> None:
        self.fragments = fragments
        self.places = places
        self.node = operation
        self.view = view
        self.builder = AskBuilder(view)
        self.variables = with_defaults(operation, variables)
        self.defaults: dict[str, ValueNode] = {
            definition.variable.name.value: definition.default_value
            for definition in operation.variable_definitions or ()
            if definition.default_value is not None and definition.variable.name.value not in variables
        }

    def operation(self) -> TranslatedOperation:
        if self.node.operation is OperationType.SUBSCRIPTION:
            return self._subscription()
        asks: list[Read] = []
        roots: list[Root] = []
        writes: list[WriteWish | CallWish] = []
        calls: list[CallWish] = []
        for label, nodes in self._collect(self.node.selection_set).items():
            name = nodes[0].name.value
            if name == "__typename":
                kind = "Mutation" if self.node.operation is OperationType.MUTATION else "Query"
                roots.append(Root(label, "constant", f'"{kind}"'.encode()))
            elif name in ("__schema", "__type"):
                roots.append(Root(label, "introspection"))
            elif name == EMPTY_ROOT and not self.view.resources:
                roots.append(Root(label, "constant", b"null"))
            elif self.node.operation is OperationType.MUTATION:
                roots.append(Root(label, "ask"))
                writes.append(self._call(name, nodes) if name in self.view.calls else self._write(name, nodes))
            elif name in self.view.calls:
                roots.append(Root(label, "call"))
                calls.append(self._call(name, nodes))
            elif name in NODE_FIELDS and (types := node_types(self.view)):
                found = self._nodes(name, nodes, types)
                roots.append(Root(label, "ask", types=len(found), many=name == "nodes"))
                asks += found
            else:
                roots.append(Root(label, "ask"))
                asks.append(self._root(name, nodes))
        check_lookups(asks)
        self.builder.done(Code.BAD_USER_INPUT, "Some arguments are not valid.")
        slots = self.builder.slots
        wish = Wish(tuple(asks), tuple(slots.slots), tuple(slots.sources))
        return TranslatedOperation(wish, tuple(roots), tuple(writes), tuple(calls))

    def _subscription(self) -> TranslatedOperation:
        """A subscription has one root field: what it follows, and what it selects of a change."""
        fields = self._collect(self.node.selection_set)
        if len(fields) != 1:  # it may be skipped
            raise Refusal(Code.GRAPHQL_VALIDATION_FAILED, "A subscription needs one root field.")
        ((label, nodes),) = fields.items()
        resource = next(
            resource for resource in self.view.resources.values() if resource.resource.changed == nodes[0].name.value
        )
        arguments = self._arguments(nodes[0])
        key, where = arguments.get("id"), arguments.get("where")
        conditions: list[Expr] = []
        if key is not None and key.value is not None:
            conditions.append(Compare("eq", Col(("id",)), self.builder.slots.take(resource.resource.key, key)))
        if where is not None and where.value is not None:
            conditions.append(self.builder.where(where, resource))
        wish = self.builder.watch(resource, self._change_parts(nodes, resource), and_(*conditions), arguments)
        self.builder.done(Code.BAD_USER_INPUT, "Some arguments are not valid.")
        return TranslatedOperation(Wish((), (), ()), (Root(label, "ask"),), watch=wish)

    def _change_parts(self, nodes: Iterable[FieldNode], resource: ResourceView) -> tuple[ChangePart, ...]:
        parts: list[ChangePart] = []
        for label, inner in self._below(nodes).items():
            name = inner[0].name.value
            if name == resource.resource.one:
                parts.append(ChangePart("row", label, self._picks(inner, resource)))
            else:
                parts.append(ChangePart(cast(ChangeWhat, name), label))
        return tuple(parts)

    def _call(self, name: str, nodes: list[FieldNode]) -> CallWish:
        """A call of the model's own code, with slots of its own."""
        outer, self.builder = self.builder, AskBuilder(self.view)
        resource, definition = self.view.calls[name]
        arguments = self._arguments(nodes[0])
        path = self._path(nodes[0])
        key = None
        if definition.on == "row":
            key = self.builder.slots.take(resource.key, arguments.pop("id"), target=resource.name)
        values = self.builder.arguments(definition, arguments, path)
        target = definition.result.resource
        picks = self._picks(nodes, self.view.resources[target]) if target else ()
        wish = self.builder.call(Call(resource.name, definition.name, key, values, picks), path)
        self.builder = outer
        return wish

    def _write(self, name: str, nodes: list[FieldNode]) -> WriteWish:
        """One write, with slots of its own, so that equal writes are equal Asks wherever they are."""
        outer, self.builder = self.builder, AskBuilder(self.view)
        builder = self.builder
        resource, verb = next(
            (resource, names[name])
            for resource in self.view.resources.values()
            if name in (names := mutation_names(resource.resource))
        )
        arguments = self._arguments(nodes[0])
        word = "patch" if verb == "update" else "input"
        raw = arguments.get(word, RawValue({}, (*self._path(nodes[0]), word), fixed=True))
        key = builder.row_id(resource, arguments.get("id"))
        values = builder.values(verb, resource, raw) if verb != "delete" else ()
        version = builder.version(arguments.get("ifVersion"))
        ask = Write(verb, resource.resource.name, key, values, version, self._picks(nodes, resource))
        self.builder = outer
        return builder.write(ask, raw.path)

    def _collect(self, *sets: SelectionSetNode | None, of: str = "") -> Fields:
        return collect(sets, self.fragments, self.variables, of)

    def _below(self, nodes: Iterable[FieldNode], of: str = "") -> Fields:
        return self._collect(*(node.selection_set for node in nodes), of=of)

    def _root(self, name: str, nodes: list[FieldNode]) -> Read:
        if name == ROOT:
            return Read(VIEWER, "one", self._picks(nodes, self.view.resources[VIEWER]))
        for resource in self.view.resources.values():
            definition = resource.resource
            if name == definition.one:
                key = self.builder.slots.take(definition.key, self._arguments(nodes[0])["id"])
                return Read(definition.name, "one", self._picks(nodes, resource), Compare("eq", Col(("id",)), key))
            if name in (definition.many, definition.connection):
                return self._list(nodes, resource, connection=name == definition.connection)
        raise LookupError(name)

    def _nodes(self, name: str, nodes: list[FieldNode], types: list[ResourceView]) -> list[Read]:
        """The Reads of `node` or `nodes`: one for each type, all with the same ids."""
        arguments = self._arguments(nodes[0])
        slots = self.builder.slots
        if name == "node":
            key = Compare("eq", Col(("id",)), slots.take(ID, arguments["id"]))
            return [Read(each.resource.name, "one", self._picks(nodes, each), key) for each in types]
        page = Page(slots.take(ID_COUNT, arguments["ids"]), ids=slots.take(ID, arguments["ids"], many=True))
        return [Read(each.resource.name, "each", self._picks(nodes, each), page=page) for each in types]

    def _list(
        self, nodes: list[FieldNode], resource: ResourceView, default: int = DEFAULT_SIZE, *, connection: bool
    ) -> Read:
        arguments = self._arguments(nodes[0])
        where = arguments.get("where")
        filtered = self.builder.where(where, resource) if where is not None and where.value is not None else TRUE
        order = self._order(arguments.get("orderBy"), resource)
        page = self.builder.page(arguments, self._path(nodes[0]), default)
        if connection:
            return Read(resource.resource.name, "page", self._parts(nodes, resource), filtered, order, page)
        return Read(resource.resource.name, "list", self._picks(nodes, resource), filtered, order, page)

    def _order(self, raw: RawValue | None, resource: ResourceView) -> tuple[OrderBy, ...]:
        if raw is None or raw.value is None:
            return ()
        keys: list[OrderBy] = []
        for item in raw.items():
            entries = item.entries() if isinstance(item.value, dict) else []
            if len(entries) != 1 or entries[0][1].value not in ("ASC", "DESC"):
                self.builder.fault(item.path, "expected exactly one field with ASC or DESC")
                continue
            (name, direction) = entries[0]
            key = self.builder.sort_key(name, direction.value == "DESC", item.path, resource)
            keys.extend([key] if key else [])
        return tuple(keys)

    # selections

    def _picks(self, nodes: Iterable[FieldNode], resource: ResourceView) -> tuple[Pick, ...]:
        fields = self._below(nodes, of=resource.resource.name)
        return tuple(self._pick(label, inner, resource) for label, inner in fields.items())

    def _pick(self, label: str, nodes: list[FieldNode], resource: ResourceView) -> Pick:
        name = nodes[0].name.value
        if name == "__typename":
            return TypeName(label, resource.resource.name)
        if name in resource.fields:
            return Field(name, label)
        connection = name not in resource.relations
        relation = resource.relations[name.removesuffix("Connection") if connection else name].relation
        target = self.view.resources[relation.target]
        if relation.kind == "one":
            return Follow(relation.name, label, Read(relation.target, "one", self._picks(nodes, target)))
        return Follow(relation.name, label, self._list(nodes, target, NESTED_SIZE, connection=connection))

    def _parts(self, nodes: Iterable[FieldNode], resource: ResourceView) -> tuple[ConnectionPart, ...]:
        result: list[ConnectionPart] = []
        for label, inner in self._below(nodes).items():
            match inner[0].name.value:
                case "__typename":
                    result.append(TypeName(label, resource.resource.name + "Connection"))
                case "nodes":
                    result.append(Nodes(label, self._picks(inner, resource)))
                case "edges":
                    result.append(Edges(label, self._edges(inner, resource)))
                case "pageInfo":
                    parts = self._below(inner).items()
                    names = tuple((cast(InfoKind, deeper[0].name.value), key) for key, deeper in parts)
                    result.append(PageInfo(label, names))
                case "totalCount":
                    result.append(Total(label))
        return tuple(result)

    def _edges(self, nodes: Iterable[FieldNode], resource: ResourceView) -> tuple[EdgePart, ...]:
        parts: list[EdgePart] = []
        for label, inner in self._below(nodes).items():
            kind = cast(Literal["cursor", "node", "__typename"], inner[0].name.value)
            parts.append(EdgePart(kind, label, self._picks(inner, resource) if kind == "node" else ()))
        return tuple(parts)

    # arguments

    def _path(self, node: FieldNode) -> tuple[str, ...]:
        return (node.alias.value if node.alias else node.name.value,)

    def _arguments(self, node: FieldNode) -> dict[str, RawValue]:
        """The arguments of a field; a variable that was not sent leaves its argument out."""
        path = self._path(node)
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
