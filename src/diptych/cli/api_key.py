"""`diptych api-key`: manage API keys, the bearer tokens of machines."""

from __future__ import annotations

from typing import Any

import click

from diptych.cli.model import check_roles, check_scopes, load_model
from diptych.cli.records import MANY, ROLES, USER, in_database, iso_time, listed, print_table, run_on_store
from diptych.identity.api_keys import ApiKeys


@click.group("api-key")
def api_key() -> None:
    """API keys: bearer tokens for machines.

    They are valid until they are removed or expire.
    """


@api_key.command()
@click.argument("name", metavar="NAME")
@USER
@ROLES
@MANY("--scope", "scopes", metavar="SCOPE", help="Narrow it, as in users:read; may be repeated.")
@click.option(
    "--ttl",
    type=click.IntRange(min=1, max=10**9),
    metavar="SECONDS",
    help="Seconds until it expires; without, it does not.",
)
@in_database
def add(
    name: str, user: str | None, roles: tuple[str, ...], scopes: tuple[str, ...], ttl: int | None, **flags: Any
) -> None:
    """Add an API key; it is printed once."""
    model = load_model(flags["model"])
    check_roles(model, roles)
    check_scopes(model, scopes)
    _, text = run_on_store(
        flags, lambda store, revoked: ApiKeys(store, revoked).add(name, user, roles, scopes or None, ttl)
    )
    click.echo(text)


@api_key.command("list")
@in_database
def list_(**flags: Any) -> None:
    """List all API keys, with their last use."""
    keys = run_on_store(flags, lambda store, revoked: ApiKeys(store, revoked).all())
    rows = [
        (
            key.name,
            key.user_id or "-",
            listed(key.roles),
            listed(key.scopes or ()),
            iso_time(key.created_at),
            iso_time(key.expires_at),
            iso_time(key.used_at),
        )
        for key in keys
    ]
    print_table(("NAME", "USER", "ROLES", "SCOPES", "CREATED", "EXPIRES", "LAST_USE"), rows)


@api_key.command()
@click.argument("name", metavar="NAME")
@in_database
def remove(name: str, **flags: Any) -> None:
    """Remove an API key; it is invalid at once."""
    key = run_on_store(flags, lambda store, revoked: ApiKeys(store, revoked).remove(name))
    click.echo(f"{key.name} is removed.")
