"""Files of trusted documents → their texts, and what is wrong with them.

    queries/orders.graphql      the file is the document, to the byte; it may have several operations
    manifest.json               {"format": "apollo-persisted-query-manifest", "version": 1,
                                 "operations": [{"id": "<sha256>", "name": …, "type": …, "body": "query …"}, …]}
    persisted.json              {"<sha256>": "query …", …}, as the compiler of Relay writes it

Nothing is guessed: a text is taken as it stands, since its hash is its name; and an id that is not the SHA-256 of its
text is a fault, since clients would ask for a document that is never found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError, GraphQLSchema, OperationDefinitionNode, parse

from diptych.api.graphql.document import check_document, check_roots, read_document
from diptych.api.graphql.http import DocumentRefusal
from diptych.api.graphql.persisted import PREFIX, hash_of
from diptych.api.json import parse_json
from diptych.ask.asked import Asked, Checking
from diptych.errors import Refusal
from diptych.model.roles import Viewer
from diptych.model.view import View

_APOLLO = "apollo-persisted-query-manifest"


@dataclass(frozen=True, slots=True)
class Found:
    """A text in a file: where it begins there, and by which id the file names it."""

    file: str
    text: str
    line: int = 1
    id: str | None = None

    @property
    def hash(self) -> str:
        return hash_of(self.text)

    def at(self, line: int, what: str) -> str:
        """A fault in a line of the text. (In a manifest, a text stands in one line of the file.)"""
        if self.id is None:
            return f"{self.file}:{line}: {what}"
        return f"{self.file}:{self.line}: {what}" + (f" (line {line} of the document)" if line else "")


class BadManifest(ValueError):
    """The file cannot be read as documents."""


def read_file(name: str, content: bytes) -> list[Found]:
    """The documents of a file; a BadManifest says why there are none."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BadManifest(f"{name}: it is not UTF-8") from None
    if not name.endswith(".json"):
        return [Found(name, text)]
    try:
        entries = list(_entries(parse_json(content)))
    except (ValueError, Refusal) as error:
        raise BadManifest(f"{name}: {error}") from None
    return [Found(name, body, _line_of(id, text), id) for id, body in entries]


def _entries(manifest: Any) -> Iterator[tuple[str, str]]:
    """The ids and texts of a manifest."""
    if isinstance(manifest, dict) and "format" in manifest:
        if manifest["format"] != _APOLLO or manifest.get("version") != 1:
            raise ValueError(f"expected the format {_APOLLO} in version 1")
        operations = manifest.get("operations")
        if not isinstance(operations, list):
            raise ValueError("expected a list of operations")
        pairs = [(each.get("id"), each.get("body")) if isinstance(each, dict) else (None, None) for each in operations]
    elif isinstance(manifest, dict):
        pairs = list(manifest.items())
    else:
        raise ValueError("expected a manifest of Apollo or Relay, which is an object")
    for number, (id, body) in enumerate(pairs, 1):
        if not isinstance(id, str) or not isinstance(body, str):
            raise ValueError(f"operation {number} has no id or no text")
        yield id, body


def _line_of(id: str, text: str) -> int:
    return text.count("\n", 0, max(text.find(f'"{id}"'), 0)) + 1


def faults_of(
    found: Found, view: View, schema: GraphQLSchema, viewer: Viewer, checks: Checking
) -> list[str]:
    """All that is wrong with a document, for a role."""
    faults: list[str] = []
    if found.id is not None and found.id.removeprefix(PREFIX) != found.hash:
        faults.append(found.at(0, f"the id {found.id[:80]!r} is not the SHA-256 of its document, {found.hash}"))
    if "\x00" in found.text:
        return [*faults, found.at(1, "the document has a NUL")]
    try:
        operations = operations_of(found.text)
    except (GraphQLError, RecursionError) as error:
        return [*faults, *_told(found, error)]
    if not operations:
        return [*faults, found.at(1, "the document has no operation")]
    for name in operations:
        try:
            document, operation = read_document(found.text, name, Asked("graphql", viewer), checks)
            check_roots(document, operation, view)
            check_document(document, operation, schema)
        except Refusal as refusal:
            faults += _told(found, refusal)
    return list(dict.fromkeys(faults))


def operations_of(text: str) -> list[str | None]:
    """The names of the operations of a document; the only one may have none."""
    nodes = [node for node in parse(text).definitions if isinstance(node, OperationDefinitionNode)]
    names = [node.name.value if node.name else None for node in nodes]
    return names if len(names) == 1 else [name for name in names if name is not None] or names[:1]


def _told(found: Found, error: Exception) -> list[str]:
    if isinstance(error, DocumentRefusal):
        return [found.at(_line(each), str(each["message"]).removesuffix(".")) for each in error.errors]
    if isinstance(error, GraphQLError):
        return [found.at(error.locations[0].line if error.locations else 1, error.message.removesuffix("."))]
    if isinstance(error, RecursionError):
        return [found.at(1, "the document is nested too deeply to be read")]
    return [found.at(1, str(error).removesuffix("."))]


def _line(error: Mapping[str, Any]) -> int:
    locations = error.get("locations") or [{"line": 1}]
    return int(locations[0]["line"])
