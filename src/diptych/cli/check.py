"""`diptych check`: what would fail at start, and what would work better."""

from __future__ import annotations

import asyncio

import click

from diptych.cli.model import load_model, model_argument
from diptych.cli.settings import check_lasting, config_of
from diptych.db.connect import connect
from diptych.db.fitting import refusal
from diptych.db.store import Store
from diptych.errors import StartError
from diptych.model.advice import advise
from diptych.model.model import Model


@click.command()
@model_argument
@click.option("--database", metavar="URL", default=None, help="A database to hold against the model; it is only read.")
@click.option("--accept", is_flag=True, help="Record what the model means by columns that you have changed by hand.")
def check(model: str | None, database: str | None, accept: bool) -> None:
    """Check a model: list everything that would fail at start, and warn of what would be slow."""
    found = load_model(model)
    if accept and database is None:
        raise StartError("--accept is about a database: name it by --database URL.")
    told = [f"Warning: {advice}" for advice in advise(found.resources)]
    if database is not None:
        config = config_of({"database": database})
        check_lasting(config)
        store = connect(config)
        told += asyncio.run(_accept(store, found) if accept else _look(store, found))
        told += [f"Warning: {caution}" for caution in store.cautions()]
    names = ", ".join(found.resources)
    click.echo(f"The model works: {len(found.resources)} resources ({names}), roles {', '.join(found.role_names)}.")
    for line in told:
        click.echo(line)


async def _look(store: Store, model: Model) -> list[str]:
    """What a database lacks and can be served without, a sentence each; refused if it does not fit."""
    found = await store.look(model)
    if refused := refusal(found, model, await store.catalogue()):
        raise refused
    return [f"Warning: {_sentence(each.sentence)}. Run {'; '.join(each.statements)};" for each in found]


async def _accept(store: Store, model: Model) -> list[str]:
    """Have the model's meaning recorded; refused if the tables do not fit, or hold values that have no such meaning."""
    await store.catalogue()  # one that is not there is not made
    try:
        fitted = await store.open(model, accept=True)
    finally:
        await store.close()
    return [*fitted.done, "The database has it on record what the model means by its columns."]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
