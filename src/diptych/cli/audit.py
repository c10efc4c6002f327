"""`diptych audit`: export the audit log, verify its chain, and print its head."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from diptych.audit.appender import Appender
from diptych.audit.log import Chosen, audit_head, exported
from diptych.audit.log import verify as verify_log
from diptych.cli.database import opened, unhurried
from diptych.cli.model import MODEL_OPTION, load_model
from diptych.cli.settings import config_of, options
from diptych.db.store import Store
from diptych.errors import Refusal, StartError

T = TypeVar("T")
_HEAD = re.compile(r"(\d{1,18}):([0-9a-f]{64})?")


def _run(flags: dict[str, Any], work: Callable[[Store], Awaitable[T]]) -> T:
    """Open the database that the options name, append what was committed, and run `work`."""

    async def run() -> T:
        model = load_model(flags["model"])
        if not model.audited:
            raise StartError("No resource of this model is audited: there is no log.")
        async with opened(unhurried(config_of(flags)), model) as store:
            try:
                await Appender(store, model).append()
                return await work(store)
            except Refusal as refusal:
                raise StartError(str(refusal)) from None

    return asyncio.run(run())


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise StartError(f"'{text}' is no date and no time: write 2026-01-31 or 2026-01-31T12:00:00Z.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.group()
def audit() -> None:
    """The audit log: who changed what, in a chain of hashes."""


@audit.command()
@click.option("--resource", default="", metavar="PATH", help="Only changes of this resource: invoices.")
@click.option("--row", default="", metavar="ID", help="Only changes of the row with this id.")
@click.option("--from", "since", metavar="TIME", help="Only changes from this moment on: 2026-01-31, in UTC.")
@click.option("--to", "until", metavar="TIME", help="Only changes before this moment.")
@options("database")
@MODEL_OPTION
def export(resource: str, row: str, since: str | None, until: str | None, **flags: Any) -> None:
    """Print the entries as NDJSON, the oldest first."""
    model = load_model(flags["model"])
    known = model.by_path.get(resource)
    if resource and (known is None or known.table not in model.audited):
        raise StartError(f"No resource /{resource} of this model is audited.")
    chosen = Chosen(known.table if known else "", row, _moment(since), _moment(until))

    async def lines(store: Store) -> None:
        async for line in exported(store, chosen):
            click.echo(line)

    _run(flags, lines)


@audit.command()
@click.option("--head", "kept", metavar="ENTRY:HASH", help="A head that was printed before, and kept elsewhere.")
@options("database")
@MODEL_OPTION
def verify(kept: str | None, **flags: Any) -> None:
    """Recompute the chain, and name the first entry that is wrong."""
    match = _HEAD.fullmatch(kept) if kept is not None else None
    if kept is not None and match is None:
        raise StartError(
            f"'{kept}' is no head: it is a number, a colon and 64 digits, as diptych audit head prints it."
        )
    wanted = None if match is None else (int(match[1]), match[2] or "")
    right, broken = _run(flags, lambda store: verify_log(store, wanted))
    if broken is not None:
        raise StartError(
            f"The audit log is broken at entry {broken.entry}: {broken.cause}. {right} before it are right."
        )
    click.echo(f"{right} entries are right.")


@audit.command()
@options("database")
@MODEL_OPTION
def head(**flags: Any) -> None:
    """Print the number and the hash of the newest entry.

    Keep them elsewhere: `diptych audit verify --head` compares the log with them.
    """
    click.echo(str(_run(flags, audit_head)))
