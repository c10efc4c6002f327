"""Reads files of trusted documents, and checks their documents.

    queries/orders.graphql      the file is the document, to the byte; it may have several operations
    manifest.json               {"format": "apollo-persisted-query-manifest", "version": 1,
                                 "operations": [{"id": "<sha256>", "name": …, "type": …, "body": "query …"}, …]}
    persisted.json              {"<sha256>": "query …", …}, as Relay's compiler writes it

A text is taken as it is, since its hash is its name; an id that is not the SHA-256 of its text is a fault, since
clients would request a document that is never found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphql import GraphQLError, GraphQLSchema, OperationDefinitionNode, parse
from msgspec import Struct

from diptych.api.graphql.document import check_document, check_roots, read_document
from diptych.api.graphql.persisted import HASH_PREFIX, hash_of
from diptych.api.json import parse_json
from diptych.api.reply import DocumentRefusal
from diptych.ask.measures import Checking, RequestMeasures
from diptych.errors import Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.view import View

_APOLLO = "apollo-persisted-query-manifest"


class DocumentEntry(Struct, frozen=True):
    """A document in a file: its line there, and the id that the file gives it."""

    file: str
    text: str
    line: int = 1
    id: str | None = None

    @property
    def hash(self) -> str:
        return hash_of(self.text)

    def at(self, line: int, what: str) -> str:
        """A message about a line of the document. (In a manifest, a document is in one line of the file.)"""
        if self.id is None:
            return f"{self.file}:{line}: {what}"
        return f"{self.file}:{self.line}: {what}" + (f" (line {line} of the document)" if line else "")


class BadManifest(ValueError):
    """The file cannot be parsed as documents."""


def read_file(name: str, content: bytes) -> list[DocumentEntry]:
    """The documents of a file; a BadManifest says why there are none."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BadManifest(f"{name}: it is not UTF-8") from None
    if not name.endswith(".json"):
        return [DocumentEntry(name, text)]
    try:
        entries = list(_entries(parse_json(content)))
    except (ValueError, Refusal) as error:
        raise BadManifest(f"{name}: {error}") from None
    return [DocumentEntry(name, body, _line_of(id, text), id) for id, body in entries]


def _entries(manifest: Any) -> Iterator[tuple[str, str]]:
    """The ids and texts of a manifest."""
    if isinstance(manifest, dict) and "format" in manifest:
        if manifest["format"] != _APOLLO or manifest.get("version") != 1:
            raise ValueError(f"expected the format {_APOLLO} in version 1")
        operations = manifest.get("operations")
        if not isinstance(operations, list):
            raise ValueError("expected a list of operations")
        pairs = [
            (operation.get("id"), operation.get("body")) if isinstance(operation, dict) else (None, None)
            for operation in operations
        ]
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


def document_faults(
    entry: DocumentEntry, view: View, schema: GraphQLSchema, viewer: Viewer, checks: Checking
) -> list[str]:
    """All faults of a document for a role."""
    faults: list[str] = []
    if entry.id is not None and entry.id.removeprefix(HASH_PREFIX) != entry.hash:
        faults.append(entry.at(0, f"the id {entry.id[:80]!r} is not the SHA-256 of its document, {entry.hash}"))
    if "\x00" in entry.text:
        return [*faults, entry.at(1, "the document has a NUL")]
    try:
        operations = operations_of(entry.text)
    except (GraphQLError, RecursionError) as error:
        return [*faults, *_messages(entry, error)]
    if not operations:
        return [*faults, entry.at(1, "the document has no operation")]
    for name in operations:
        try:
            document, operation = read_document(entry.text, name, RequestMeasures("graphql", viewer), checks)
            check_roots(document, operation, view)
            check_document(document, operation, schema)
        except Refusal as refusal:
            faults += _messages(entry, refusal)
    return list(dict.fromkeys(faults))


def operations_of(text: str) -> list[str | None]:
    """The names of the operations of a document; the only one may have none."""
    nodes = [node for node in parse(text).definitions if isinstance(node, OperationDefinitionNode)]
    names = [node.name.value if node.name else None for node in nodes]
    return names if len(names) == 1 else [name for name in names if name is not None] or names[:1]


def _messages(entry: DocumentEntry, error: Exception) -> list[str]:
    if isinstance(error, DocumentRefusal):
        return [entry.at(_line(detail), str(detail["message"]).removesuffix(".")) for detail in error.errors]
    if isinstance(error, GraphQLError):
        return [entry.at(error.locations[0].line if error.locations else 1, error.message.removesuffix("."))]
    if isinstance(error, RecursionError):
        return [entry.at(1, "the document is nested too deeply to be read")]
    return [entry.at(1, str(error).removesuffix("."))]


def _line(error: Mapping[str, Any]) -> int:
    locations = error.get("locations") or [{"line": 1}]
    return int(locations[0]["line"])
