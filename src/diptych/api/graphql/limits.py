"""What a document may hold. graphql-core is the dear part of a hostile request, so this is looked at before it.

Three looks, each before the dearer step that follows: at the text (its size, tokens, strings and nesting, by one
regular expression), at the parsed document (aliases, directives, selections; `check_roots` counts root fields),
and, while it is translated, at what its fragments unfold to, since a few of them can unfold to very much.
"""

from __future__ import annotations

import re
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
)

from diptych.api.limits import MAX_ALIASES, MAX_NESTING, MAX_SELECTIONS, allow
from diptych.errors import Code, Refusal

MAX_BYTES = 100 * 1024
MAX_TOKENS = 2_000
MAX_STRING = 4 * 1024
MAX_ROOTS = 20
MAX_DIRECTIVES = 50
MAX_UNFOLDED = 2_000
"""Fields that a document selects once its fragments are unfolded: no more than it could write out."""
MAX_LEVELS = 64
"""Levels of relations once its fragments are unfolded. (How many may run is a matter of `check`.)"""
MAX_VALUES = 5_000
"""Values in all variables together: graphql-core looks at each of them."""

# A string that does not end is a token too, so that the scan goes over every character once.
_TOKEN = re.compile(
    r"(?P<nothing>(?:[\s,\ufeff]|\#[^\n\r]*)++)|(?P<open>[{(\[])|(?P<close>[})\]])"
    r"""|(?P<block>\"""(?:\\\"""|[^"]|"(?!""))*+(?:\""")?)|(?P<string>"(?:[^"\\\n\r]|\\.)*+"?)"""
    r"|-?[0-9][\w.+-]*|\w+|\.\.\.|\S"
)


def check_text(text: str) -> None:
    """Refuse a text that is too much to be read."""
    allow(len(text.encode()), MAX_BYTES, "The document has {} bytes")
    tokens = deep = deepest = longest = 0
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        tokens += kind != "nothing"
        if tokens > MAX_TOKENS:
            raise Refusal(Code.TOO_COMPLEX, f"The document has more than {MAX_TOKENS} tokens.")
        if kind == "open":
            deep += 1
            deepest = max(deepest, deep)
        elif kind == "close":
            deep -= 1
        elif kind in ("string", "block"):
            longest = max(longest, len(found[kind].encode()) - (2 if kind == "string" else 6))
    allow(longest, MAX_STRING, "A string of the document has {} bytes")
    allow(deepest, MAX_NESTING, "The document is nested {} levels deep", Code.TOO_DEEP)


def check_nodes(document: DocumentNode) -> None:
    """Refuse a document that has too many of something."""
    aliases = directives = widest = 0
    left: list[SelectionNode | OperationDefinitionNode | FragmentDefinitionNode] = [
        node for node in document.definitions if isinstance(node, OperationDefinitionNode | FragmentDefinitionNode)
    ]
    while left:
        node = left.pop()
        directives += len(node.directives or ())
        if isinstance(node, FieldNode):
            aliases += node.alias is not None
        if isinstance(node, FieldNode | InlineFragmentNode | OperationDefinitionNode | FragmentDefinitionNode):
            inside = node.selection_set.selections if node.selection_set else ()
            widest = max(widest, len(inside))
            left.extend(inside)
    allow(aliases, MAX_ALIASES, "The document has {} aliases")
    allow(directives, MAX_DIRECTIVES, "The document has {} directives")
    allow(widest, MAX_SELECTIONS, "A selection of the document has {} fields")


def check_values(variables: list[Any]) -> None:
    """Refuse variables that hold too many values."""
    count = 0
    left: list[Any] = [variables]
    while left:
        part = left.pop()
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        count += len(inside)
        allow(count, MAX_VALUES, "The variables hold {} values or more")
        left.extend(inside)
