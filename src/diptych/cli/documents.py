"""`diptych schema` and `diptych openapi`: what a role can ask for."""

from __future__ import annotations

import json
from typing import Any

import click
from graphql import print_schema

from diptych.api.graphql.schema import build_schema
from diptych.api.rest.openapi import openapi as openapi_document
from diptych.cli.model import load_model, model_argument
from diptych.cli.settings import config_of, options
from diptych.errors import StartError
from diptych.model.model import Model
from diptych.model.view import View

ROLE = click.option("--as", "role", metavar="ROLE", default=None, help="The role that asks: anonymous, signed_in, …")


def role_of(model: Model, role: str | None) -> str:
    """The role that a command is about; left out, the one that sees most: admin, or the one that implies most."""
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
    found = load_model(model)
    click.echo(print_schema(build_schema(_view(found, role))))


@click.command()
@model_argument
@ROLE
@options("base_url")
def openapi(model: str | None, role: str | None, **given: Any) -> None:
    """Print the OpenAPI document of a role."""
    found, address = load_model(model), config_of(given).base_url
    document = openapi_document(_view(found, role), title=found.title, server=address, issuer=address)
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
