"""A GraphQL operation → Asks.

The document was parsed and validated against the viewer's schema before it comes here. What is left is to
collect the fields (fragments unfolded, @skip and @include decided, equal keys merged) and to draw a Read for
each root field. Values that are written in the document are fixed; those in variables are noted by their
place, so that the next request of the same shape is only looked up.

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
    FragmentSpreadNode,
    InlineFragmentNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    value_from_ast_untyped,
)

from diptych.api.draft import Draft
from diptych.api.graphql.mutations import mutation_names
from diptych.api.graphql.schema import EMPTY_ROOT
from diptych.ask.nodes import (
    Call,
    ChangePart,
    ChangeWhat,
    EdgePart,
    Edges,
    Field,
    Follow,
    InfoKind,
    Nodes,
    Order,
    PageInfo,
    Part,
    Pick,
    Read,
    Total,
    TypeName,
    Write,
)
from diptych.ask.slots import Given
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.errors import Code, Fault, Refusal
from diptych.model.expr import TRUE, Col, Compare, Expr, and_
from diptych.model.view import ResourceView, View

Fields = dict[str, list[FieldNode]]


@dataclass(frozen=True, slots=True)
class Root:
    """A root field: its key in the answer, and what answers it."""

    label: str
    kind: Literal["ask", "call", "constant", "introspection"]
    constant: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation, translated: what it reads or changes, and its root fields in the order asked."""

    wish: Wish
    roots: tuple[Root, ...]
    writes: tuple[WriteWish | CallWish, ...] = ()
    calls: tuple[CallWish, ...] = ()
    watch: WatchWish | None = None
    """What a subscription follows."""


def fragments_of(document: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    """The fragments of a document by name."""
    return {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}


def translate(
    document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any], view: View
) -> Operation:
    """The Asks of a query. Every fault in its arguments is in one Refusal."""
    return _Translator(fragments_of(document), operation, variables, view).operation()


