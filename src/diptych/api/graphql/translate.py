"""Translates a GraphQL operation into Asks.

The document was parsed and validated against the schema of the viewer before. Here its fields are collected
(`collect.py`), and a Read is built for each root field; `node` and `nodes` are a Read for each type that a row may
have. `selection` translates what is selected, `arguments` extracts values: those of variables have their path, so that
the next request of the same shape only binds values.

    query($n: Int) { posts(first: $n) { title } }    →    Read("Post", "list", …), slot 0 from variables.n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from graphql import DocumentNode, FieldNode, FragmentDefinitionNode, OperationDefinitionNode, OperationType
from msgspec.structs import replace

from diptych.api.ask_builder import AskBuilder
from diptych.api.graphql.arguments import response_path
from diptych.api.graphql.collect import fragments_of
from diptych.api.graphql.mutations import CONFLICT_WORDS, bulk_names, mutation_names
from diptych.api.graphql.node_lookup import NODE_FIELDS, check_lookups, node_types
from diptych.api.graphql.operation import Root, TranslatedOperation
from diptych.api.graphql.schema import EMPTY_ROOT
from diptych.api.graphql.selection import Selections
from diptych.api.nest import Unfolder, follows, is_nested
from diptych.api.nested_row import NestedRow
from diptych.ask.measures import Limits
from diptych.ask.nodes import BulkPart, Call, ChangePart, ChangeWhat, Nodes, Page, Read, TypeName, Write, WriteVerb
from diptych.ask.slots import ID_COUNT, RawValue
from diptych.ask.wish import CallWish, NestWish, Wish, WriteWish
from diptych.errors import Code, Refusal
from diptych.model.naming import upper_first
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Col, Compare, Expr, and_
from diptych.model.scalars import ID
from diptych.model.view import View
from diptych.model.viewer_object import ROOT, VIEWER

_NO_PLACES: Mapping[int, int] = {}


def translate(
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: Mapping[str, Any],
    view: View,
    places: Mapping[int, int] = _NO_PLACES,
    limits: Limits | None = None,
) -> TranslatedOperation:
    """The Asks of an operation. One Refusal has all faults of its arguments. `places` are those of lifted literals."""
    return _Translator(fragments_of(document), operation, variables, view, places, limits or Limits()).operation()


class _Translator(Selections):
    def __init__(
        self,
        fragments: Mapping[str, FragmentDefinitionNode],
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any],
        view: View,
        places: Mapping[int, int],
        limits: Limits,
    ) -> None:
        super().__init__(fragments, operation, variables, view, places)
        self.node = operation
        self.unfolder = Unfolder(view, limits, own_paths=False)

    def operation(self) -> TranslatedOperation:
        if self.node.operation is OperationType.SUBSCRIPTION:
            return self._subscription()
        asks: list[Read] = []
        roots: list[Root] = []
        writes: list[WriteWish | NestWish | CallWish] = []
        calls: list[CallWish] = []
        for label, nodes in self.collect(self.node.selection_set).items():
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
                reads = self._nodes(name, nodes, types)
                roots.append(Root(label, "ask", types=len(reads), many=name == "nodes"))
                asks += reads
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
        fields = self.collect(self.node.selection_set)
        if len(fields) != 1:  # it may be skipped
            raise Refusal(Code.GRAPHQL_VALIDATION_FAILED, "A subscription needs one root field.")
        ((label, nodes),) = fields.items()
        resource = next(
            resource for resource in self.view.resources.values() if resource.resource.changed == nodes[0].name.value
        )
        arguments = self.arguments.of(nodes[0])
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
        for label, inner in self.below(nodes).items():
            name = inner[0].name.value
            if name == resource.resource.one:
                parts.append(ChangePart("row", label, self.picks(inner, resource)))
            else:
                parts.append(ChangePart(cast(ChangeWhat, name), label))
        return tuple(parts)

    def _call(self, name: str, nodes: list[FieldNode]) -> CallWish:
        """A call of the model's own code, with slots of its own."""
        outer, self.builder = self.builder, AskBuilder(self.view)
        resource, definition = self.view.calls[name]
        arguments = self.arguments.of(nodes[0])
        path = response_path(nodes[0])
        key = None
        if definition.on == "row":
            key = self.builder.slots.take(resource.key, arguments.pop("id"), target=resource.name)
        values = self.builder.arguments(definition, arguments, path)
        target = definition.result.resource
        picks = self.picks(nodes, self.view.resources[target]) if target else ()
        wish = self.builder.call(Call(resource.name, definition.name, key, values, picks), path)
        self.builder = outer
        return wish

    def _write(self, name: str, nodes: list[FieldNode]) -> WriteWish | NestWish:
        """One write, with slots of its own, so that equal writes are equal Asks wherever they are."""
        outer, self.builder = self.builder, AskBuilder(self.view)
        builder = self.builder
        resource, verb = next(
            (resource, names[name])
            for resource in self.view.resources.values()
            if name in (names := mutation_names(resource.resource))
        )
        arguments = self.arguments.of(nodes[0])
        if name in bulk_names(resource.resource):
            return self._bulk(verb, resource, nodes, arguments, outer)
        if verb == "delete" and self._deleted(arguments):
            verb = "purge"
        word = "patch" if verb == "update" else "input"
        raw = arguments.get(word, RawValue({}, (*response_path(nodes[0]), word), fixed=True))
        rows: list[NestedRow] = []
        head = 0
        if verb in ("create", "update") and is_nested(raw.value, resource):
            rows, head = self.unfolder.unfold(verb, resource, raw)
            raw = rows[head].values
        creates = verb in ("create", "upsert")
        key = builder.row_id(resource, arguments.get("id"), raw if creates else None)
        values = builder.values(verb, resource, raw)
        version = builder.version(arguments.get("ifVersion"))
        ask = Write(verb, resource.resource.name, key, values, version, self.picks(nodes, resource))
        if verb == "upsert":
            ask = self._upsert(ask, resource, arguments, raw)
        self.builder = outer
        wish = builder.write(ask, raw.path)
        if not rows:
            return wish
        faults, self.unfolder.faults = (*wish.faults, *self.unfolder.faults), []
        wish = replace(wish, faults=faults, depth=self.unfolder.depth, follows=follows(rows, head))
        return NestWish(tuple(wish if row is rows[head] else row.wish(self.view) for row in rows), head)

    def _bulk(
        self,
        verb: WriteVerb,
        resource: ResourceView,
        nodes: list[FieldNode],
        arguments: Mapping[str, RawValue],
        outer: AskBuilder,
    ) -> WriteWish:
        """One change of many rows."""
        builder, path = self.builder, response_path(nodes[0])
        key = builder.no_id(resource)
        raw = arguments.get("patch", RawValue({}, (*path, "patch"), fixed=True))
        values = builder.values("update", resource, raw) if verb == "update" else ()
        condition = arguments.get("where")
        where = builder.where(condition, resource) if condition is not None else TRUE
        most = arguments.get("most", RawValue(None, (*path, "most"), fixed=True))
        rows = builder.rows(where, condition.path if condition else (*path, "where"), most, arguments.get("dryRun"))
        ask = Write(verb, resource.resource.name, key, values, rows=rows, parts=self._bulk_parts(nodes, resource))
        self.builder = outer
        return builder.write(ask, raw.path)

    def _bulk_parts(
        self, nodes: Iterable[FieldNode], resource: ResourceView
    ) -> tuple[BulkPart | Nodes | TypeName, ...]:
        parts: list[BulkPart | Nodes | TypeName] = []
        for label, inner in self.below(nodes).items():
            match inner[0].name.value:
                case "__typename":
                    parts.append(TypeName(label, upper_first(resource.resource.many) + "Bulk"))
                case "nodes":
                    parts.append(Nodes(label, self.picks(inner, resource)))
                case what:
                    parts.append(BulkPart(cast(Literal["matched", "changed", "dryRun"], what), label))
        return tuple(parts)

    def _upsert(self, ask: Write, resource: ResourceView, arguments: Mapping[str, RawValue], raw: RawValue) -> Write:
        key = self.builder.upsert_key(resource, arguments.get("by", RawValue(None, (*raw.path[:-1], "by"))))
        keep = self.builder.keeps(arguments.get("onConflict"), CONFLICT_WORDS, resource)
        self.builder.key_values(resource, key, ask.values, raw)
        return replace(ask, key=key, keep=keep)

    def _root(self, name: str, nodes: list[FieldNode]) -> Read:
        if name == ROOT:
            return Read(VIEWER, "one", self.picks(nodes, self.view.resources[VIEWER]))
        for resource in self.view.resources.values():
            definition = resource.resource
            if name == definition.one:
                arguments = self.arguments.of(nodes[0])
                where = Compare("eq", Col(("id",)), self.builder.slots.take(definition.key, arguments["id"]))
                picks = self.picks(nodes, resource)
                return Read(definition.name, "one", picks, where, deleted=self._deleted(arguments))
            if name in (definition.many, definition.connection):
                read = self.rows(nodes, resource, connection=name == definition.connection)
                return replace(read, deleted=True) if self._deleted(self.arguments.of(nodes[0])) else read
            if name == definition.summary:
                return self.aggregates.summary(nodes, resource)
            if name in (definition.groups, definition.groups + "Connection"):
                return self.aggregates.groups(nodes, resource, connection=name != definition.groups)
        raise LookupError(name)

    @staticmethod
    def _deleted(arguments: Mapping[str, RawValue]) -> bool:
        """Do the arguments of a field ask for deleted rows? (ONLY is the one value that there is.)"""
        return "deleted" in arguments and arguments["deleted"].value is not None

    def _nodes(self, name: str, nodes: list[FieldNode], types: list[ResourceView]) -> list[Read]:
        """The Reads of `node` or `nodes`: one for each type, all with the same ids."""
        arguments = self.arguments.of(nodes[0])
        slots = self.builder.slots
        if name == "node":
            key = Compare("eq", Col(("id",)), slots.take(ID, arguments["id"]))
            return [Read(resource.resource.name, "one", self.picks(nodes, resource), key) for resource in types]
        page = Page(slots.take(ID_COUNT, arguments["ids"]), ids=slots.take(ID, arguments["ids"], many=True))
        return [Read(resource.resource.name, "each", self.picks(nodes, resource), page=page) for resource in types]
