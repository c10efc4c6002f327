"""`diptych token`: an access token, signed with the key of a database."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from diptych.cli.model import MODEL, load_model
from diptych.cli.settings import check_lasting, config_of, options
from diptych.db.connect import connect
from diptych.errors import StartError
from diptych.identity.tokens import LIFETIME, load_tokens


@click.command()
@MODEL
@options("database", "base_url")
@click.option("--role", "roles", multiple=True, metavar="NAME", help="A role of the model; may be repeated.")
@click.option("--user", metavar="ID", help="The id of the user whom the token is for.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Narrow it, as in users:read.")
@click.option("--ttl", type=click.IntRange(min=1), default=LIFETIME, show_default=True, help="Seconds until its end.")
def token(
    model: str | None, roles: tuple[str, ...], user: str | None, scopes: tuple[str, ...], ttl: int, **given: Any
) -> None:
    """Print an access token for a database."""
    found = load_model(model)
    unknown = [role for role in roles if role not in found.roles]
    if unknown:
        known = ", ".join(found.roles) or "none"
        raise StartError(f"The model has no role named {', '.join(unknown)}; its roles are {known}.")
    click.echo(asyncio.run(_make(found, given, roles, user, scopes, ttl)))


async def _make(
    model: Any, given: dict[str, Any], roles: tuple[str, ...], user: str | None, scopes: tuple[str, ...], ttl: int
) -> str:
    config = config_of(given)
    check_lasting(config)
    store = connect(config)
    await store.open(model)
    try:
        tokens = await load_tokens(store, config.base_url)
        return tokens.make(user, roles, scopes or None, ttl)
    finally:
        await store.close()
