"""What the tests of the OpenAPI document share: models with their rows, their documents, and ways through them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from diptych import Model
from diptych.api.openapi.document import build_openapi
from diptych.demo.model import model as default
from diptych.model.view import View
from tests.contract.calls import press
from tests.contract.http import data, shelf
from tests.support.edge_cases import model as edge_cases
from tests.support.edge_cases import rows
from tests.support.written_out import written_out

MODELS = {"default": default, "edge_cases": edge_cases, "shelf": shelf.model, "press": press.model}
ROWS = {"default": data.ROWS, "edge_cases": rows(edge_cases, 7), "shelf": shelf.ROWS, "press": press.ROWS}
ROLES = [(name, role) for name, model in MODELS.items() for role in model.role_names]
METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
Document = dict[str, Any]

every_role = pytest.mark.parametrize(("name", "role"), ROLES)


def view_of(model: Model, role: str) -> View:
    return model.view(model.signature(model.viewer_as(role)))


@functools.cache
def published(name: str, role: str) -> Document:
    """The document of a role, as the service gives it."""
    return build_openapi(view_of(MODELS[name], role))


@functools.cache
def document_of(name: str, role: str) -> Document:
    """The same, with all that its description says written out for every operation."""
    return written_out(published(name, role))


def operations(document: Document) -> Iterator[tuple[str, str, Any]]:
    return (
        (path, method, item[method]) for path, item in document["paths"].items() for method in METHODS if method in item
    )


def walk(part: Any) -> Iterator[Any]:
    yield part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for each in inner:
        yield from walk(each)


def find(document: Document, reference: str) -> Any:
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def properties(document: Document, name: str) -> Document:
    """The properties of a schema, with those of its parts."""
    schema = document["components"]["schemas"][name]
    parts = [find(document, part["$ref"]) if "$ref" in part else part for part in schema.get("allOf", [schema])]
    return {key: each for part in parts for key, each in part["properties"].items()}


def parameters(document: Document, path: str, method: str = "get") -> dict[str, Any]:
    """The parameters of an operation by their name in the request."""
    given = document["paths"][path][method]["parameters"]
    found = [find(document, each["$ref"]) if "$ref" in each else each for each in given]
    assert len({each["name"] for each in found}) == len(found)
    return {each["name"]: each for each in found}


def validator(document: Document, schema: Any) -> jsonschema_rs.Validator:
    """What validates a schema that refers to the components of a document; made once."""
    components = document["components"]
    _, made = _VALIDATORS.setdefault(id(components), (components, {}))
    text = json.dumps(schema)
    if text not in made:
        referred = _referred(components, schema)
        made[text] = jsonschema_rs.Draft202012Validator({**schema, "components": referred}, validate_formats=True)
    return made[text]


def _referred(components: Document, schema: Any) -> Document:
    """The components that a schema refers to, and those that they refer to: to compile all takes long."""
    found: Document = {}
    waiting = [schema]
    while waiting:
        for part in walk(waiting.pop()):
            reference = part.get("$ref") if isinstance(part, dict) else None
            if isinstance(reference, str):
                kind, name = reference.removeprefix("#/components/").split("/")
                if name not in found.setdefault(kind, {}):
                    found[kind][name] = components[kind][name]
                    waiting.append(components[kind][name])
    return found


_VALIDATORS: dict[int, tuple[Any, dict[str, jsonschema_rs.Validator]]] = {}
