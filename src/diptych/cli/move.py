"""`diptych move`: all data from one database to another, while it is served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import click

from diptych.cli.database import SQLITE, check_there
from diptych.cli.model import load_model, model_argument
from diptych.cli.row_files import is_shown
from diptych.cli.settings import check_lasting, config_of, options
from diptych.config import Config, for_database
from diptych.db.connect import connect
from diptych.db.postgres.store import PostgresStore
from diptych.db.sqlite.private_file import make_private
from diptych.errors import StartError
from diptych.model.model import Model
from diptych.move.postgres import PostgresSide
from diptych.move.runner import Moved, MoveRun, Progress
from diptych.move.side import Side
from diptych.move.sqlite import SqliteSide


@click.command()
@click.argument("source")
@click.argument("target")
@model_argument
@click.option("--dry-run", is_flag=True, help="Only read the source, and say what could not be moved.")
@click.option("--no-switch", is_flag=True, help="Copy, follow and verify, and leave the source as it is.")
@options("statement_timeout")
def move(source: str, target: str, model: str | None, dry_run: bool, no_switch: bool, **flags: Any) -> None:
    """Move all data from the database SOURCE to the empty one TARGET.

    Each of them is SQLite or PostgreSQL. Ids, versions, moments, the feed, accounts, tokens, keys and idempotency
    keys stay as they are, so every cursor, ETag and token is good afterwards. SOURCE may be served meanwhile: its
    writers wait for a moment at the end, and get 503 from then on, until they are started with TARGET. A run that
    was interrupted goes on where it stopped.
    """
    moved = _run(config_of(flags), source, target, model, dry_run=dry_run, switch=not no_switch)
    if moved is None:
        click.echo(
            "The switch was made before; the target is complete. Start your services with the target now.", err=True
        )
        return
    if isinstance(moved, int):
        click.echo(f"All {moved:,} rows can be moved. Nothing was changed.", err=True)
        return
    click.echo(f"Moved {moved.rows:,} rows and {moved.changes:,} changes of the feed, and verified them.", err=True)
    if no_switch:
        click.echo(
            "The source is as it was. The same command without --no-switch brings the rest, and switches.", err=True
        )
    else:
        click.echo(
            f"Writers waited for {moved.held_up:.2f} seconds. Start your services with the target now.", err=True
        )


def move_all(config: Config, source: str, target: str, model: str | None) -> Moved | None:
    """Move a database and switch; None if the switch was made before."""
    moved = _run(config, source, target, model, dry_run=False, switch=True)
    assert not isinstance(moved, int)
    return moved


def _run(
    config: Config, source: str, target: str, model: str | None, *, dry_run: bool, switch: bool
) -> Moved | int | None:
    loaded = load_model(model)
    foreign = [resource.table for resource in loaded.resources.values() if not resource.managed]
    if foreign:
        raise StartError(f"{', '.join(foreign)} existed before the model and are not Diptych's to move.")
    if source == target:
        raise StartError("The source and the target are the same database.")
    here, there = (replace(for_database(config, url), pool_mode="session") for url in (source, target))
    check_lasting(here)
    check_lasting(there)
    check_there(here)
    with _progress() as progress:
        return asyncio.run(_move(loaded, here, there, progress, dry_run=dry_run, switch=switch))


async def _move(
    model: Model, here: Config, there: Config, progress: Progress, *, dry_run: bool, switch: bool
) -> Moved | int | None:
    source, target = _side(here), _side(there)
    await source.open(model)
    try:
        if await source.moved_to() == target.name:  # it may have been interrupted then
            await target.open(model)
            try:
                await MoveRun(model, source, target, progress).finish()
            finally:
                await target.close()
            return None
        await _check_served(model, here)
        probe = MoveRun(model, source, source, progress)
        rows = await probe.check(text_only=not there.database.startswith(SQLITE))
        if dry_run:
            return rows
        if there.database.startswith(SQLITE):
            make_private(there.database.removeprefix(SQLITE))
        await target.open(model)
        try:
            return await MoveRun(model, source, target, progress).run(switch=switch)
        finally:
            await target.close()
    finally:
        await source.close()


async def _check_served(model: Model, config: Config) -> None:
    """Refuse a source that a service would refuse."""
    store = connect(config)
    await store.open(model)
    await store.close()


def _side(config: Config) -> Side:
    if config.database.startswith(SQLITE):
        return SqliteSide(config.database.removeprefix(SQLITE))
    return PostgresSide(cast(PostgresStore, connect(config)))


@contextmanager
def _progress() -> Iterator[Progress]:
    """A progress bar for each step."""
    bars: dict[str, Any] = {}

    def show(label: str, done: int, total: int) -> None:
        if label not in bars:
            _finish(bars)
            bars[label] = click.progressbar(length=total, label=label, hidden=not is_shown())
            bars[label].__enter__()
        bars[label].length = max(total, done)
        bars[label].update(done - bars[label].pos)

    try:
        yield show
    finally:
        _finish(bars)


def _finish(bars: dict[str, Any]) -> None:
    for bar in bars.values():
        if not bar.finished:
            bar.__exit__(None, None, None)
            bar.finished = True
