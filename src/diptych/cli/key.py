"""`diptych key`: manage the keys that sign access tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from diptych.cli.records import in_database, iso_time, print_table, run_on_store
from diptych.identity.keys import SigningKey, remove_key, rotate_key, signing_keys


@click.group()
def key() -> None:
    """Keys that sign access tokens. The newest signs; older ones verify what they signed."""


@key.command("list")
@in_database
def list_(**flags: Any) -> None:
    """List all keys, the one that signs first."""
    keys = run_on_store(flags, lambda store, revoked: signing_keys(store))
    print_table(("KID", "CREATED", "STATE"), [(key.kid, _moment(key.created_at), _state(key)) for key in keys])


@key.command("rotate")
@in_database
def rotate_(**flags: Any) -> None:
    """Sign with a new key.

    Running services use it within a second, and tokens of the old one stay valid.
    """
    kid = run_on_store(flags, lambda store, revoked: rotate_key(store))
    click.echo(f"The key {kid} signs from now on.")


@key.command()
@click.argument("kid", metavar="KID")
@click.option("--at-once", is_flag=True, help="Also while tokens that it signed may be valid: they end with it.")
@in_database
def remove(kid: str, at_once: bool, **flags: Any) -> None:
    """Remove a key that signs no longer.

    It is refused until the tokens that it signed have expired. Tokens of `diptych token --ttl` can be meant to live
    longer; they end with their key.
    """
    run_on_store(flags, lambda store, revoked: remove_key(store, kid, at_once=at_once))
    click.echo(f"The key {kid} is removed.")


def _state(key: SigningKey) -> str:
    if key.needed_until is None:
        return "signs"
    return f"needed until {_moment(key.needed_until)}" if key.is_needed else "can be removed"


def _moment(at: datetime) -> str:
    return iso_time(int(at.timestamp()))
