"""Shared by the commands for accounts, clients and keys: options, access to the store, printed tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import click

from diptych.cli.database import opened
from diptych.cli.model import MODEL_OPTION, load_model
from diptych.cli.settings import config_of, options
from diptych.db.store import Store
from diptych.identity.revocation_list import RevocationList
from diptych.serve.logs import one_line

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

MANY = partial(click.option, multiple=True)
ROLES = MANY("--role", "roles", metavar="NAME", help="A role of the model; may be repeated.")
USER = click.option("--user", metavar="ID", help="The id of its user in the model: what rules know as viewer.id.")


def in_database(command: Command) -> Command:
    """Add the options that name the database and its model."""
    return options("database")(MODEL_OPTION(command))


def run_on_store(flags: dict[str, Any], work: Callable[[Store, RevocationList], Awaitable[T]]) -> T:
    """Open the database that the options name and run `work` on it."""
    return asyncio.run(_run(flags, work))


async def _run(flags: dict[str, Any], work: Callable[[Store, RevocationList], Awaitable[T]]) -> T:
    async with opened(config_of(flags), load_model(flags["model"])) as store:
        return await work(store, RevocationList(store))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, its columns aligned. Cells may have what callers sent: no character of them moves the cursor."""
    lines = [heads, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def listed(values: Sequence[str]) -> str:
    return " ".join(values) or "-"


def iso_time(seconds: int | None) -> str:
    """A timestamp in UTC, as ISO 8601."""
    return "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
