"""`diptych issuer`: the public address that a database remembers, which is the issuer of its tokens."""

from __future__ import annotations

from typing import Any

import click

from diptych.cli.records import in_database, run_on_store
from diptych.identity.issuer import remembered_issuer, set_issuer
from diptych.setting_parsers import read_address


@click.group()
def issuer() -> None:
    """The issuer of tokens: the public address of the service.

    The database remembers it from the first start with a base_url.
    """


@issuer.command()
@in_database
def show(**flags: Any) -> None:
    """Print the issuer."""
    known = run_on_store(flags, lambda store, revoked: remembered_issuer(store))
    click.echo(known or "This database has no issuer yet; the first start with a base_url sets it.")


@issuer.command("set")
@click.argument("address", metavar="URL")
@in_database
def set_(address: str, **flags: Any) -> None:
    """Change the issuer, for a service that has moved. Restart it afterwards.

    Access tokens of the old issuer end then; refresh tokens and consents stay. Apps need the new address.
    """
    try:
        wanted = read_address(address or "-")
    except ValueError as error:
        raise click.BadParameter(f"{address!r}: {error}.") from None
    before = run_on_store(flags, lambda store, revoked: set_issuer(store, wanted))
    click.echo(f"The issuer is {wanted}{f', and was {before}' if before else ''}. Restart the service.")
