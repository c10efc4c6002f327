"""`diptych dev` and `diptych serve`."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import sys
from dataclasses import replace
from typing import Any

import click

from diptych.cli.model import MODEL, load_model
from diptych.cli.server import listen, run
from diptych.cli.settings import check_lasting, config_of, options
from diptych.config import SETTINGS, Config
from diptych.default import model as default_model
from diptych.errors import StartError
from diptych.identity.tokens import load_tokens
from diptych.model.model import Model
from diptych.sample import FIRST_USER_ID, fill
from diptych.serve.app import Diptych

_SERVING = tuple(setting.name for setting in SETTINGS)
_DEV = {"sample": True}
"""The settings whose default is another one while developing."""


@click.command()
@MODEL
@options(*_SERVING)
def serve(model: str | None, **given: Any) -> None:
    """Serve a model, with production defaults."""
    config = config_of(given)
    asyncio.run(_prepare(load_model(model), config, add_columns=False))
    listener = listen(config)
    _announce(config, listener.getsockname()[1])
    run(model, config, listener, dev=False)


@click.command()
@MODEL
@options(*(name for name in _SERVING if name != "workers"), **_DEV)
@click.option("--allow-remote", is_flag=True, help="Listen on an address that others can reach.")
def dev(model: str | None, allow_remote: bool, **given: Any) -> None:
    """Serve a model for development: sample data, an admin token, reload when the model changes."""
    config = config_of(given, **_DEV)
    if not allow_remote and not _is_loopback(config.host):
        raise StartError(f"dev does not listen on {config.host}, where others can reach it, without --allow-remote.")
    config = replace(config, workers=1)
    token = asyncio.run(_prepare(load_model(model), config, add_columns=True))
    listener = listen(config)
    address = _announce(config, listener.getsockname()[1])
    _show_requests(address, token, default=load_model(model) is default_model)
    run(model, config, listener, dev=True)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _prepare(model: Model, config: Config, *, add_columns: bool) -> str:
    """Open the database once, so that tables, keys and sample data are there; gives an admin token."""
    check_lasting(config)
    app = Diptych(model, config=config, add_columns=add_columns)
    try:
        await app.start()
        if config.sample and model is default_model:
            await fill(app.store, model)
        tokens = await load_tokens(app.store, config.base_url)
        roles = [name for name in model.roles if name == "admin"] or list(model.roles)
        return tokens.make(FIRST_USER_ID if model is default_model else None, roles, None, ttl=86_400)
    finally:
        await app.stop()


def _announce(config: Config, port: int) -> str:
    """Tell the addresses of the service."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = config.base_url or f"http://{host}:{port}"
    if config.base_url:
        click.echo(f"Here     http://{host}:{port}")
    click.echo(f"GraphQL  {address}/graphql\nREST     {address}/openapi.json lists every path")
    sys.stdout.flush()
    return address


def _show_requests(address: str, token: str, *, default: bool) -> None:
    click.echo(f"\nAn admin token, for a day:\n{token}")
    if default:
        query = json.dumps({"query": "{ users(first: 2) { name posts(first: 2) { title } } }"})
        click.echo(f"\ncurl -g '{address}/users?first=2&fields=name,posts[first=2](title)'")
        click.echo(f"curl {address}/graphql -H 'content-type: application/json' -d '{query}'\n")
    sys.stdout.flush()
