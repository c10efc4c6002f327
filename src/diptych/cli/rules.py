"""`diptych rules`: print the permission matrix of a model, as text or as HTML."""

from __future__ import annotations

import os

import click

from diptych.cli.documents import role_of
from diptych.cli.model import load_model, model_argument, model_name
from diptych.cli.rules_page import page
from diptych.cli.rules_text import render_matrices
from diptych.model.describe.matrix import matrix


@click.command()
@model_argument
@click.option("--as", "role", metavar="ROLE", default=None, help="Only this role: anonymous, signed_in, …")
@click.option("--html", is_flag=True, help="Print a page for a browser: diptych rules --html > rules.html")
def rules(model: str | None, role: str | None, html: bool) -> None:
    """Show who may do what: the access matrix of the model.

    It has every role, every resource, and every field with rules of its own.
    """
    loaded = load_model(model)
    matrices = matrix(loaded, [role_of(loaded, role)] if role is not None else loaded.role_names)
    if html:
        click.echo(page(model_name(model), matrices).encode())
    else:
        click.echo(render_matrices(matrices), color=False if os.environ.get("NO_COLOR") else None)
