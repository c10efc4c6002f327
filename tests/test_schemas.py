"""The schema that each role gets: sound for GraphQL.js and graphql-core, and exact for the role."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from graphql import build_schema as parse_schema
from graphql import get_introspection_query, print_schema, validate_schema

from diptych.api.graphql.schema import build_schema
from diptych.api.rest.openapi import openapi
from diptych.default import model as default
from diptych.model.view import View
from tests.nasty import model as nasty
from tests.running import ROOT, Client, NewDatabase, Service, node, served, token

MODELS = {"diptych.default:model": default, "tests.nasty:model": nasty}
ROLES = [(name, role) for name, model in MODELS.items() for role in model.role_names]
INTROSPECTION = get_introspection_query(
    specified_by_url=True, directive_is_repeatable=True, schema_description=True, input_value_deprecation=True
)
SECRETS = (
    r"\bOrder\b", r"\border\b", r"/orders|orders[(:]|\"orders\"", "OrderStatus", "OrderWhere",
    "customer", "pending", "internalNote", "email",
)  # fmt: skip
"""Words of the default model that no one without a token may read."""
HIDDEN = {"anonymous": SECRETS, "signed_in": ("internalNote",)}


@pytest.fixture(scope="module", params=MODELS, ids=["default", "nasty"])
def service(request: pytest.FixtureRequest, new_sqlite: NewDatabase) -> Iterator[tuple[str, Service]]:
    with served(new_sqlite(), model=request.param, cwd=ROOT) as service:
        yield request.param, service


def view_of(name: str, role: str) -> View:
    model = MODELS[name]
    return model.view(model.signature(model.viewer_as(role)))


def as_role(service: Service, model: str, role: str) -> Client:
    """A client that has the role."""
    if role == "anonymous":
        return service
    roles = () if role == "signed_in" else (role,)
    someone = "00000000-0000-7000-8000-000000000001"
    return service.signed_in(token(service.database, *roles, user=someone, model=model))


def test_clients_in_javascript_can_build_the_schema_of_every_role(service: tuple[str, Service]) -> None:
    name, running = service
    for role in MODELS[name].role_names:
        answer = as_role(running, name, role).query(INTROSPECTION)
        assert "errors" not in answer, role
        assert json.loads(node("schema.mjs", given=json.dumps(answer))) == [], role


@pytest.mark.parametrize(("name", "role"), ROLES)
def test_the_sdl_of_every_role_can_be_parsed(name: str, role: str) -> None:
    printed = print_schema(build_schema(view_of(name, role)))
    parsed = parse_schema(printed)
    assert validate_schema(parsed) == []
    assert print_schema(parsed) == printed


@pytest.mark.parametrize("role", default.role_names)
def test_a_role_is_told_of_what_it_may_see_and_of_nothing_else(role: str) -> None:
    view = view_of("diptych.default:model", role)
    for document in (print_schema(build_schema(view)), json.dumps(openapi(view))):
        told = {word: bool(re.search(word, document)) for word in SECRETS}
        assert told == {word: word not in HIDDEN.get(role, ()) for word in SECRETS}
