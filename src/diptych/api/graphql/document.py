"""From the text of a request to a document that is sound for the viewer: parsed, permitted, validated.

graphql-core parses and validates; it is the dear part of a request that was never seen, so its work is kept by
whoever calls. What a role may never ask for is not in its schema, and asking for it is like asking for what no
one has; only root fields are no secret: those of other roles are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    NamedTypeNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    TypeNode,
    VariableDefinitionNode,
    execute_sync,
)
from graphql.execution.values import get_variable_values

from diptych.api.filters import measure_filter
from diptych.api.graphql.http import DocumentRefusal
from diptych.api.graphql.lexer import parse
from diptych.api.graphql.measure import measure_text, measure_values
from diptych.api.graphql.merge import conflicts, merge
from diptych.api.graphql.mutations import mutation_names
from diptych.api.graphql.rules import validate
from diptych.api.graphql.scan import Outline
from diptych.api.graphql.translate import collect, fragments_of, with_defaults
from diptych.api.shape import VALUE, shape
from diptych.ask.asked import Asked, Checking
from diptych.errors import MAX_FAULTS, Code, Fault, Refusal
from diptych.lru import digest
from diptych.model.defs import ActionDef, QueryDef, ResourceDef
from diptych.model.view import View, not_yours

_ABSENT = "absent"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A sound document with the operation to run. `literal` names the variables that shape a statement wholly,
    `filters` those that are filters."""

    node: DocumentNode
    operation: OperationDefinitionNode
    variables: tuple[str, ...]
    literal: frozenset[str]
    filters: tuple[str, ...]

    def shape(self, given: Mapping[str, Any]) -> tuple[Any, ...]:
        """What of the variables can change the statement. (A plain string in a plain place is told at a glance.)"""
        return tuple([
            VALUE if type(given.get(name)) is str and name not in self.literal else self._shape(name, given)
            for name in self.variables
        ])  # fmt: skip

    def _shape(self, name: str, given: Mapping[str, Any]) -> Any:
        if name not in given:
            return _ABSENT
        return digest(repr(given[name])) if name in self.literal else shape(given[name])


def read_document(
    text: str, operation_name: str | None, asked: Asked, checks: Checking
) -> tuple[DocumentNode, OperationDefinitionNode]:
    """Parse a document and find the operation to run; the checks look at the text, and at what it selects."""
    outline = measure_text(text, checks.limits, asked)
    asked.operation = operation_name or (outline.operations[0].name if outline.operations else "")
    checks(asked)
    try:
        document = parse(text)
    except GraphQLError as error:
        raise DocumentRefusal(Code.GRAPHQL_PARSE_FAILED, [error]) from None
    except RecursionError:
        raise Refusal(Code.TOO_DEEP, "The document is nested too deeply to be read.") from None
    _check_fragments(document, outline)
    operation = _operation(document, operation_name)
    asked.operation = operation.name.value if operation.name else ""
    asked.roots = len(collect([operation.selection_set], fragments_of(document), None))
    checks(asked)
    merged = merge(document)
    found = conflicts(merged)
    if found:
        raise DocumentRefusal(Code.GRAPHQL_VALIDATION_FAILED, found)
    return merged, operation if merged is document else _operation(merged, operation_name)


def _check_fragments(document: DocumentNode, outline: Outline) -> None:
    """Refuse fragments that are not there, never used, or in a circle, which graphql-core is slow to tell."""
    parts = outline.fragments
    used = {name for part in (*outline.operations, *parts.values()) for name, *_ in part.spreads}
    if not outline.circle and used == parts.keys():
        return
    errors: list[GraphQLError] = []
    for node in _fragment_nodes(document):
        name = node.name.value
        if isinstance(node, FragmentSpreadNode):
            cause = "" if name in parts else f"Unknown fragment '{name}'."
        else:
            cause = f"Fragment '{name}' is never used." if name not in used else ""
            cause = f"Cannot spread fragment '{name}' within itself." if name == outline.circle else cause
        if cause and len(errors) < MAX_FAULTS:
            errors.append(GraphQLError(cause, node))
    if errors:
        raise DocumentRefusal(Code.GRAPHQL_VALIDATION_FAILED, errors)


def _fragment_nodes(document: DocumentNode) -> Iterator[FragmentSpreadNode | FragmentDefinitionNode]:
    """The fragments of a document, and where they are spread."""
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
    """Refuse root fields that other roles have and this one has not."""
    kind = operation.operation
    fields = collect([operation.selection_set], fragments_of(document), None)
    asked = {node.name.value for nodes in fields.values() for node in nodes}
    if kind is OperationType.MUTATION:
        foreign = any(_is_foreign(name, view) for name in asked)
    else:
        names = root_names if kind is OperationType.QUERY else _change_names
        foreign = any(asked.intersection(names(found)) for name, found in view.model.items()
                      if name not in view.resources)  # fmt: skip
    if kind is OperationType.SUBSCRIPTION:
        if foreign:
            raise not_yours(view)
        if not view.resources:
            raise _no_such_kind(kind)
        return
    calls = QueryDef if kind is OperationType.QUERY else ActionDef
    others = (call.root for found in view.model.values() for call in found.calls if isinstance(call, calls))
    if foreign or any(root in asked and root not in view.calls for root in others):
        raise not_yours(view)
    if kind is OperationType.MUTATION and not any(mutations(view)):
        raise _no_such_kind(kind)


