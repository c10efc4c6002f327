"""The command line: `diptych dev | serve | schema | openapi | explain | rules | check | token`, and the groups
`diptych account | client | key | api-key | documents`.

A command that fails says why in one sentence and exits with status 2; it never shows a traceback.
"""

from __future__ import annotations

import sys

import click

from diptych.cli.account import account
from diptych.cli.api_key import api_key
from diptych.cli.check import check
from diptych.cli.client import client
from diptych.cli.documents import openapi, schema
from diptych.cli.explain import explain
from diptych.cli.key import key
from diptych.cli.model import told
from diptych.cli.rules import rules
from diptych.cli.run import dev, serve
from diptych.cli.token import token
from diptych.cli.trusted import documents
from diptych.errors import DiptychError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="diptych")
def commands() -> None:
    """Declare a model once, in typed Python, and serve it as GraphQL and as REST."""


for command in (dev, serve, schema, openapi, explain, rules, check, token, account, client, key, api_key, documents):
    commands.add_command(command)


def main() -> None:
    """Run a command; a failure is told in one sentence."""
    try:
        sys.exit(commands(prog_name="diptych", standalone_mode=False))
    except DiptychError as error:
        click.echo(told(error), err=True)
        sys.exit(2)
    except click.ClickException as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
