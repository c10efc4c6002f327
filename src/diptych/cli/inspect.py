"""`diptych inspect`: a model file from a database that exists."""

from __future__ import annotations

import asyncio
import importlib

import click

from diptych.cli.database import SQLITE, check_there
from diptych.cli.settings import check_lasting, config_of
from diptych.db.connect import connect
from diptych.inspection.found import FoundDatabase
from diptych.inspection.model_file import write_model


@click.command()
@click.argument("database", metavar="DATABASE")
@click.option("--triggers", is_flag=True, help="Let Diptych put triggers on the tables, by which changes are followed.")
def inspect(database: str, triggers: bool) -> None:
    """Print a model file for DATABASE, which is only read.

    Write it to a file: `diptych inspect sqlite:///shop.db > model.py`. What cannot be expressed is said in the
    file, at its place, and on stderr.
    """
    text, left = model_of(database, triggers=triggers)
    click.echo(text, nl=False)
    for sentence in left:
        click.echo(f"Left out: {sentence}", err=True)


def model_of(database: str, *, triggers: bool = False) -> tuple[str, list[str]]:
    """The model file of a database, and what it leaves out."""
    config = config_of({"database": database})
    check_lasting(config)
    check_there(config)
    connect(config)  # which refuses an address that is no database
    found: FoundDatabase
    if database.startswith(SQLITE):
        found = importlib.import_module("diptych.inspection.sqlite").inspect_sqlite(database.removeprefix(SQLITE))
    else:
        found = asyncio.run(importlib.import_module("diptych.inspection.postgres").inspect_postgres(database))
    return write_model(found, triggers=triggers)
