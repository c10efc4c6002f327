"""What the tests of the OpenAPI document share: models with their rows, their documents, and ways through them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from diptych import Model
from diptych.api.rest.openapi import openapi
from diptych.default import model as default
from diptych.model.view import View
from tests.calls import press
from tests.http import data, shelf
from tests.nasty import model as nasty
from tests.nasty import rows

MODELS = {"default": default, "nasty": nasty, "shelf": shelf.model, "press": press.model}
ROWS = {"default": data.ROWS, "nasty": rows(nasty, 7), "shelf": shelf.ROWS, "press": press.ROWS}
ROLES = [(name, role) for name, model in MODELS.items() for role in model.role_names]
METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
Document = dict[str, Any]

every_role = pytest.mark.parametrize(("name", "role"), ROLES)


def view_of(model: Model, role: str) -> View:
    return model.view(model.signature(model.viewer_as(role)))


def document_of(name: str, role: str) -> Document:
    return openapi(view_of(MODELS[name], role))


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


def parameters(document: Document, path: str, method: str = "get") -> dict[str, Any]:
    """The parameters of an operation by their name in the request."""
    given = document["paths"][path][method]["parameters"]
    found = [find(document, each["$ref"]) if "$ref" in each else each for each in given]
    assert len({each["name"] for each in found}) == len(found)
    return {each["name"]: each for each in found}


def validator(document: Document, schema: Any) -> jsonschema_rs.Validator:
    whole = {**schema, "components": document["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
