"""`diptych dev` and `diptych serve`."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import sys
from dataclasses import asdict, replace
from typing import Any

import click
import uvicorn

from diptych.cli.model import DEFAULT, MODEL, load_model
from diptych.cli.settings import config_of, options
from diptych.config import SETTINGS, Config
from diptych.default import model as default_model
from diptych.errors import StartError
from diptych.identity.tokens import load_tokens
from diptych.model.model import Model
from diptych.sample import FIRST_USER_ID, fill
from diptych.serve.app import Diptych

_SERVING = tuple(setting.name for setting in SETTINGS)
_MODEL_VARIABLE = "DIPTYCH_MODEL"
_ADD_VARIABLE = "DIPTYCH_ADD_COLUMNS"


@click.command()
@MODEL
@options(*_SERVING)
def serve(model: str | None, **given: Any) -> None:
    """Serve a model, with production defaults."""
    config = config_of(given)
    asyncio.run(_prepare(load_model(model), config, add_columns=False))
    _announce(config)
    _run(model, config, add_columns=False, log_level="warning")


@click.command()
@MODEL
@options(*(name for name in _SERVING if name != "workers"))
@click.option("--allow-remote", is_flag=True, help="Listen on an address that others can reach.")
def dev(model: str | None, allow_remote: bool, **given: Any) -> None:
    """Serve a model for development: sample data, an admin token, reload when the model changes."""
    config = config_of({"sample": True, **{name: value for name, value in given.items() if value is not None}})
    if not allow_remote and not _is_loopback(config.host):
        raise StartError(f"dev does not listen on {config.host}, where others can reach it, without --allow-remote.")
    token = asyncio.run(_prepare(load_model(model), config, add_columns=True))
    _announce(config)
    _show_requests(config, token, default=load_model(model) is default_model)
    _run(model, config, add_columns=True, log_level="info", reload=[os.getcwd()])


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _prepare(model: Model, config: Config, *, add_columns: bool) -> str:
    """Open the database once, so that tables, keys and sample data are there; gives an admin token."""
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


def _address(config: Config) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    return config.base_url or f"http://{host}:{config.port}"


def _announce(config: Config) -> None:
    address = _address(config)
    click.echo(f"GraphQL  {address}/graphql\nREST     {address}/openapi.json lists every path")


def _show_requests(config: Config, token: str, *, default: bool) -> None:
    address = _address(config)
    click.echo(f"\nAn admin token, for a day:\n{token}")
    if default:
        query = json.dumps({"query": "{ users(first: 2) { name posts(first: 2) { title } } }"})
        click.echo(f"\ncurl '{address}/users?first=2&fields=name,posts\\[first=2\\](title)' -g")
        click.echo(f"curl {address}/graphql -H 'content-type: application/json' -d '{query}'\n")
    sys.stdout.flush()


def _run(model: str | None, config: Config, *, add_columns: bool, log_level: str, reload: list[str] | None = None) -> None:
    """Run the server; its processes make their application from the environment."""
    os.environ.update({f"DIPTYCH_{name.upper()}": str(value) for name, value in asdict(config).items()})
    os.environ[_MODEL_VARIABLE] = model or DEFAULT
    os.environ[_ADD_VARIABLE] = "1" if add_columns else ""
    uvicorn.run(
        "diptych.cli.run:application", factory=True, host=config.host, port=config.port, workers=config.workers,
        reload=reload is not None, reload_dirs=reload, loop="uvloop", http="httptools", ws="none", lifespan="on",
        log_level=log_level, access_log=reload is not None, server_header=False, date_header=True,
        proxy_headers=bool(config.trusted_proxies), forwarded_allow_ips=config.trusted_proxies or None,
    )  # fmt: skip


def application() -> Diptych:
    """The application of a server process."""
    config = config_of({})
    model = load_model(os.environ.get(_MODEL_VARIABLE))
    return Diptych(model, config=replace(config, sample=False), add_columns=bool(os.environ.get(_ADD_VARIABLE)))


