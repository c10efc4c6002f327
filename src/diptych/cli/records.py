"""What the commands about accounts, clients and keys share: their options, the store, and tables of what there is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from diptych.cli.database import opened
from diptych.cli.model import MODEL_OPTION, load_model
from diptych.cli.settings import config_of, options
from diptych.db.store import Store
from diptych.identity.revoked import Revoked

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

ROLES = click.option("--role", "roles", multiple=True, metavar="NAME", help="A role of the model; may be repeated.")
USER = click.option("--user", metavar="ID", help="The id of its user in the model: what rules know as viewer.id.")


def in_database(command: Command) -> Command:
    """Adds the options that tell which database, and of which model."""
    return options("database")(MODEL_OPTION(command))


def run(given: dict[str, Any], work: Callable[[Store, Revoked], Awaitable[T]]) -> T:
    """Do something with the records of the database that the options name."""
    return asyncio.run(_run(given, work))


async def _run(given: dict[str, Any], work: Callable[[Store, Revoked], Awaitable[T]]) -> T:
    async with opened(config_of(given), load_model(given["model"])) as store:
        return await work(store, Revoked(store))


def show(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, its columns aligned."""
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def listed(values: Sequence[str]) -> str:
    return " ".join(values) or "-"


def moment(seconds: int | None) -> str:
    """A moment, in UTC."""
    return "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
