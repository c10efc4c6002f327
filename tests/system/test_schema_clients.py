"""The schema that each role gets can be built by clients in JavaScript."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from graphql import get_introspection_query

from diptych.demo.model import model as default
from tests.support.edge_cases import model as edge_cases
from tests.support.running import ROOT, Client, NewDatabase, Service, node, served, token

MODELS = {"diptych.demo.model:model": default, "tests.support.edge_cases:model": edge_cases}
INTROSPECTION = get_introspection_query(
    specified_by_url=True, directive_is_repeatable=True, schema_description=True, input_value_deprecation=True
)


@pytest.fixture(scope="module", params=MODELS, ids=["default", "edge_cases"])
def service(request: pytest.FixtureRequest, new_sqlite: NewDatabase) -> Iterator[tuple[str, Service]]:
    with served(new_sqlite(), model=request.param, cwd=ROOT) as service:
        yield request.param, service


def as_role(service: Service, model: str, role: str) -> Client:
    """A client that has the role."""
    if role == "anonymous":
        return service
    roles = () if role == "signed_in" else (role,)
    someone = "00000000-0000-7000-8000-000000000001"
    return service.signed_in(token(service.database, *roles, user=someone, model=MODELS[model]))


def test_clients_in_javascript_can_build_the_schema_of_every_role(service: tuple[str, Service]) -> None:
    name, running = service
    for role in MODELS[name].role_names:
        answer = as_role(running, name, role).query(INTROSPECTION)
        assert "errors" not in answer, role
        assert json.loads(node("schema.mjs", given=json.dumps(answer))) == [], role
