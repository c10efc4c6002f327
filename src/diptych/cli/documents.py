"""`diptych schema` and `diptych openapi`: print the API documents of a role."""

from __future__ import annotations

import json
from typing import Any

import click
from graphql import print_schema

from diptych.api.graphql.schema import build_schema
from diptych.api.openapi.document import build_openapi as openapi_document
from diptych.api.openapi.rated import add_rates
from diptych.cli.model import load_model, model_argument
from diptych.cli.settings import config_of, options
from diptych.errors import StartError
from diptych.model.model import Model
from diptych.model.read.rates import rates_in_force
from diptych.model.view import View

ROLE = click.option(
    "--as",
    "role",
    metavar="ROLE",
    default=None,
    help="The role that asks: anonymous, signed_in, …; left out, the one that may do most.",
)


def role_of(model: Model, role: str | None) -> str:
    """The role of a command; by default the one that sees most: admin, or the one that implies most."""
    if role is None:
        return max(model.role_names, key=lambda name: (name == "admin", len(model.viewer_as(name).roles)))
    if role not in model.role_names:
        raise StartError(f"The model has no role named {role!r}; there are {', '.join(model.role_names)}.")
    return role


def _view(model: Model, role: str | None) -> View:
    return model.view_as(role_of(model, role))


@click.command()
@model_argument
@ROLE
def schema(model: str | None, role: str | None) -> None:
    """Print the GraphQL schema (SDL) of a role."""
    loaded = load_model(model)
    click.echo(print_schema(build_schema(_view(loaded, role))))


@click.command()
@model_argument
@ROLE
@options("base_url")
def openapi(model: str | None, role: str | None, **flags: Any) -> None:
    """Print the OpenAPI document of a role."""
    loaded, config = load_model(model), config_of(flags)
    address = config.base_url or f"http://127.0.0.1:{config.port or 8000}"
    document = openapi_document(
        _view(loaded, role), title=loaded.title, about=loaded.about, server=address, issuer=address
    )
    if rates_in_force(loaded, config.rates):
        add_rates(document)
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
