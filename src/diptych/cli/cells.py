"""`diptych cells`: the databases of tenants, which the cells file lists."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from diptych.cells.directory import Directory, check_tenant, read_directory
from diptych.cli.database import check_there
from diptych.cli.migrate import migrate_now
from diptych.cli.model import model_argument
from diptych.cli.move import move_all
from diptych.cli.settings import config_of, options
from diptych.config import Config
from diptych.db.whole_file import whole_file
from diptych.errors import DiptychError, StartError
from diptych.migrate.files import FOLDER


@click.group()
def cells() -> None:
    """The databases of tenants, which the cells file lists."""


@cells.command(name="list")
@options("cells")
def list_(**flags: Any) -> None:
    """List the tenants, their databases, and whether these are there."""
    config, _, directory = _read(flags)
    width = max((len(tenant) for tenant in directory.databases), default=0)
    for tenant, database in directory.databases.items():
        try:
            check_there(directory.config_of(tenant, config))
            state = ""
        except StartError:
            state = "  (not there yet)"
        click.echo(f"{tenant:{width}}  {_without_password(database)}{state}")


@cells.command()
@click.argument("tenant")
@click.argument("database")
@options("cells")
def add(tenant: str, database: str, **flags: Any) -> None:
    """Add a tenant with its database. Services take it over within a second, and make the tables."""
    config, file, _ = _read(flags)
    check_tenant(tenant)

    def append(text: str) -> str:
        if tenant in read_directory(file, config).databases:
            raise StartError(f"{file} has the tenant {tenant} already.")
        head = "" if re.search(r"^\s*\[cells\]", text, re.MULTILINE) else "\n[cells]\n"
        return f"{text.rstrip()}\n{head}{tenant} = {json.dumps(database)}\n"

    _rewrite(file, config, append)
    click.echo(f"{tenant} has a cell now.")


@cells.command()
@model_argument
@click.option("--folder", default=FOLDER, show_default=True, help="The folder of the migrations.")
@options("cells", "statement_timeout")
def migrate(model: str | None, folder: str, **flags: Any) -> None:
    """Apply pending migrations to all cells, one after the other. One that fails holds up no other."""
    config, _, directory = _read(flags)
    failed = []
    for number, tenant in enumerate(directory.databases, 1):
        click.echo(f"{tenant} ({number} of {len(directory.databases)})")
        try:
            migrate_now(directory.config_of(tenant, config), model, folder)
        except DiptychError as error:
            click.echo(f"{error}", err=True)
            failed.append(tenant)
    if failed:
        done = len(directory.databases) - len(failed)
        raise StartError(f"{done} of {len(directory.databases)} cells are migrated; not so {', '.join(failed)}.")


@cells.command()
@click.argument("tenant")
@click.argument("target")
@model_argument
@options("cells", "statement_timeout")
def move(tenant: str, target: str, model: str | None, **flags: Any) -> None:
    """Move a tenant to the empty database TARGET while it is served.

    The cells file then has the new address.
    """
    config, file, directory = _read(flags)
    source = directory.databases.get(tenant)
    if source is None:
        raise StartError(f"{file} has no tenant {tenant}.")
    moved = move_all(replace(config, cells=""), source, target, model)
    entry = re.compile(rf"^(\s*(?:{re.escape(tenant)}|\"{re.escape(tenant)}\")\s*=\s*).*$", re.MULTILINE)
    _rewrite(file, config, lambda text: entry.sub(lambda match: match[1] + json.dumps(target), text))
    if read_directory(file, config).databases[tenant] != target:
        raise StartError(f"{tenant} is in {_without_password(target)} now; enter that into {file} by hand.")
    waited = "" if moved is None else f" Writers waited for {moved.held_up:.2f} seconds."
    click.echo(f"{tenant} is in {_without_password(target)} now.{waited}")


def _read(flags: dict[str, Any]) -> tuple[Config, Path, Directory]:
    config = config_of(flags)
    if not config.cells:
        raise StartError("There is no cells file: --cells FILE names one.")
    file = Path(config.cells)
    return config, file, read_directory(file, config)


def _rewrite(file: Path, config: Config, change: Callable[[str], str]) -> None:
    """Replace the cells file by a changed one, if that can be read; nobody sees a part of it, and no two commands
    change it at the same time. It holds passwords: its mode stays."""
    mode = stat.S_IMODE(file.stat().st_mode)
    with whole_file(file, mode) as part:
        part.chmod(mode)
        part.write_text(change(file.read_text("utf-8")), "utf-8")
        read_directory(part, config)


def _without_password(database: str) -> str:
    password = urlsplit(database).password
    return database if password is None else database.replace(f":{password}@", ":…@", 1)
