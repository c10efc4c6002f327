"""`diptych token`: an access token, signed with the key of a database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import click

from diptych.cli.database import opened
from diptych.cli.model import check_roles, load_model, model_argument
from diptych.cli.settings import config_of, options
from diptych.config import Config
from diptych.errors import StartError
from diptych.identity.tokens import LIFETIME, Tokens, load_tokens
from diptych.model.model import Model


@click.command()
@model_argument
@options("database", "base_url")
@click.option("--role", "roles", multiple=True, metavar="NAME", help="A role of the model; may be repeated.")
@click.option("--user", metavar="ID", help="The id of the user whom the token is for.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Narrow it, as in users:read.")
@click.option("--claim", "claims", multiple=True, metavar="NAME=VALUE", 
              help="Another claim; its value may be JSON.")  # fmt: skip
@click.option("--ttl", type=click.IntRange(min=1), default=LIFETIME, show_default=True, help="Seconds until its end.")
def token(
    model: str | None, roles: tuple[str, ...], user: str | None, scopes: tuple[str, ...], claims: tuple[str, ...],
    ttl: int, **given: Any,
) -> None:  # fmt: skip
    """Print an access token for a database."""
    found = load_model(model)
    check_roles(found, roles)
    more = dict(map(_claim, claims))
    config = config_of(given)
    click.echo(asyncio.run(_make(found, config, lambda tokens: tokens.make(user, roles, scopes or None, ttl, more))))


def _claim(text: str) -> tuple[str, Any]:
    """A claim from the command line: `tenant=acme`, `teams=["a", "b"]`."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise StartError(f"--claim {text!r} is not of the form NAME=VALUE.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


async def _make(model: Model, config: Config, make: Callable[[Tokens], str]) -> str:
    async with opened(config, model) as store:
        return make(await load_tokens(store, config.base_url))
