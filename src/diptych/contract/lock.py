"""The contract of a model: a folder with both documents of every role, without words that clients do not depend on.

contract/anonymous.graphql        the schema, readable by every tool for GraphQL
contract/anonymous.openapi.json   the document, readable by every tool for OpenAPI
contract/BREAKING.md              what was broken on purpose, and why
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from graphql import (
    BreakingChangeType,
    DangerousChangeType,
    GraphQLError,
    GraphQLSchema,
    Node,
    build_schema,
    find_breaking_changes,
    find_dangerous_changes,
    parse,
    print_ast,
    print_schema,
)

from diptych.api.graphql.schema import build_schema as schema_of
from diptych.api.openapi.document import build_openapi
from diptych.contract.change import ContractChange
from diptych.contract.openapi_diff import openapi_changes
from diptych.contract.sunsets import announced, sunset_of_field
from diptych.errors import StartError
from diptych.model.model import Model

BREAKING = "BREAKING.md"
_SDL, _OPENAPI = ".graphql", ".openapi.json"
_SERVER = "http://localhost"
_WORDS = frozenset({"description", "summary", "example", "examples", "title", "externalDocs"})
"""What no client depends on, where it is a word of the format and not a name of the model."""
_NAMED = frozenset(
    {"paths", "properties", "schemas", "parameters", "responses", "headers", "securitySchemes", "x-deprecated-values"}
)
"""Members whose own members are names."""

_HARMLESS = (DangerousChangeType.OPTIONAL_ARG_ADDED, DangerousChangeType.OPTIONAL_INPUT_FIELD_ADDED)
"""Additions that clients of a typed language notice only when they generate code anew."""

Files = Mapping[str, str]


def contract_of(model: Model) -> dict[str, str]:
    """The files of a model, by name."""
    files = {}
    bare = cache(_without_descriptions)  # several roles may have one schema
    for role in model.role_names:
        view = model.view_as(role)
        files[role + _SDL] = bare(print_schema(schema_of(view)))
        document = build_openapi(view, title="", about="", server=_SERVER, issuer=_SERVER)
        files[role + _OPENAPI] = json.dumps(_without_words(document), indent=1, ensure_ascii=False) + "\n"
    return files


def read_contract(folder: Path) -> dict[str, str]:
    """The files in a folder; a StartError if there are none."""
    try:
        files = {
            path.name: path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith((_SDL, _OPENAPI))
        }
    except OSError as error:
        raise StartError(f"{folder} cannot be read: {error.strerror}; diptych contract lock makes it.") from None
    if not files:
        raise StartError(f"{folder} holds no contract; diptych contract lock writes one.")
    return files


def write_contract(folder: Path, files: Files) -> None:
    """Write the files, and remove those of roles that are gone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        for path in folder.iterdir():
            if path.name.endswith((_SDL, _OPENAPI)) and path.name not in files:
                path.unlink()
    except OSError as error:
        raise StartError(f"{folder} cannot be written: {error.strerror}.") from None


def record_breaking(folder: Path, reason: str, changes: Mapping[ContractChange, list[str]]) -> None:
    """Add changes that were made on purpose to the list."""
    lines = [f"## {reason}", "", *(f"- {change} ({', '.join(roles)})" for change, roles in changes.items()), ""]
    path = folder / BREAKING
    earlier = path.read_text("utf-8") if path.exists() else "# What was broken on purpose\n\n"
    path.write_text(earlier + "\n".join(lines) + "\n", "utf-8")


def changes_between(old: Files, new: Files) -> dict[ContractChange, list[str]]:
    """What clients of the old files would notice of the new ones, with the roles that it concerns."""
    changes: dict[ContractChange, list[str]] = {}
    known: dict[tuple[str, str], list[ContractChange]] = {}  # several roles may have one document
    for name in sorted(old):
        role = name.removesuffix(_SDL).removesuffix(_OPENAPI)
        for change in _changes(name, old[name], new.get(name), known):
            roles = changes.setdefault(change, [])
            roles += [role] * (role not in roles)
    return changes


def _changes(
    name: str, old: str, new: str | None, known: dict[tuple[str, str], list[ContractChange]]
) -> list[ContractChange]:
    if new is None:
        return [ContractChange("roles", f"the role {name.partition('.')[0]} is gone")]
    if old == new:
        return []
    if (old, new) not in known:
        known[old, new] = [*_document_changes(name, old, new)]
    return known[old, new]


def _document_changes(name: str, old: str, new: str) -> Iterator[ContractChange]:
    try:
        if name.endswith(_OPENAPI):
            yield from openapi_changes(json.loads(old), json.loads(new))
            return
        before, after = build_schema(old), build_schema(new)
    except (ValueError, KeyError, GraphQLError) as error:
        raise StartError(f"{name} of the contract cannot be read: {error}.") from None
    yield from _graphql_changes(before, after)


def _graphql_changes(old: GraphQLSchema, new: GraphQLSchema) -> Iterator[ContractChange]:
    """What graphql-core reports, but for types that are gone together with all fields that lead to them."""
    breaking = find_breaking_changes(old, new)
    fields = [change for change in breaking if change.type is not BreakingChangeType.TYPE_REMOVED]
    for change in fields or breaking:
        removal = ContractChange("GraphQL", change.description.rstrip("."))
        yield announced(removal, sunset_of_field(old, change.description))
    for danger in find_dangerous_changes(old, new):
        if danger.type not in _HARMLESS:
            yield ContractChange("GraphQL", danger.description.rstrip("."), breaking=False)


def _without_descriptions(sdl: str) -> str:
    return print_ast(_bare(parse(sdl, no_location=True))) + "\n"


def _bare(node: Any) -> Any:
    """A node of a document without descriptions; nodes are frozen."""
    if isinstance(node, tuple):
        return tuple(map(_bare, node))
    if not isinstance(node, Node):
        return node
    return dataclasses.replace(node, **{key: _bare(getattr(node, key)) for key in node.keys} | _bared(node))


def _bared(node: Node) -> dict[str, None]:
    return {"description": None} if "description" in node.keys else {}


def _without_words(node: Any, *, named: bool = False) -> Any:
    if isinstance(node, list):
        return [_without_words(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: value for key, value in node.items() if named or key not in _WORDS}
    return {key: _without_words(value, named=not named and key in _NAMED) for key, value in kept.items()}
