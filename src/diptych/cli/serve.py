"""`diptych serve`: the production server, and what it shares with `diptych dev`."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from diptych.cli.model import DEFAULT, load_model, model_argument, model_name
from diptych.cli.server import cells_of, listen, serve_by_workers, serve_here
from diptych.cli.settings import check_lasting, config_of, options
from diptych.config import SETTINGS, Config
from diptych.model.model import Model
from diptych.serve.app import Diptych

if TYPE_CHECKING:
    from diptych.cells.app import Cells

_MIGRATE = "diptych.cli.migrate"
_SAMPLE = "diptych.demo.data"
"""Inserts the sample data; like the one above, imported only where that is asked for."""
SERVING = tuple(setting.name for setting in SETTINGS if setting.name != "model")
"""The settings that both commands take as options."""


@click.command()
@model_argument
@options(*SERVING)
@click.option(
    "--migrate", is_flag=True, help="Apply the migrations in the folder migrations first, if nothing is lost."
)
def serve(model: str | None, migrate: bool, **flags: Any) -> None:
    """Serve a model, with production defaults."""
    config = config_of({**flags, "model": model_name(model)})
    if migrate:
        check_lasting(config)
        importlib.import_module(_MIGRATE).migrate_now(config, config.model, patient=True)
    loaded = load_model(config.model)
    if config.cells:
        _serve_cells(loaded, config)
        return
    if config.workers == 1:
        serve_here(config, prepared(loaded, config, dev=False), announce)
        return
    config = asyncio.run(_prepare(loaded, config))
    listener = listen(config)
    announce(config, listener.getsockname()[1])
    serve_by_workers(config, listener)


def _serve_cells(model: Model, config: Config) -> None:
    """Serve a database for each tenant; each is opened by its first request."""
    if config.workers == 1:
        serve_here(config, _prepared_cells(model, config), announce_cells)
        return
    cells_of(model, config)  # what is wrong with the file is said at once
    listener = listen(config)
    announce_cells(config, listener.getsockname()[1])
    serve_by_workers(config, listener)


@asynccontextmanager
async def _prepared_cells(model: Model, config: Config) -> AsyncIterator[Cells]:
    cells = cells_of(model, config)
    try:
        yield cells
    finally:
        await cells.stop()


def announce_cells(config: Config, port: int) -> None:
    """Print where the cells are."""
    click.echo(f"Here     {local_address(config, port)}\nCells    those of {config.cells}")
    sys.stdout.flush()


async def _prepare(model: Model, config: Config) -> Config:
    """Open the database once; returns the settings with the address that it remembers."""
    async with prepared(model, config, dev=False) as app:
        return app.config


@asynccontextmanager
async def prepared(model: Model, config: Config, *, dev: bool) -> AsyncIterator[Diptych]:
    """The application, started once to create tables, keys and sample data."""
    check_lasting(config)
    app = Diptych(model, config=config, add_columns=dev, tell=click.echo if dev else None)
    try:
        await app.start()
        if config.sample and config.model == DEFAULT:
            await importlib.import_module(_SAMPLE).insert_sample(app.store, model)
        yield app
    finally:
        await app.stop()


def local_address(config: Config, port: int) -> str:
    """The address on which the service listens."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{port}"


def announce(config: Config, port: int) -> str:
    """Print the addresses of the service."""
    local = local_address(config, port)
    address = config.base_url or local
    if config.base_url:
        click.echo(f"Here     {local}")
    click.echo(f"GraphQL  {address}/graphql\nREST     {address}/openapi.json lists every path")
    sys.stdout.flush()
    return address
