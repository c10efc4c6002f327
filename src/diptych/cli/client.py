"""`diptych client`: manage OAuth clients."""

from __future__ import annotations

from typing import Any

import click

from diptych.cli.model import check_roles, check_scopes, load_model
from diptych.cli.records import MANY, in_database, iso_time, listed, print_table, run_on_store
from diptych.db.store import Store
from diptych.identity.clients import Clients
from diptych.identity.records import ClientDetails, ClientRecord
from diptych.identity.revocation_list import RevocationList
from diptych.identity.scopes import IDENTITY_SCOPES


@click.group()
def client() -> None:
    """OAuth clients: programs that request tokens.

    They request them for people who sign in, or for themselves.
    """


@client.command()
@click.argument("name", metavar="NAME")
@MANY("--redirect", "redirects", metavar="URI", help="A redirect URI, matched exactly; may be repeated.")
@click.option("--confidential", is_flag=True, help="It can keep a secret, which is printed once.")
@MANY("--role", "roles", metavar="NAME", help="A role of the tokens that it gets for itself; may be repeated.")
@MANY("--scope", "scopes", metavar="SCOPE", help="The most that it gets, as in users:read; may be repeated.")
@click.option("--device", is_flag=True, help="It may use the device flow, for programs without a browser.")
@in_database
def add(
    name: str,
    redirects: tuple[str, ...],
    confidential: bool,
    roles: tuple[str, ...],
    scopes: tuple[str, ...],
    device: bool,
    **flags: Any,
) -> None:
    """Add a client; prints its id, and its secret if it has one."""
    model = load_model(flags["model"])
    check_roles(model, roles)
    check_scopes(model, scopes, IDENTITY_SCOPES)
    client, secret = run_on_store(
        flags,
        lambda store, revoked: Clients(store, revoked).add(
            name, redirects, confidential=confidential, roles=roles, scopes=scopes, device=device
        ),
    )
    click.echo(f"client_id      {client.id}")
    if secret is not None:
        click.echo(f"client_secret  {secret}")


@client.command("list")
@in_database
def list_(**flags: Any) -> None:
    """List all clients."""

    async def read(store: Store, revoked: RevocationList) -> tuple[list[ClientRecord], dict[str, ClientDetails]]:
        clients = Clients(store, revoked)
        return await clients.all(), await clients.details()

    clients, details = run_on_store(flags, read)
    rows = [
        (
            client.name,
            client.id,
            _kind(client, details.get(client.id)),
            listed(client.redirects),
            listed(client.roles),
            listed(client.scopes),
            iso_time(client.created_at),
        )
        for client in clients
    ]
    print_table(("NAME", "CLIENT_ID", "KIND", "REDIRECTS", "ROLES", "SCOPES", "CREATED"), rows)


@client.command()
@click.argument("name", metavar="NAME")
@in_database
def remove(name: str, **flags: Any) -> None:
    """Remove a client; all of its tokens are revoked at once."""
    client = run_on_store(flags, lambda store, revoked: Clients(store, revoked).remove(name))
    click.echo(f"{client.name} is removed.")


def _kind(client: ClientRecord, details: ClientDetails | None) -> str:
    words = ["confidential" if client.secret else "public"]
    if details is not None and details.device:
        words.append("device")
    if details is not None and details.expires_at is not None:
        words.append(f"registered until {iso_time(details.expires_at)}")
    return ", ".join(words)
