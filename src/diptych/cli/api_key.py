"""`diptych api-key`: keys for machines."""

from __future__ import annotations

from typing import Any

import click

from diptych.cli.model import check_roles, check_scopes, load_model
from diptych.cli.records import ROLES, USER, in_database, listed, moment, run, show
from diptych.identity.api_keys import ApiKeys


@click.group("api-key")
def api_key() -> None:
    """API keys: bearer tokens for machines, which hold until they are removed or expire."""


@api_key.command()
@click.argument("name", metavar="NAME")
@USER
@ROLES
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE",
              help="Narrow it, as in users:read; may be repeated.")  # fmt: skip
@click.option("--ttl", type=click.IntRange(min=1, max=10**9), metavar="SECONDS",
              help="Seconds until it expires; without, it does not.")  # fmt: skip
@in_database
def add(
    name: str, user: str | None, roles: tuple[str, ...], scopes: tuple[str, ...], ttl: int | None, **given: Any
) -> None:
    """Add an API key; it is printed once."""
    model = load_model(given["model"])
    check_roles(model, roles)
    check_scopes(model, scopes)
    _, text = run(given, lambda store, revoked: ApiKeys(store, revoked).add(name, user, roles, scopes or None, ttl))
    click.echo(text)


@api_key.command("list")
@in_database
def list_(**given: Any) -> None:
    """List all API keys, with their last use."""
    found = run(given, lambda store, revoked: ApiKeys(store, revoked).all())
    rows = [
        (each.name, each.user_id or "-", listed(each.roles), listed(each.scopes or ()), moment(each.created_at),
         moment(each.expires_at), moment(each.used_at)) for each in found
    ]  # fmt: skip
    show(("NAME", "USER", "ROLES", "SCOPES", "CREATED", "EXPIRES", "LAST_USE"), rows)


@api_key.command()
@click.argument("name", metavar="NAME")
@in_database
def remove(name: str, **given: Any) -> None:
    """Remove an API key; it ends at once."""
    found = run(given, lambda store, revoked: ApiKeys(store, revoked).remove(name))
    click.echo(f"{found.name} is removed.")
