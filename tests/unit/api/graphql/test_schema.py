"""The schema that each role gets: sound for graphql-core, and exact for the role."""

from __future__ import annotations

import json
import re

import pytest
from graphql import build_schema as parse_schema
from graphql import print_schema, validate_schema

from diptych.api.graphql.schema import build_schema
from diptych.api.openapi.document import build_openapi
from diptych.demo.model import model as default
from diptych.model.view import View
from tests.support.cases import cases
from tests.support.edge_cases import model as edge_cases

MODELS = {"diptych.demo.model:model": default, "tests.support.edge_cases:model": edge_cases}
ROLES = [(name, role) for name, model in MODELS.items() for role in model.role_names]
SECRETS = (
    r"\bOrder\b",
    r"\border\b",
    r"/orders|orders[(:]|\"orders\"",
    "OrderStatus",
    "OrderWhere",
    "customer",
    "pending",
    "internalNote",
    "email",
)
"""Words of the default model that no one without a token may read."""
HIDDEN = {"anonymous": SECRETS, "signed_in": ("internalNote",)}


def view_of(name: str, role: str) -> View:
    model = MODELS[name]
    return model.view(model.signature(model.viewer_as(role)))


@pytest.mark.slow
@cases(("name", "role"), ROLES)
def test_the_sdl_of_every_role_can_be_parsed(name: str, role: str) -> None:
    printed = print_schema(build_schema(view_of(name, role)))
    parsed = parse_schema(printed)
    assert validate_schema(parsed) == []
    assert print_schema(parsed) == printed


@pytest.mark.parametrize("role", default.role_names)
def test_a_role_is_told_of_what_it_may_see_and_of_nothing_else(role: str) -> None:
    view = view_of("diptych.demo.model:model", role)
    openapi = build_openapi(view)
    openapi["paths"] = {path: item for path, item in openapi["paths"].items() if not path.startswith("/oauth/")}
    for document in (print_schema(build_schema(view)), json.dumps(openapi)):
        told = {word: bool(re.search(word, document)) for word in SECRETS}
        assert told == {word: word not in HIDDEN.get(role, ()) for word in SECRETS}