def _no_such_kind(kind: OperationType) -> Refusal:
    return Refusal(Code.GRAPHQL_VALIDATION_FAILED, f"This schema has no operation of the kind {kind.value}.")


def _is_foreign(name: str, view: View) -> bool:
    """Is it a mutation that others have, and this role has not?"""
    for found in view.model.values():
        verb = mutation_names(found).get(name)
        if verb is not None and found.offers("update" if verb == "replace" else verb):
            each = view.resources.get(found.name)
            return each is None or not each.may(verb)
    return False


def mutations(view: View) -> Iterator[str]:
    """The mutations that a role has."""
    for each in view.resources.values():
        yield from (name for name, verb in mutation_names(each.resource).items() if each.may(verb))
    yield from (root for root, (_, call) in view.calls.items() if isinstance(call, ActionDef))


def root_names(found: ResourceDef) -> tuple[str, str, str]:
    """The root fields of a resource."""
    return found.one, found.many, found.connection


def _change_names(found: ResourceDef) -> tuple[str]:
    """The root field that tells of its changes."""
    return (found.changed,)


def check_document(document: DocumentNode, operation: OperationDefinitionNode, schema: GraphQLSchema) -> Document:
    """Validate a document against the viewer's schema."""
    errors = validate(document, schema)
    if errors:
        raise DocumentRefusal(Code.GRAPHQL_VALIDATION_FAILED, errors)
    definitions = operation.variable_definitions or ()
    names = tuple(node.variable.name.value for node in definitions)
    literal = frozenset(node.variable.name.value for node in definitions if _sorts(_named(node.type)))
    filters = tuple(node.variable.name.value for node in definitions if _named(node.type).endswith("Where"))
    return Document(document, operation, names, literal, filters)


def _sorts(type_name: str) -> bool:
    """Is a value of this type a part of a sort, and so of the statement itself?"""
    return type_name == "Direction" or type_name.endswith("Order")


def _named(node: TypeNode) -> str:
    while not isinstance(node, NamedTypeNode):
        node = node.type  # type: ignore[attr-defined]
    return node.name.value


def count_variables(document: Document, given: Mapping[str, Any], asked: Asked, checks: Checking) -> None:
    """Have the checks look at how much the variables hold: graphql-core looks at each value of them."""
    measure_values([given[name] for name in document.variables if name in given], checks.limits, asked)
    checks(asked)
    for name in document.filters:
        measure_filter(given.get(name), asked)
    checks(asked)


def check_variables(document: Document, given: Mapping[str, Any], schema: GraphQLSchema) -> None:
    """Hold variables against their declared types."""
    definitions = document.operation.variable_definitions or ()
    result = get_variable_values(schema, definitions, dict(given), max_errors=MAX_FAULTS, hide_suggestions=True)
    if isinstance(result, list):
        raise DocumentRefusal(Code.BAD_USER_INPUT, result, [_fault(error) for error in result])


def _fault(error: GraphQLError) -> Fault:
    """Where a variable is at fault."""
    names = [node.variable.name.value for node in error.nodes or () if isinstance(node, VariableDefinitionNode)]
    return Fault(("variables", *names), error.message.removesuffix("."))


def introspect(document: Document, given: Mapping[str, Any], schema: GraphQLSchema) -> dict[str, Any]:
    """The answers to `__schema` and `__type`, which graphql-core knows."""
    values = with_defaults(document.operation, given)
    fields = collect([document.operation.selection_set], fragments_of(document.node), values)
    meta = [node for nodes in fields.values() for node in nodes if _is_meta(node)]
    operation = OperationDefinitionNode(
        operation=OperationType.QUERY,
        selection_set=SelectionSetNode(selections=tuple(meta)),
        variable_definitions=document.operation.variable_definitions,
        directives=(),
    )
    fragments = tuple(node for node in document.node.definitions if not isinstance(node, OperationDefinitionNode))
    result = execute_sync(schema, DocumentNode(definitions=(operation, *fragments)), variable_values=dict(given))
    if result.errors:
        raise DocumentRefusal(Code.BAD_USER_INPUT, result.errors)
    return dict(result.data or {})


def _is_meta(node: FieldNode) -> bool:
    return node.name.value in ("__schema", "__type")
