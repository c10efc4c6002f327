"""`diptych check`: validate a model, and compare it with a database."""

from __future__ import annotations

import asyncio

import click

from diptych.cli.counts import counted
from diptych.cli.model import load_model, model_argument
from diptych.cli.settings import check_lasting, config_of
from diptych.db.connect import connect
from diptych.db.fitting import refusal
from diptych.db.store import Store
from diptych.errors import StartError
from diptych.model.describe.access_advice import advise_access
from diptych.model.describe.index_advice import advise
from diptych.model.describe.link_advice import advise_links
from diptych.model.describe.rate_advice import advise_rates
from diptych.model.model import Model
from diptych.model.naming import upper_first
from diptych.model.read.rates import rates_in_force


@click.command()
@model_argument
@click.option("--database", metavar="URL", default=None, help="A database to compare with the model; it is only read.")
@click.option("--accept", is_flag=True, help="Record what the model means by columns that you have changed by hand.")
def check(model: str | None, database: str | None, accept: bool) -> None:
    """List the mistakes of a model, and warn of what would be slow.

    With --database, compare the model with the tables there as well.
    """
    loaded = load_model(model)
    if accept and database is None:
        raise StartError("--accept is about a database: name it by --database URL.")
    settings = config_of({})
    rates = rates_in_force(loaded, settings.rates)
    advices = (
        *advise_access(loaded.resources),
        *advise(loaded.resources),
        *advise_links(loaded.resources),
        *(f"{upper_first(advice)}." for advice in advise_rates(rates, settings.max_complexity)),
    )
    messages = [f"Warning: {advice}" for advice in advices]
    if database is not None:
        config = config_of({"database": database})
        check_lasting(config)
        store = connect(config)
        messages += asyncio.run(_accept(store, loaded) if accept else _look(store, loaded))
        messages += [f"Warning: {caution}" for caution in store.cautions()]
    resources = counted(len(loaded.resources), "resource")
    names = ", ".join(loaded.resources)
    click.echo(f"The model works: {resources} ({names}), roles {', '.join(loaded.role_names)}.")
    for line in messages:
        click.echo(line)


async def _look(store: Store, model: Model) -> list[str]:
    """Warnings for what the database lacks and can be served without; a StartError if it does not match the model."""
    differences = await store.look(model)
    if refused := refusal(differences, model, await store.catalogue()):
        raise refused
    return [
        f"Warning: {upper_first(difference.sentence)}. Run {'; '.join(difference.statements)};"
        for difference in differences
    ]


async def _accept(store: Store, model: Model) -> list[str]:
    """Record the model's meaning of columns; refused if tables do not match or hold values without such a meaning."""
    await store.catalogue()  # fails for a missing database, so that none is created
    try:
        fitted = await store.open(model, accept=True)
    finally:
        await store.close()
    return [*fitted.done, "The database has it on record what the model means by its columns."]
