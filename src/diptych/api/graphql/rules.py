"""Validation by graphql-core's rules: those that can object to a document, on the parts of it that they look at.

All rules take part in every step through a document, so each that cannot object is left out: a text without `@` has no
directives that could be wrong. No rule looks at names by themselves, which are half of all nodes, so these are not
visited.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    ParallelVisitor,
    TypeInfo,
    TypeInfoVisitor,
    ValidationContext,
    visit,
)
from graphql.language.ast import QUERY_DOCUMENT_KEYS
from graphql.validation import ASTValidationRule, specified_rules

from diptych.errors import MAX_FAULTS, Code, Refusal

_KEYS = {kind: tuple(key for key in keys if key not in ("name", "alias", "description"))
         for kind, keys in QUERY_DOCUMENT_KEYS.items()}  # fmt: skip
_ONLY_WITH: Mapping[str, Sequence[str]] = {
    "fragment": ("UniqueFragmentNames", "NoUnusedFragments"),
    "...": ("FragmentsOnCompositeTypes", "KnownFragmentNames", "PossibleFragmentSpreads", "NoFragmentCycles"),
    "$": ("VariablesAreInputTypes", "UniqueVariableNames", "NoUndefinedVariables", "NoUnusedVariables",
          "VariablesInAllowedPosition"),
    "@": ("KnownDirectives", "UniqueDirectivesPerLocation"),
    "(": ("KnownArgumentNames", "UniqueArgumentNames", "ValuesOfCorrectType", "UniqueInputFieldNames"),
    "__": ("MaxIntrospectionDepth",),
}  # fmt: skip
"""What stands in every text that some of graphql-core's rules could object to."""
_NEVER = ("DeferStream", "StreamDirective", "OverlappingFields")
"""Rules about directives that no schema here has, and the one that `merge.py` takes the place of."""


class _Enough(Exception):
    """There are as many errors as anyone reads."""


def validate(document: DocumentNode, schema: GraphQLSchema) -> list[GraphQLError]:
    """The first few errors of a document."""
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
    return errors


@functools.lru_cache(maxsize=64)
def _rules(marks: tuple[str, ...]) -> tuple[type[ASTValidationRule], ...]:
    left_out = (*_NEVER, *(name for mark, names in _ONLY_WITH.items() if mark not in marks for name in names))
    return tuple(rule for rule in specified_rules if not rule.__name__.startswith(left_out))
