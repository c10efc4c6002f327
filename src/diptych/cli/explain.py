"""`diptych explain`: how a request is processed, and which rule decides about which row and field."""

from __future__ import annotations

import asyncio

import click

from diptych.cli.database import opened
from diptych.cli.documents import ROLE, role_of
from diptych.cli.model import MODEL_OPTION, load_model
from diptych.cli.settings import config_of
from diptych.cli.viewer import json_object, read_request, viewer_as
from diptych.errors import Refusal, StartError
from diptych.explain.stages import Explanation, refusal_text
from diptych.serve.request_limits import request_limits


@click.command()
@click.argument("request", metavar="QUERY|'METHOD /path?…'")
@MODEL_OPTION
@ROLE
@click.option("--user", metavar="ID", default=None, help="The id of the user who sends it.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Narrow the token, as in users:read.")
@click.option("--claims", default=None, metavar="JSON", help="More claims of the token, for viewers of a model's own.")
@click.option("--variables", default="{}", metavar="JSON", help="The variables of the query.")
@click.option("--body", default=None, metavar="JSON", help="The body of a POST, PUT or PATCH.")
@click.option("--database", default=None, metavar="URL", help="Report on its rows, too. Nothing there is changed.")
def explain(
    request: str,
    model: str | None,
    role: str | None,
    user: str | None,
    scopes: tuple[str, ...],
    claims: str | None,
    variables: str,
    body: str | None,
    database: str | None,
) -> None:
    """Show how a request is processed, and which rules decide.

    That is its Ask, its price, its SQL, and each rule that applies; with --database, also what they hide.
    """
    loaded = load_model(model)
    viewer = viewer_as(loaded, role_of(loaded, role), user, scopes, json_object("--claims", claims))
    config = config_of({} if database is None else {"database": database})
    try:
        explanation = Explanation(loaded, viewer, request_limits(config), read_request(request, variables, body))
        lines = list(explanation.lines())
    except Refusal as faulty:
        raise StartError(refusal_text(faulty)) from None
    click.echo("\n".join(lines))

    async def rows() -> None:
        async with opened(config, loaded) as store:
            click.echo("\n".join(await explanation.rows(store)))

    if database is not None:
        asyncio.run(rows())
