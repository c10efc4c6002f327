"""Validates a document by the rules of graphql-core that can apply to it, unless a quick check finds it valid.

All rules take part in every step of the visit, so those that cannot find anything are left out: a text without `@` has
no wrong directives. No rule uses name nodes, which are half of all nodes, so they are not visited.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    Node,
    ParallelVisitor,
    TypeInfo,
    TypeInfoVisitor,
    ValidationContext,
    visit,
)
from graphql.language.ast import QUERY_DOCUMENT_KEYS
from graphql.validation import ASTValidationRule, specified_rules

from diptych.api.graphql.quick_check import is_surely_valid
from diptych.errors import MAX_FAULTS, Code, Refusal

_KEYS = {
    kind: tuple(key for key in keys if key not in ("name", "alias", "description"))
    for kind, keys in QUERY_DOCUMENT_KEYS.items()
}
_ONLY_WITH: Mapping[str, Sequence[str]] = {
    "fragment": ("UniqueFragmentNames", "NoUnusedFragments"),
    "...": ("FragmentsOnCompositeTypes", "KnownFragmentNames", "PossibleFragmentSpreads", "NoFragmentCycles"),
    "$": (
        "VariablesAreInputTypes",
        "UniqueVariableNames",
        "NoUndefinedVariables",
        "NoUnusedVariables",
        "VariablesInAllowedPosition",
    ),
    "@": ("KnownDirectives", "UniqueDirectivesPerLocation"),
    "(": ("KnownArgumentNames", "UniqueArgumentNames", "ValuesOfCorrectType", "UniqueInputFieldNames"),
    "__": ("MaxIntrospectionDepth",),
}
"""Text that a document must contain for some rules to find anything."""
_NEVER = ("DeferStream", "StreamDirective", "OverlappingFields")
"""Rules about directives that no schema here has, and the one that `merge.py` replaces."""


class _Enough(Exception):
    """The maximum number of errors is reached."""


def validate(document: DocumentNode, schema: GraphQLSchema) -> list[GraphQLError]:
    """The first few errors of a document."""
    if is_surely_valid(document, schema):
        return []
    errors: list[GraphQLError] = []

    def note(error: GraphQLError) -> None:
        errors.append(error)
        if len(errors) > MAX_FAULTS:
            raise _Enough

    text = document.loc.source.body if document.loc else ""
    types = TypeInfo(schema)
    context = ValidationContext(schema, document, types, note, hide_suggestions=True)
    rules = [rule(context) for rule in _rules(tuple(mark for mark in _ONLY_WITH if mark in text))]
    try:
        visit(document, TypeInfoVisitor(types, ParallelVisitor(rules)), _KEYS)
    except _Enough:
        cause = "Too many validation errors, error limit reached. Validation aborted."
        errors[-1] = GraphQLError(cause)
    except RecursionError:
        raise Refusal(Code.TOO_DEEP, "The document is nested too deeply to be validated.") from None
    return _merged(errors)


def _merged(errors: list[GraphQLError]) -> list[GraphQLError]:
    """One error for each message, with all its locations: a directive that is repeated ten times is no ten errors."""
    nodes: dict[str, dict[int, Node]] = {}
    for error in errors:
        nodes.setdefault(error.message, {}).update({id(node): node for node in error.nodes or ()})
    if len(nodes) == len(errors):
        return errors
    return [GraphQLError(message, [*places.values()]) for message, places in nodes.items()]


@functools.lru_cache(maxsize=64)
def _rules(marks: tuple[str, ...]) -> tuple[type[ASTValidationRule], ...]:
    left_out = (*_NEVER, *(name for mark, names in _ONLY_WITH.items() if mark not in marks for name in names))
    return tuple(rule for rule in specified_rules if not rule.__name__.startswith(left_out))
