"""`diptych token`: an access token, signed with the key of a database."""

from __future__ import annotations

import json
from typing import Any

import click

from diptych.cli.model import check_roles, load_model, model_argument
from diptych.cli.records import MANY, ROLES, run_on_store
from diptych.cli.settings import config_of, options
from diptych.db.store import Store
from diptych.errors import StartError
from diptych.identity.revocation_list import RevocationList
from diptych.identity.tokens import TOKEN_LIFETIME, load_tokens


@click.command()
@model_argument
@options("database", "base_url")
@ROLES
@click.option("--user", metavar="ID", help="The id of the user whom the token is for.")
@MANY("--scope", "scopes", metavar="SCOPE", help="Narrow it, as in users:read.")
@MANY("--claim", "claims", metavar="NAME=VALUE", help="Another claim; its value may be JSON.")
@click.option(
    "--ttl", type=click.IntRange(min=1), default=TOKEN_LIFETIME, show_default=True, help="Seconds until its end."
)
def token(
    model: str | None,
    roles: tuple[str, ...],
    user: str | None,
    scopes: tuple[str, ...],
    claims: tuple[str, ...],
    ttl: int,
    **flags: Any,
) -> None:
    """Print an access token for a database."""
    loaded = load_model(model)
    check_roles(loaded, roles)
    more = dict(map(_claim, claims))

    async def make(store: Store, _: RevocationList) -> str:
        tokens = await load_tokens(store, config_of(flags).base_url)
        return tokens.make(user, roles, scopes or None, ttl, more)

    click.echo(run_on_store({**flags, "model": model}, make))


def _claim(text: str) -> tuple[str, Any]:
    """A claim from the command line: `tenant=acme`, `teams=["a", "b"]`."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise StartError(f"--claim {text!r} is not of the form NAME=VALUE.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
