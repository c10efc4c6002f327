"""`diptych triggers`: which tables of others have triggers of Diptych, and how to take them off."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click

from diptych.cli.counts import counted
from diptych.cli.database import opened
from diptych.cli.model import load_model, model_argument
from diptych.cli.settings import config_of, options
from diptych.compile.existing_triggers import TRIGGERS, existing_tables, take_off
from diptych.compile.plan import Plan
from diptych.config import Config
from diptych.db.fitting import begin_feed_anew
from diptych.db.nodes import dialect_name, nodes_of, recent_nodes
from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.errors import StartError
from diptych.model.model import Model


@click.command()
@model_argument
@click.option("--remove", is_flag=True, help="Take them off. Stop the services first.")
@options("database")
def triggers(model: str | None, remove: bool, **flags: Any) -> None:
    """List the existing tables whose changes triggers of Diptych log.

    They are tables that Diptych did not make, of resources with `triggers=True`.

    With --remove the tables are as their owner made them. A service whose model says `triggers=True` puts the triggers
    on again when it starts; subscribers and webhooks from before that get a gap.
    """
    tables = asyncio.run(_triggers(config_of(flags), load_model(model), remove))
    for table in tables:
        click.echo(table)
    if remove and tables:
        click.echo(f"Took the triggers off {counted(len(tables), 'table')}.", err=True)
    elif not tables:
        click.echo("There were none." if remove else "There are none.", err=True)


async def _triggers(config: Config, model: Model, remove: bool) -> list[str]:
    async with opened(config, model.without_feed(existing=True)) as store:
        (found,) = await store.run(Plan(TRIGGERS[dialect_name(store.dialect)]), [])
        tables = [table for table in existing_tables(model) if table in json.loads(found or b"[]")]
        if remove and tables:
            audited = "diptych_audit_head" in (await store.catalogue()).system_tables
            await store.write(lambda: _remove(store, model, audited=audited))
        return tables


def _remove(store: Store, model: Model, *, audited: bool) -> Script[None]:
    """Take the triggers off, and begin the feed anew: changes that nobody logged must not look like none."""
    dialect = dialect_name(store.dialect)
    row = yield Step(recent_nodes(dialect), ())
    if row is not None and (nodes := nodes_of([row])):
        raise StartError(f"The service {nodes[0]} runs, and would miss changes. Stop it first.")
    for statement in take_off(model, dialect):
        yield Step(statement, ())
    yield from begin_feed_anew(dialect, audited=audited)
