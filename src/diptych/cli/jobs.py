"""`diptych jobs`: what runs in the background, for operators."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from diptych.cli.database import opened
from diptych.cli.model import load_model
from diptych.cli.records import in_database, iso_time, print_table
from diptych.cli.settings import config_of
from diptych.engine.read import Engine
from diptych.engine.write import WriteEngine
from diptych.errors import Refusal, StartError
from diptych.identity.tokens import load_secret
from diptych.jobs import manage
from diptych.model.declare.job_resource import JobResource, JobState
from diptych.policy.limits import Checks
from diptych.serve.request_limits import request_limits

T = TypeVar("T")
_ID = click.argument("id", metavar="ID")


def _run(flags: dict[str, Any], work: Callable[[WriteEngine], Awaitable[T]]) -> T:
    """Open the database that the options name, and run `work` on an engine for it."""

    async def run() -> T:
        config, model = config_of(flags), load_model(flags["model"])
        async with opened(config, model) as store:
            checks = Checks(request_limits(config))
            try:
                return await work(WriteEngine(Engine(model, store, checks, await load_secret(store))))
            except Refusal as refusal:
                raise StartError(str(refusal)) from None

    return asyncio.run(run())


@click.group()
def jobs() -> None:
    """Jobs: actions in the background, and functions by the clock."""


@jobs.command("list")
@click.option("--state", type=click.Choice([state.value for state in JobState]), help="Only those in this state.")
@click.option("--most", type=click.IntRange(1, 100), default=50, show_default=True, help="How many at most.")
@in_database
def list_(state: str | None, most: int, **flags: Any) -> None:
    """List the newest jobs, of all callers."""
    found = _run(flags, lambda engine: manage.list_jobs(engine, state, most))
    heads = ("ID", "ACTION", "OWNER", "STATE", "PROGRESS", "ATTEMPTS", "QUEUED", "ENDED", "ERROR")
    print_table(heads, [_cells(job) for job in found])


@jobs.command()
@_ID
@in_database
def cancel(id: str, **flags: Any) -> None:
    """Cancel a job that has not ended.

    None of its changes is committed after that.
    """
    _run(flags, lambda engine: manage.cancel(engine, id))
    click.echo(f"{id} is cancelled.")


@jobs.command()
@_ID
@in_database
def retry(id: str, **flags: Any) -> None:
    """Queue a job that has failed again, from its last checkpoint."""
    _run(flags, lambda engine: manage.retry(engine, id))
    click.echo(f"{id} is queued.")


def _cells(job: JobResource) -> tuple[str, ...]:
    ended = None if job.finished_at is None else int(job.finished_at.timestamp())
    error = " ".join(filter(None, (job.error_code, job.error_message)))
    return (
        job.id,
        job.action,
        job.owner or "-",
        job.state.value,
        f"{job.progress:.0%}",
        str(job.attempts),
        iso_time(int(job.created_at.timestamp())),
        iso_time(ended),
        error or "-",
    )
