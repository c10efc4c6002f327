"""`diptych dev`: a development server that reloads when the model changes."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from diptych.cli.model import DEFAULT, load_model, model_argument, model_name
from diptych.cli.reload import supervise
from diptych.cli.serve import SERVING, announce, local_address, prepared
from diptych.cli.server import DEV_APPLICATION, listen, serve_process, uvicorn_settings
from diptych.cli.settings import config_of, options
from diptych.config import Config
from diptych.db.store import Store
from diptych.demo.data import FIRST_USER_ID
from diptych.demo.model import model as default_model
from diptych.errors import StartError
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.console_code import new_console_code
from diptych.identity.revocation_list import RevocationList
from diptych.model.model import Model
from diptych.serve.admins import admin_roles
from diptych.serve.console.files import is_built
from diptych.setting_parsers import LOCALHOST, is_loopback

SAMPLE_LOGIN, SAMPLE_CLIENT, SAMPLE_REDIRECT = "admin@example.com", "sample", "http://127.0.0.1/callback"
_DEV = {
    "sample": True,
    "access_log": True,
    "log_level": "info",
    "cors_origins": (LOCALHOST,),
    "mail_folder": "mails",
    "console": True,
    "server_timing": True,
}
"""The settings with other defaults in development."""


@click.command()
@model_argument
@options(*(name for name in SERVING if name != "workers"), **_DEV)
@click.option("--allow-remote", is_flag=True, help="Listen on an address that others can reach.")
def dev(model: str | None, allow_remote: bool, **flags: Any) -> None:
    """Serve a model for development, and reload it when it changes.

    It prints an admin token. The default model has sample data and a login.
    """
    config = config_of({**flags, "model": model_name(model)}, **_DEV)
    if not allow_remote and not is_loopback(config.host):
        raise StartError(f"dev does not listen on {config.host}, where others can reach it, without --allow-remote.")
    config = replace(config, workers=1)
    loaded = load_model(config.model)
    with listen(config) as listener:
        port = listener.getsockname()[1]
        config, token, password, code = asyncio.run(_prepare(loaded, config, port))
        address = announce(config, port)
        if code:
            click.echo(f"Console  {address}/console/#code={code}")
        _show_requests(address, token, password, default=config.model == DEFAULT)
        settings = uvicorn_settings(config, DEV_APPLICATION)
        supervise(serve_process, settings, listener, roots=_roots(config.model))


def _roots(model: str) -> Sequence[Path]:
    """The directories to watch: the current one, and that of the model if it is elsewhere."""
    module = sys.modules[model.partition(":")[0]]
    here, home = Path.cwd(), Path(module.__file__ or ".").resolve().parent
    return [here] if home.is_relative_to(here) else [here, home]


async def _prepare(model: Model, config: Config, port: int) -> tuple[Config, str, str, str]:
    """Open the database once; returns the settings with the address that it remembers, an admin token, the password
    of the sample login if there is one, and the code that opens the console if that is on."""
    async with prepared(model, config, dev=True) as app:
        context = (await app.start()).context
        user = FIRST_USER_ID if model is default_model else None
        password = await _sample_login(app.store, context.revoked) if config.sample and user else ""
        code = await new_console_code(app.store, user) if config.console and is_built() else ""
        issuer = context.tokens.address or local_address(config, port)
        token = context.tokens.make(
            user, admin_roles(model), None, ttl=86_400, issuer=issuer if context.tokens.is_ours(issuer) else ""
        )
        return app.config, token, password, code


async def _sample_login(store: Store, revoked: RevocationList) -> str:
    """An account to try the login with. Its password changes at every start, so that an old one opens nothing if the
    database is served in production one day."""
    accounts, clients, password = Accounts(store, revoked), Clients(store, revoked), secrets.token_urlsafe(9)
    if await accounts.find(SAMPLE_LOGIN) is None:
        await accounts.add(SAMPLE_LOGIN, password, ["admin"], FIRST_USER_ID)
    else:
        await accounts.set_password(SAMPLE_LOGIN, password)
    if all(client.name != SAMPLE_CLIENT for client in await clients.all()):
        await clients.add(SAMPLE_CLIENT, [SAMPLE_REDIRECT], confidential=False, roles=[], scopes=[])
    return password


def _show_requests(address: str, token: str, password: str, *, default: bool) -> None:
    click.echo(f"\nAn admin token, for a day:\n{token}")
    if password:
        click.echo(f"\nA login, until the next start:\n{SAMPLE_LOGIN}  {password}")
    if default:
        query = json.dumps({"query": "{ users(first: 2) { name posts(first: 2) { title } } }"})
        click.echo(f"\ncurl -g '{address}/users?first=2&fields=name,posts[first=2](title)'")
        click.echo(f"curl {address}/graphql -H 'content-type: application/json' -d '{query}'\n")
    sys.stdout.flush()
