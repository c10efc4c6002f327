"""`diptych check`: what would fail at start, and what would work better."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import click

from diptych.cli.model import load_model, model_argument
from diptych.cli.settings import check_lasting, config_of
from diptych.compile.indexes import IndexFound, missing_indexes
from diptych.db.connect import connect
from diptych.db.store import Store, fit
from diptych.model.advice import advise
from diptych.model.model import Model


@click.command()
@model_argument
@click.option("--database", metavar="URL", default=None, help="A database to hold against the model; it is only read.")
def check(model: str | None, database: str | None) -> None:
    """Check a model: list everything that would fail at start, and warn of what would be slow."""
    found = load_model(model)
    warnings = [str(advice) for advice in advise(found.resources)]
    if database is not None:
        config = config_of({"database": database})
        check_lasting(config)
        store = connect(config)
        warnings += asyncio.run(_look(store, found)) + store.cautions()
    names = ", ".join(found.resources)
    click.echo(f"The model works: {len(found.resources)} resources ({names}), roles {', '.join(found.role_names)}.")
    for warning in warnings:
        click.echo(f"Warning: {warning}")


async def _look(store: Store, model: Model) -> list[str]:
    """What a database lacks, a sentence each; refused if its tables do not fit."""
    have = await store.catalogue()
    fit(model, have, "sqlite" if store.dialect.name == "sqlite" else "postgres")
    return list(_lacking(model, have.indexes)) if have.has_any_of(model) else []


def _lacking(model: Model, have: Sequence[IndexFound]) -> Iterator[str]:
    for index in missing_indexes(model, have):
        column = f"{index.resource.table}.{index.field.column}"
        told = f"does not keep {column} unique" if index.unique else f"has no index on {column}"
        yield f"The database {told}. Run {index.create};"
