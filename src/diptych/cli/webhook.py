"""`diptych webhook`: manage webhooks, the addresses that changes are sent to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from diptych.cli.database import opened
from diptych.cli.model import MODEL_OPTION, check_roles, load_model
from diptych.cli.records import ROLES, USER, in_database, iso_time, print_table, run_on_store
from diptych.cli.settings import config_of, options
from diptych.config import Config
from diptych.engine.read import Engine
from diptych.engine.watch import WatchEngine
from diptych.errors import Refusal, StartError
from diptych.identity.owner import fixed_owner
from diptych.identity.tokens import load_secret
from diptych.policy.limits import Checks
from diptych.serve.request_limits import request_limits
from diptych.webhooks import manage

T = TypeVar("T")
_NAME = click.argument("name", metavar="NAME")
_SETTINGS = options("database", "webhook_networks")


def _run(flags: dict[str, Any], work: Callable[[WatchEngine, Config], Awaitable[T]]) -> T:
    """Open the database that the options name, and run `work` on an engine for it."""

    async def run() -> T:
        config, model = config_of(flags), load_model(flags["model"])
        async with opened(config, model) as store:
            checks = Checks(request_limits(config))
            try:
                return await work(WatchEngine(Engine(model, store, checks, await load_secret(store))), config)
            except Refusal as refusal:
                raise StartError(_sentence(refusal)) from None

    return asyncio.run(run())


def _sentence(refusal: Refusal) -> str:
    """A refusal with its faults, in one line."""
    faults = (f"{fault.path[-1] if fault.path else ''}: {fault.message}" for fault in refusal.faults)
    return " ".join((str(refusal), *(f"{fault}." for fault in faults)))


@click.group()
def webhook() -> None:
    """Webhooks: addresses that changes are sent to.

    Each message is signed as Standard Webhooks says.
    """


@webhook.command()
@_NAME
@click.argument("url", metavar="URL")
@click.option("--on", "resource", required=True, metavar="PATH", help="The resource whose changes are sent: orders.")
@click.option("--query", default="", metavar="QUERY", help="Fields, kinds and filters: 'fields=total&status=paid'.")
@ROLES
@USER
@_SETTINGS
@MODEL_OPTION
def add(name: str, url: str, resource: str, query: str, roles: tuple[str, ...], user: str | None, **flags: Any) -> None:
    """Add a webhook, which sends what the roles may see.

    Its secret is printed once.
    """
    check_roles(load_model(flags["model"]), roles)
    owner = fixed_owner(roles, user)
    _, secret = _run(
        flags,
        lambda engine, config: manage.add(
            engine, name, url, resource, query.removeprefix("?"), owner, allowed=config.webhook_networks
        ),
    )
    click.echo(secret)


@webhook.command("list")
@in_database
def list_(**flags: Any) -> None:
    """List all webhooks, with their status."""
    found = run_on_store(flags, lambda store, revoked: manage.statuses(store))
    rows = [
        (
            status.webhook.name,
            status.webhook.resource,
            status.webhook.url,
            status.state,
            str(status.pending),
            str(status.dead),
            str(status.behind),
            iso_time(status.webhook.delivered_at),
            status.webhook.reason or "-",
        )
        for status in found
    ]
    print_table(("NAME", "ON", "URL", "STATE", "PENDING", "DEAD", "BEHIND", "DELIVERED", "REASON"), rows)


@webhook.command()
@_NAME
@in_database
def remove(name: str, **flags: Any) -> None:
    """Remove a webhook, with all that waits for it."""
    removed = run_on_store(flags, lambda store, revoked: manage.remove(store, name))
    click.echo(f"{removed.name} is removed.")


@webhook.command()
@_NAME
@_SETTINGS
@MODEL_OPTION
def test(name: str, **flags: Any) -> None:
    """Send a message of the type webhook.test, and say what came of it."""
    outcome = _run(flags, lambda engine, config: manage.send_test(engine, name, config.webhook_networks))
    if not outcome.is_delivered:
        raise StartError(f"The message was not delivered: {outcome.text}.")
    click.echo(f"The message was delivered: the response is {outcome.status}.")


@webhook.command()
@_NAME
@in_database
def dead(name: str, **flags: Any) -> None:
    """List the changes that were not delivered.

    They were given up after many attempts, or trimmed before they could be sent.
    """
    letters = run_on_store(flags, lambda store, revoked: manage.dead_letters(store, name))
    rows = [
        (str(letter.position), letter.state, letter.row_id or "-", iso_time(letter.first_at), letter.last)
        for letter in letters
    ]
    print_table(("POSITION", "STATE", "ROW", "SINCE", "REASON"), rows)


@webhook.command()
@_NAME
@in_database
def replay(name: str, **flags: Any) -> None:
    """Send again all that was given up.

    A webhook that is paused or disabled goes on.
    """
    replayed, count = run_on_store(flags, lambda store, revoked: manage.replay(store, name))
    click.echo(f"{replayed.name} sends {count} again.")


@webhook.command()
@_NAME
@in_database
def rotate(name: str, **flags: Any) -> None:
    """Give a webhook a new secret, which is printed once.

    Messages are signed with the secret before, too, for another day.
    """
    _, secret = _run(flags, lambda engine, config: manage.rotate(engine, name))
    click.echo(secret)
