"""`diptych backup` and `diptych restore`: a whole database as one file, and back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from diptych.cli.database import SQLITE, check_there
from diptych.cli.row_files import is_shown
from diptych.cli.settings import check_lasting, config_of, options
from diptych.db.postgres import backup as postgres
from diptych.db.sqlite import backup as sqlite
from diptych.errors import StartError

_HEADS = {b"SQLite format 3\0": "SQLite", b"PGDMP": "PostgreSQL"}
"""How the two kinds of backup begin."""


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace FILE if it is there.")
@options("database")
def backup(file: Path, replace: bool, **flags: Any) -> None:
    """Write the whole database to FILE, while it is served.

    That is all rows, the feed, accounts and keys. A backup of SQLite is a database itself, read back before FILE
    gets its name. One of PostgreSQL is written by pg_dump. FILE holds the keys that sign tokens: only its owner can
    read it.
    """
    config = config_of(flags)
    check_lasting(config)
    if file.exists() and not replace:
        raise StartError(f"{file} is there already; add --replace, or choose another name.")
    if config.database.startswith(SQLITE):
        check_there(config)
        size = _back_up_sqlite(config.database.removeprefix(SQLITE), file)
    else:
        size = postgres.back_up(config.database, file)
    click.echo(f"Wrote {size / 1e6:,.1f} MB to {file}, and verified it.", err=True)


def _back_up_sqlite(database: str, file: Path) -> int:
    with click.progressbar(length=1, label="Copying", hidden=not is_shown()) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        return sqlite.back_up(database, file, show)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options("database")
def restore(file: Path, **flags: Any) -> None:
    """Replace the database by the backup in FILE. Stop the services first.

    A SQLite database that is there is kept under another name; one of PostgreSQL must be empty. What was written
    after the backup is gone: followers get RESUME_GAP, and tokens and keys that were revoked since are valid again.
    """
    config = config_of(flags)
    check_lasting(config)
    kind = _kind_of(file)
    wanted = "SQLite" if config.database.startswith(SQLITE) else "PostgreSQL"
    if kind != wanted:
        raise StartError(f"{file} is a backup of {kind}, and the database is one of {wanted}.")
    if kind == "SQLite":
        path = config.database.removeprefix(SQLITE)
        aside = sqlite.restore(file, path)
        click.echo(f"{path} is the backup now." + (f" What was there is {aside}." if aside else ""), err=True)
    else:
        asyncio.run(postgres.restore(file, config.database))
        click.echo("The database is the backup now.", err=True)


def _kind_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            head = opened.read(16)
    except OSError as error:
        raise StartError(f"{file} cannot be read: {error.strerror}.") from None
    for start, kind in _HEADS.items():
        if head.startswith(start):
            return kind
    raise StartError(f"{file} is no backup: it is neither a SQLite database nor an archive of pg_dump.")