def with_defaults(operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the variables; of those that were not given, their defaults."""
    found = dict(variables)
    for definition in operation.variable_definitions or ():
        if definition.default_value is not None:
            found.setdefault(definition.variable.name.value, value_from_ast_untyped(definition.default_value))
    return found


def collect(
    sets: Iterable[SelectionSetNode | None],
    fragments: Mapping[str, FragmentDefinitionNode],
    variables: Mapping[str, Any] | None,
) -> Fields:
    """The fields of some selection sets by their key, fragments unfolded, in the order of the selection.

    Without variables, @skip and @include are not decided: everything is in.
    """
    found: Fields = {}
    seen: set[str] = set()

    def visit(nodes: Iterable[SelectionNode]) -> None:
        for node in nodes:
            if variables is not None and not _included(node, variables):
                continue
            if isinstance(node, FieldNode):
                found.setdefault(node.alias.value if node.alias else node.name.value, []).append(node)
            elif isinstance(node, InlineFragmentNode):
                visit(node.selection_set.selections)
            elif isinstance(node, FragmentSpreadNode) and node.name.value not in seen:
                seen.add(node.name.value)
                visit(fragments[node.name.value].selection_set.selections)

    for selection in sets:
        visit(selection.selections if selection else ())
    return found


def _included(node: SelectionNode, variables: Mapping[str, Any]) -> bool:
    for directive in node.directives or ():
        name = directive.name.value
        if name in ("skip", "include") and directive.arguments:
            given = directive.arguments[0].value
            condition = value_from_ast_untyped(given, cast("dict[str, Any]", variables))
            if condition is None and isinstance(given, VariableNode):
                fault = Fault(("variables", given.name.value), f"null does not decide @{name}")
                raise Refusal(Code.BAD_USER_INPUT, "Some arguments are not valid.", [fault])
            if bool(condition) != (name == "include"):
                return False
    return True


class _Translator:
    def __init__(
        self,
        fragments: Mapping[str, FragmentDefinitionNode],
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any],
        view: View,
    ) -> None:
        self.fragments = fragments
        self.node = operation
        self.view = view
        self.draft = Draft(view)
        self.given = with_defaults(operation, variables)
        self.defaults: dict[str, ValueNode] = {
            definition.variable.name.value: definition.default_value
            for definition in operation.variable_definitions or ()
            if definition.default_value is not None and definition.variable.name.value not in variables
        }

    def operation(self) -> Operation:
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
            else:
                roots.append(Root(label, "ask"))
                asks.append(self._root(name, nodes))
        self.draft.done(Code.BAD_USER_INPUT, "Some arguments are not valid.")
        slots = self.draft.slots
        wish = Wish(tuple(asks), tuple(slots.slots), tuple(slots.sources))
        return Operation(wish, tuple(roots), tuple(writes), tuple(calls))

    def _subscription(self) -> Operation:
        """One root field: what it follows, and what it tells of a change."""
        found = self._collect(self.node.selection_set)
        if len(found) != 1:  # it may be skipped
            raise Refusal(Code.GRAPHQL_VALIDATION_FAILED, "A subscription needs one root field.")
        ((label, nodes),) = found.items()
        each = next(each for each in self.view.resources.values() if each.resource.changed == nodes[0].name.value)
        arguments = self._arguments(nodes[0])
        key, where = arguments.get("id"), arguments.get("where")
        conditions: list[Expr] = []
        if key is not None and key.value is not None:
            conditions.append(Compare("eq", Col(("id",)), self.draft.slots.take(each.resource.key, key)))
        if where is not None and where.value is not None:
            conditions.append(self.draft.where(where, each))
        wish = self.draft.watch(each, self._change_parts(nodes, each), and_(*conditions), arguments)
        self.draft.done(Code.BAD_USER_INPUT, "Some arguments are not valid.")
        return Operation(Wish((), (), ()), (Root(label, "ask"),), watch=wish)

    def _change_parts(self, nodes: Iterable[FieldNode], each: ResourceView) -> tuple[ChangePart, ...]:
        parts: list[ChangePart] = []
        for label, inner in self._below(nodes).items():
            name = inner[0].name.value
            if name == each.resource.one:
                parts.append(ChangePart("row", label, self._picks(inner, each)))
            else:
                parts.append(ChangePart(cast(ChangeWhat, name), label))
        return tuple(parts)

    def _call(self, name: str, nodes: list[FieldNode]) -> CallWish:
        """A call of the model's own code; its slots are its own."""
        outer, self.draft = self.draft, Draft(self.view)
        found, definition = self.view.calls[name]
        arguments = self._arguments(nodes[0])
        place = self._place(nodes[0])
        key = self.draft.slots.take(found.key, arguments.pop("id")) if definition.on == "row" else None
        values = self.draft.arguments(definition, arguments, place)
        target = definition.result.resource
        picks = self._picks(nodes, self.view.resources[target]) if target else ()
        wish = self.draft.call(Call(found.name, definition.name, key, values, picks), place)
        self.draft = outer
        return wish

    def _write(self, name: str, nodes: list[FieldNode]) -> WriteWish:
        """One change. Its slots are its own, so that the same change is the same Ask wherever it stands."""
        outer, self.draft = self.draft, Draft(self.view)
        draft = self.draft
        each, verb = next((each, names[name]) for each in self.view.resources.values()
                          if name in (names := mutation_names(each.resource)))  # fmt: skip
        arguments = self._arguments(nodes[0])
        word = "patch" if verb == "update" else "input"
        given = arguments.get(word, Given({}, (*self._place(nodes[0]), word), fixed=True))
        key = draft.row_id(each, arguments.get("id"))
        values = draft.values(verb, each, given) if verb != "delete" else ()
        version = draft.version(arguments.get("ifVersion"))
        ask = Write(verb, each.resource.name, key, values, version, self._picks(nodes, each))
        self.draft = outer
        return draft.write(ask, given.place)

    def _collect(self, *sets: SelectionSetNode | None) -> Fields:
        return collect(sets, self.fragments, self.given)

    def _below(self, nodes: Iterable[FieldNode]) -> Fields:
        return self._collect(*(node.selection_set for node in nodes))

    def _root(self, name: str, nodes: list[FieldNode]) -> Read:
        for each in self.view.resources.values():
            found = each.resource
            if name == found.one:
                key = self.draft.slots.take(found.key, self._arguments(nodes[0])["id"])
                return Read(found.name, "one", self._picks(nodes, each), Compare("eq", Col(("id",)), key))
            if name in (found.many, found.connection):
                return self._list(nodes, each, connection=name == found.connection)
        raise LookupError(name)

    def _list(self, nodes: list[FieldNode], each: ResourceView, *, connection: bool) -> Read:
        arguments = self._arguments(nodes[0])
        where = arguments.get("where")
        filtered = self.draft.where(where, each) if where is not None and where.value is not None else TRUE
        order = self._order(arguments.get("orderBy"), each)
        page = self.draft.page(arguments, self._place(nodes[0]))
        if connection:
            return Read(each.resource.name, "page", self._parts(nodes, each), filtered, order, page)
        return Read(each.resource.name, "list", self._picks(nodes, each), filtered, order, page)

    def _order(self, given: Given | None, each: ResourceView) -> tuple[Order, ...]:
        if given is None or given.value is None:
            return ()
        keys: list[Order] = []
        for item in given.items():
            entries = item.entries() if isinstance(item.value, dict) else []
            if len(entries) != 1 or entries[0][1].value not in ("ASC", "DESC"):
                self.draft.fault(item.place, "expected exactly one field with ASC or DESC")
                continue
            (name, direction) = entries[0]
            key = self.draft.sort_key(name, direction.value == "DESC", item.place, each)
            keys.extend([key] if key else [])
        return tuple(keys)

    # selections

    def _picks(self, nodes: Iterable[FieldNode], each: ResourceView) -> tuple[Pick, ...]:
        return tuple(self._pick(label, found, each) for label, found in self._below(nodes).items())

    def _pick(self, label: str, nodes: list[FieldNode], each: ResourceView) -> Pick:
        name = nodes[0].name.value
        if name == "__typename":
            return TypeName(label, each.resource.name)
        if name in each.fields:
            return Field(name, label)
        connection = name not in each.relations
        relation = each.relations[name.removesuffix("Connection") if connection else name].relation
        target = self.view.resources[relation.target]
        if relation.kind == "one":
            return Follow(relation.name, label, Read(relation.target, "one", self._picks(nodes, target)))
        return Follow(relation.name, label, self._list(nodes, target, connection=connection))

    def _parts(self, nodes: Iterable[FieldNode], each: ResourceView) -> tuple[Part, ...]:
        found: list[Part] = []
        for label, inner in self._below(nodes).items():
            match inner[0].name.value:
                case "__typename":
                    found.append(TypeName(label, each.resource.name + "Connection"))
                case "nodes":
                    found.append(Nodes(label, self._picks(inner, each)))
                case "edges":
                    found.append(Edges(label, self._edges(inner, each)))
                case "pageInfo":
                    parts = self._below(inner).items()
                    names = tuple((cast(InfoKind, deeper[0].name.value), key) for key, deeper in parts)
                    found.append(PageInfo(label, names))
                case "totalCount":
                    found.append(Total(label))
        return tuple(found)

    def _edges(self, nodes: Iterable[FieldNode], each: ResourceView) -> tuple[EdgePart, ...]:
        found: list[EdgePart] = []
        for label, inner in self._below(nodes).items():
            kind = cast(Literal["cursor", "node", "__typename"], inner[0].name.value)
            found.append(EdgePart(kind, label, self._picks(inner, each) if kind == "node" else ()))
        return tuple(found)

    # arguments

    def _place(self, node: FieldNode) -> tuple[str, ...]:
        return (node.alias.value if node.alias else node.name.value,)

    def _arguments(self, node: FieldNode) -> dict[str, Given]:
        """The arguments of a field; a variable that was not given leaves its argument out."""
        place = self._place(node)
        found = {}
        for argument in node.arguments or ():
            given = self._value(argument.value, (*place, argument.name.value))
            if given is not None:
                found[argument.name.value] = given
        return found

    def _value(self, node: ValueNode, place: tuple[str | int, ...]) -> Given | None:
        if isinstance(node, VariableNode):
            name = node.name.value
            if name in self.defaults:
                return self._value(self.defaults[name], ("variables", name))
            return Given(self.given[name], ("variables", name)) if name in self.given else None
        if isinstance(node, ObjectValueNode):
            entries = {field.name.value: self._value(field.value, (*place, field.name.value)) for field in node.fields}
            return Given({key: inner for key, inner in entries.items() if inner is not None}, place, fixed=True)
        if isinstance(node, ListValueNode):
            items = [self._value(item, (*place, index)) for index, item in enumerate(node.values)]
            return self._list_value(items, place)
        return Given(value_from_ast_untyped(node), place, fixed=True)

    @staticmethod
    def _list_value(items: list[Given | None], place: tuple[str | int, ...]) -> Given:
        """A list in the document; a variable in it that was not given is null, as GraphQL has it."""
        return Given([Given(None, place, fixed=True) if item is None else item for item in items], place, fixed=True)
