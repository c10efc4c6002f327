"""`diptych limits`: the rates in force, and who uses how much of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

import click

from diptych.cli.database import opened
from diptych.cli.model import load_model
from diptych.cli.records import in_database, iso_time, print_table
from diptych.cli.settings import config_of
from diptych.config import Config
from diptych.db.rates import RateRow, all_rates
from diptych.model.model import Model
from diptych.model.rates import RateDef
from diptych.model.read.rates import rates_in_force

_MICRO = 1_000_000


@click.command()
@click.option("--top", type=click.IntRange(min=1), default=20, metavar="NUMBER", help="How many to show. [default: 20]")
@in_database
def limits(top: int, **flags: Any) -> None:
    """Show the rate limits in force, and who uses most of them."""
    config, model = config_of(flags), load_model(flags["model"])
    rates = {rate.name: rate for rate in rates_in_force(model, config.rates)}
    if not rates:
        click.echo("There are no rates, neither in the model nor in the settings.")
        return
    print_table(("RATE", "LIMIT"), [(rate.name, rate.text) for rate in rates.values()])
    click.echo()
    used = usage_table(asyncio.run(_rows(config, model)), rates, time.time())
    if not used:
        click.echo("Nobody has used any of them lately.")
        return
    print_table(("RATE", "WHO", "USED", "OF", "SHARE", "SPENT", "REFUSED", "LAST_USE"), used[:top])


async def _rows(config: Config, model: Model) -> list[RateRow]:
    async with opened(config, model) as store:
        return await all_rates(store)


def usage_table(rows: Iterable[RateRow], rates: Mapping[str, RateDef], now: float) -> list[tuple[str, ...]]:
    """The lines of a table, those who use most of a rate first; rows of rates that are no longer there are left out."""
    lines = []
    for row in rows:
        rate = rates.get(row.policy)
        if rate is not None:
            debt = max(0.0, row.full_at / _MICRO - now)
            share = debt / rate.seconds
            counts = (f"{share * rate.amount:.0f}", str(rate.amount), f"{share:.0%}", str(row.spent), str(row.refused))
            lines.append((share, row.spent, (row.policy, row.owner, *counts, iso_time(row.used_at // _MICRO))))
    return [line for _, _, line in sorted(lines, key=lambda line: line[:2], reverse=True)]
