"""The command line: `diptych new | dev | serve | schema | openapi | explain | rules | check | inspect | import |
export | backup | restore | move | triggers | limits | token | login`, and the groups `diptych account | audit |
cells | client | contract | issuer | jobs | key | api-key | documents | migrate | webhook`.

The last package of the pipeline: it may import all others, and only `__main__` imports it.

A command that fails says why in one sentence and exits with status 2; it never shows a traceback. The module of a
command is imported when the command runs, so that `diptych --version` loads neither the server nor the databases.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from contextlib import suppress

import click

from diptych.cli.settings import sentence
from diptych.config import misspelt
from diptych.errors import DiptychError

_COMMANDS = {
    "account": "account:account",
    "api-key": "api_key:api_key",
    "audit": "audit:audit",
    "backup": "backup:backup",
    "cells": "cells:cells",
    "check": "check:check",
    "client": "client:client",
    "contract": "contract:contract",
    "dev": "dev:dev",
    "documents": "trusted:documents",
    "explain": "explain:explain",
    "export": "export_rows:export",
    "import": "import_rows:import_",
    "inspect": "inspect:inspect",
    "issuer": "issuer:issuer",
    "jobs": "jobs:jobs",
    "key": "key:key",
    "limits": "limits:limits",
    "login": "login:login",
    "migrate": "migrate:migrate",
    "move": "move:move",
    "new": "new:new",
    "openapi": "documents:openapi",
    "restore": "backup:restore",
    "rules": "rules:rules",
    "schema": "documents:schema",
    "serve": "serve:serve",
    "token": "token:token",
    "triggers": "triggers:triggers",
    "webhook": "webhook:webhook",
}
"""Each command: its module in this package, and its name there."""


class LazyGroup(click.Group):
    """A command group that imports the module of a command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = [] if args[0] in _COMMANDS else difflib.get_close_matches(args[0], _COMMANDS, n=1)
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="diptych")
def commands() -> None:
    """Declare a model once, in typed Python, and serve it as GraphQL and as REST."""
    for warning in misspelt():
        click.echo(warning, err=True)


def main() -> None:
    """Run a command; print a failure as one sentence."""
    try:
        sys.exit(commands(prog_name="diptych", standalone_mode=False))
    except DiptychError as error:
        click.echo(sentence(error), err=True)
        sys.exit(2)
    except click.UsageError as error:
        more = f" Try '{error.ctx.command_path} --help' for help." if error.ctx else ""
        click.echo(error.format_message() + more, err=True)
        sys.exit(2)
    except click.ClickException as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except OSError as error:
        with suppress(OSError, ValueError):  # what it could not write is written again at the exit, by Python
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        named = f"{error.filename}: " if error.filename else ""
        click.echo(f"The command failed: {named}{error.strerror or error}.", err=True)
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
