"""Parses and validates a GraphQL document for a viewer.

Parsing and validating is the expensive part of a new request, so callers cache the result. Ordinary documents take
short cuts (`parser.py`, `quick_check.py`), all others are for graphql-core, and so are all errors. What a role
may never select is not in its schema, and selecting it is like selecting what does not exist; only root fields are no
secret: those of other roles are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLNamedType,
    GraphQLSchema,
    ListTypeNode,
    NamedTypeNode,
    NonNullTypeNode,
    OperationDefinitionNode,
    OperationType,
    TypeNode,
    VariableDefinitionNode,
    get_named_type,
)
from graphql.execution.values import get_variable_values
from msgspec import Struct, field

from diptych.api.graphql.collect import collect, fragments_of
from diptych.api.graphql.measure import measure_text, measure_values
from diptych.api.graphql.merge import conflicts, merge_selections, needs_no_merge
from diptych.api.graphql.mutations import mutation_names
from diptych.api.graphql.names import NODE
from diptych.api.graphql.node_lookup import NODE_FIELDS, is_foreign_node
from diptych.api.graphql.parser import parse
from diptych.api.graphql.response_shape import shape_conflicts
from diptych.api.graphql.rules import validate
from diptych.api.graphql.scan import Outline
from diptych.api.reply import DocumentRefusal
from diptych.api.shape import PLAIN_VALUE, measure_filter, shape
from diptych.ask.measures import Checking, Limits, RequestMeasures, too_many_writes
from diptych.errors import MAX_FAULTS, Code, Fault, Refusal
from diptych.lru import cache_key
from diptych.model.call_defs import ActionDef, QueryDef
from diptych.model.defs import ResourceDef
from diptych.model.view import View, not_yours

_ABSENT = "absent"
_FILTERS = ("Where", "Having")
"""How the names of the types of filters end."""


class Document(Struct, frozen=True, eq=False):
    """A valid document with the operation to run. `literal` names variables whose values are part of the statement,
    `filters` those that are filters."""

    node: DocumentNode
    operation: OperationDefinitionNode
    variables: tuple[str, ...]
    literal: frozenset[str]
    filters: tuple[str, ...]
    places: Mapping[int, int] = field(default_factory=dict)
    """The lifted literals: where they begin in the text, and their indexes."""

    def shape(self, variables: Mapping[str, Any]) -> tuple[Any, ...]:
        """The part of the variables that can change the statement. (Plain strings are the fast path.)"""
        shapes = []
        for name in self.variables:  # a comprehension would be a function, made for each request
            is_plain = type(variables.get(name)) is str and name not in self.literal
            shapes.append(PLAIN_VALUE if is_plain else self._shape(name, variables))
        return tuple(shapes)

    def _shape(self, name: str, variables: Mapping[str, Any]) -> Any:
        if name not in variables:
            return _ABSENT
        return cache_key(repr(variables[name])) if name in self.literal else shape(variables[name])


def read_document(
    text: str, operation_name: str | None, measures: RequestMeasures, checks: Checking
) -> tuple[DocumentNode, OperationDefinitionNode]:
    """Parse a document and find the operation to run; checks measure the text, then what it selects."""
    outline = measure_text(text, checks.limits, measures)
    measures.operation = operation_name or (outline.operations[0].name if outline.operations else "")
    checks(measures)
    try:
        document = parse(text, outline.tokens)
    except GraphQLError as error:
        raise DocumentRefusal(Code.GRAPHQL_PARSE_FAILED, [error]) from None
    except RecursionError:
        raise Refusal(Code.TOO_DEEP, "The document is nested too deeply to be read.") from None
    _check_fragments(document, outline)
    operation = _operation(document, operation_name)
    measures.operation = operation.name.value if operation.name else ""
    measures.roots = len(collect([operation.selection_set], fragments_of(document), None))
    checks(measures)
    if needs_no_merge(document):
        return document, operation
    merged = merge_selections(document)
    errors = conflicts(merged)
    if errors:
        raise DocumentRefusal(Code.GRAPHQL_VALIDATION_FAILED, errors)
    return merged, operation if merged is document else _operation(merged, operation_name)


def _check_fragments(document: DocumentNode, outline: Outline) -> None:
    """Refuse fragments that are unknown, unused or cyclic, which graphql-core is slow to find."""
    parts = outline.fragments
    used = {name for part in (*outline.operations, *parts.values()) for name, *_ in part.spreads}
    if not outline.cycle and used == parts.keys():
        return
    errors: list[GraphQLError] = []
    for node in _fragment_nodes(document):
        name = node.name.value
        if isinstance(node, FragmentSpreadNode):
            cause = "" if name in parts else f"Unknown fragment '{name}'."
        else:
            cause = f"Fragment '{name}' is never used." if name not in used else ""
            cause = f"Cannot spread fragment '{name}' within itself." if name == outline.cycle else cause
        if cause and len(errors) < MAX_FAULTS:
            errors.append(GraphQLError(cause, node))
    if errors:
        raise DocumentRefusal(Code.GRAPHQL_VALIDATION_FAILED, errors)


def _fragment_nodes(document: DocumentNode) -> Iterator[FragmentSpreadNode | FragmentDefinitionNode]:
    """The fragment definitions of a document, and their spreads."""
    for definition in document.definitions:
        if isinstance(definition, FragmentDefinitionNode):
            yield definition
        left = [definition.selection_set] if hasattr(definition, "selection_set") else []
        while left:
            for node in left.pop().selections:
                if isinstance(node, FragmentSpreadNode):
                    yield node
                elif node.selection_set is not None:
                    left.append(node.selection_set)


def _operation(document: DocumentNode, operation_name: str | None) -> OperationDefinitionNode:
    operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    if operation_name is not None:
        operations = [node for node in operations if node.name and node.name.value == operation_name]
    if len(operations) != 1:
        cause = "The document has no such operation." if not operations else "Several operations: name the one to run."
        raise Refusal(Code.GRAPHQL_VALIDATION_FAILED, cause)
    return operations[0]


def check_roots(document: DocumentNode, operation: OperationDefinitionNode, view: View) -> None:
    """Refuse root fields that other roles have and this one does not."""
    kind = operation.operation
    fields = collect([operation.selection_set], fragments_of(document), None)
    requested = {node.name.value for nodes in fields.values() for node in nodes}
    if kind is OperationType.MUTATION:
        foreign = any(_is_foreign(name, view) for name in requested)
    else:
        others = [resource for name, resource in view.model.items() if name not in view.resources]
        queries = kind is OperationType.QUERY
        foreign = any(
            requested.intersection(root_names(resource) if queries else (resource.changed,)) for resource in others
        )
    if kind is OperationType.SUBSCRIPTION:
        if foreign:
            raise not_yours(view)
        if not view.resources:
            raise _no_such_kind(kind)
        for item in view.resources.values():
            if item.resource.changed in requested and not item.resource.followed:
                raise Refusal(Code.NOT_FOUND, item.resource.unfollowed)
        return
    if kind is OperationType.QUERY and is_foreign_node(requested, view):
        foreign = True
    calls = QueryDef if kind is OperationType.QUERY else ActionDef
    roots = (call.root for resource in view.model.values() for call in resource.calls if isinstance(call, calls))
    if foreign or any(root in requested and root not in view.calls for root in roots):
        raise not_yours(view)
    if kind is OperationType.MUTATION and not any(mutations(view)):
        raise _no_such_kind(kind)


def _no_such_kind(kind: OperationType) -> Refusal:
    return Refusal(Code.GRAPHQL_VALIDATION_FAILED, f"This schema has no operation of the kind {kind.value}.")


def _is_foreign(name: str, view: View) -> bool:
    """Is this the name of a mutation that other roles have and this one does not?"""
    for resource in view.model.values():
        verb = mutation_names(resource).get(name)
        if verb is not None and resource.offers(verb):
            own = view.resources.get(resource.name)
            return own is None or not own.may(verb)
    return False


def mutations(view: View) -> Iterator[str]:
    for resource in view.resources.values():
        yield from (name for name, verb in mutation_names(resource.resource).items() if resource.may(verb))
    yield from (root for root, (_, call) in view.calls.items() if isinstance(call, ActionDef))


def root_names(resource: ResourceDef) -> tuple[str, ...]:
    lists = (resource.many, resource.connection, resource.groups, resource.groups + "Connection")
    return (resource.one, *lists, resource.summary)


def check_document(document: DocumentNode, operation: OperationDefinitionNode, schema: GraphQLSchema) -> Document:
    """Validate a document against the viewer's schema."""
    errors = validate(document, schema)
    if not errors and NODE in schema.type_map and _has_nodes(document, operation):
        errors = [*islice(shape_conflicts(operation, fragments_of(document), schema), MAX_FAULTS)]
    if errors:
        raise DocumentRefusal(Code.GRAPHQL_VALIDATION_FAILED, errors)
    definitions = operation.variable_definitions or ()
    names = tuple(node.variable.name.value for node in definitions)
    literal = frozenset(node.variable.name.value for node in definitions if _sorts(_named(node.type)))
    filters = tuple(node.variable.name.value for node in definitions if _named(node.type).endswith(_FILTERS))
    return Document(document, operation, names, literal, filters)


