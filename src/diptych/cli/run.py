"""`diptych dev` and `diptych serve`."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from dataclasses import replace
from typing import Any

import click

from diptych.cli.model import DEFAULT, load_model, model_argument, model_name
from diptych.cli.server import listen, run
from diptych.cli.settings import check_lasting, config_of, options
from diptych.config import SETTINGS, Config, is_loopback
from diptych.db.store import Store
from diptych.default import model as default_model
from diptych.errors import StartError
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.revoked import Revoked
from diptych.model.model import Model
from diptych.sample import FIRST_USER_ID, fill
from diptych.serve.app import Diptych
from diptych.serve.explaining import admin_roles

_SERVING = tuple(setting.name for setting in SETTINGS if setting.name != "model")
SAMPLE_LOGIN, SAMPLE_CLIENT, SAMPLE_REDIRECT = "admin@example.com", "sample", "http://127.0.0.1/callback"
_DEV = {"sample": True, "access_log": True, "log_level": "info"}
"""The settings whose default is another one while developing."""


@click.command()
@model_argument
@options(*_SERVING)
def serve(model: str | None, **given: Any) -> None:
    """Serve a model, with production defaults."""
    config = config_of({**given, "model": model_name(model)})
    asyncio.run(_prepare(load_model(config.model), config, dev=False))
    listener = listen(config)
    _announce(config, listener.getsockname()[1])
    run(config, listener, dev=False)


@click.command()
@model_argument
@options(*(name for name in _SERVING if name != "workers"), **_DEV)
@click.option("--allow-remote", is_flag=True, help="Listen on an address that others can reach.")
def dev(model: str | None, allow_remote: bool, **given: Any) -> None:
    """Serve a model for development: sample data, an admin token and a login, reload when the model changes."""
    config = config_of({**given, "model": model_name(model)}, **_DEV)
    if not allow_remote and not is_loopback(config.host):
        raise StartError(f"dev does not listen on {config.host}, where others can reach it, without --allow-remote.")
    config = replace(config, workers=1)
    token, password = asyncio.run(_prepare(load_model(config.model), config, dev=True))
    listener = listen(config)
    address = _announce(config, listener.getsockname()[1])
    _show_requests(address, token, password, default=config.model == DEFAULT)
    run(config, listener, dev=True)


async def _prepare(model: Model, config: Config, *, dev: bool) -> tuple[str, str]:
    """Open the database once, so that tables, keys and sample data are there; gives an admin token, and for `dev` the
    password of the sample login, if there is one."""
    check_lasting(config)
    app = Diptych(model, config=config, add_columns=dev, tell=click.echo if dev else None)
    try:
        handler = await app.start()
        user = FIRST_USER_ID if model is default_model else None
        if config.sample and model is default_model:
            await fill(app.store, model)
        password = await _sample_login(app.store, handler.context.revoked) if dev and config.sample and user else ""
        token = handler.context.tokens.make(user, admin_roles(model), None, ttl=86_400)
        return token, password
    finally:
        await app.stop()


async def _sample_login(store: Store, revoked: Revoked) -> str:
    """An account to try the login with. Its password is another one at every start: what is known once opens nothing
    for long, should the database be served one day."""
    accounts, clients, password = Accounts(store, revoked), Clients(store, revoked), secrets.token_urlsafe(9)
    if await accounts.find(SAMPLE_LOGIN) is None:
        await accounts.add(SAMPLE_LOGIN, password, ["admin"], FIRST_USER_ID)
    else:
        await accounts.set_password(SAMPLE_LOGIN, password)
    if all(client.name != SAMPLE_CLIENT for client in await clients.all()):
        await clients.add(SAMPLE_CLIENT, [SAMPLE_REDIRECT], confidential=False, roles=[], scopes=[])
    return password


def _announce(config: Config, port: int) -> str:
    """Tell the addresses of the service."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = config.base_url or f"http://{host}:{port}"
    if config.base_url:
        click.echo(f"Here     http://{host}:{port}")
    click.echo(f"GraphQL  {address}/graphql\nREST     {address}/openapi.json lists every path")
    sys.stdout.flush()
    return address


def _show_requests(address: str, token: str, password: str, *, default: bool) -> None:
    click.echo(f"\nAn admin token, for a day:\n{token}")
    if password:
        click.echo(f"\nA login, until the next start:\n{SAMPLE_LOGIN}  {password}")
    if default:
        query = json.dumps({"query": "{ users(first: 2) { name posts(first: 2) { title } } }"})
        click.echo(f"\ncurl -g '{address}/users?first=2&fields=name,posts[first=2](title)'")
        click.echo(f"curl {address}/graphql -H 'content-type: application/json' -d '{query}'\n")
    sys.stdout.flush()
