"""`diptych client`: programs that ask for tokens."""

from __future__ import annotations

from typing import Any

import click

from diptych.cli.model import check_roles, check_scopes, load_model
from diptych.cli.records import in_database, listed, moment, run, show
from diptych.identity.clients import Clients


@click.group()
def client() -> None:
    """Clients: programs that ask for tokens, for people or for themselves."""


@client.command()
@click.argument("name", metavar="NAME")
@click.option("--redirect", "redirects", multiple=True, metavar="URI",
              help="Where people are led back to, exactly; may be repeated.")  # fmt: skip
@click.option("--confidential", is_flag=True, help="It can keep a secret, which is printed once.")
@click.option("--role", "roles", multiple=True, metavar="NAME",
              help="A role of the tokens that it gets for itself; may be repeated.")  # fmt: skip
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE",
              help="The most that it gets, as in users:read; may be repeated.")  # fmt: skip
@in_database
def add(
    name: str, redirects: tuple[str, ...], confidential: bool, roles: tuple[str, ...], scopes: tuple[str, ...],
    **given: Any,
) -> None:  # fmt: skip
    """Add a client; prints its id, and its secret if it has one."""
    model = load_model(given["model"])
    check_roles(model, roles)
    check_scopes(model, scopes)
    found, secret = run(given, lambda store, revoked: Clients(store, revoked).add(
        name, redirects, confidential=confidential, roles=roles, scopes=scopes
    ))  # fmt: skip
    click.echo(f"client_id      {found.id}")
    if secret is not None:
        click.echo(f"client_secret  {secret}")


@client.command("list")
@in_database
def list_(**given: Any) -> None:
    """List all clients."""
    found = run(given, lambda store, revoked: Clients(store, revoked).all())
    rows = [
        (each.name, each.id, "confidential" if each.secret else "public", listed(each.redirects), listed(each.roles),
         listed(each.scopes), moment(each.created_at)) for each in found
    ]  # fmt: skip
    show(("NAME", "CLIENT_ID", "KIND", "REDIRECTS", "ROLES", "SCOPES", "CREATED"), rows)


@client.command()
@click.argument("name", metavar="NAME")
@in_database
def remove(name: str, **given: Any) -> None:
    """Remove a client; all tokens that it got end at once."""
    found = run(given, lambda store, revoked: Clients(store, revoked).remove(name))
    click.echo(f"{found.name} is removed.")