def _has_nodes(document: DocumentNode, operation: OperationDefinitionNode) -> bool:
    """Can a selection of it have fields of several types?"""
    text = document.loc.source.body if document.loc else ""
    fields = collect([operation.selection_set], fragments_of(document), None)
    return NODE in text or any(nodes[0].name.value in NODE_FIELDS for nodes in fields.values())


def _sorts(type_name: str) -> bool:
    """Is a value of this type part of a sort or a choice of statements, and so of the statement itself?"""
    if type_name in ("Direction", "OnConflict", "Deleted"):
        return True
    return type_name.endswith(("Order", "UpsertKey", "GroupBy", "Bucket"))


def _named(node: TypeNode) -> str:
    while not isinstance(node, NamedTypeNode):
        node = cast(ListTypeNode | NonNullTypeNode, node).type
    return node.name.value


def count_variables(
    document: Document, variables: Mapping[str, Any], measures: RequestMeasures, checks: Checking
) -> None:
    """Measure the variables and run the checks: graphql-core visits every value of them."""
    measure_values([variables[name] for name in document.variables if name in variables], checks.limits, measures)
    checks(measures)
    for name in document.filters:
        measure_filter(variables.get(name), measures)
    checks(measures)


def count_nested_rows(document: Document, variables: Mapping[str, Any], schema: GraphQLSchema, limits: Limits) -> None:
    """Refuse variables with too many nested rows, before graphql-core visits them all."""
    left = limits.writes
    for definition in document.operation.variable_definitions or ():
        kind = schema.get_type(_named(definition.type))
        left = _without_rows(kind, variables.get(definition.variable.name.value), left, limits)


def _without_rows(kind: GraphQLNamedType | None, value: Any, left: int, limits: Limits) -> int:
    """How many rows may still be written, after those that are nested in a value."""
    if not isinstance(kind, GraphQLInputObjectType):
        return left
    if isinstance(value, list):
        for item in value:
            left = _without_rows(kind, item, left, limits)
        return left
    for name, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, list | dict) and name in kind.fields:
            if isinstance(inner, list) and kind.name.endswith("Write"):
                left -= len(inner)
                if left < 0:
                    raise too_many_writes(limits.writes + 1, limits)
            left = _without_rows(get_named_type(kind.fields[name].type), inner, left, limits)
    return left


def check_variables(document: Document, variables: Mapping[str, Any], schema: GraphQLSchema) -> None:
    """Validate variables against their declared types."""
    definitions = document.operation.variable_definitions or ()
    result = get_variable_values(schema, definitions, dict(variables), max_errors=MAX_FAULTS, hide_suggestions=True)
    if isinstance(result, list):
        raise DocumentRefusal(Code.BAD_USER_INPUT, result, [_fault(error) for error in result])


def _fault(error: GraphQLError) -> Fault:
    """The fault of a variable."""
    names = [node.variable.name.value for node in error.nodes or () if isinstance(node, VariableDefinitionNode)]
    return Fault(("variables", *names), error.message.removesuffix("."))
