"""`diptych schema`, `diptych openapi` and `diptych explain`: what a role can ask for, and what comes of it."""

from __future__ import annotations

import json
import re
from pprint import pformat
from typing import Any

import click
from graphql import print_schema

from diptych.api.graphql.document import check_document, check_roots, check_variables, read_document
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.translate import translate as translate_graphql
from diptych.api.rest.openapi import openapi as openapi_document
from diptych.api.rest.translate import check_target, find_target, read_query
from diptych.api.rest.translate import translate as translate_rest
from diptych.ask.split import Finish, split
from diptych.ask.wish import Wish
from diptych.check.access import narrow
from diptych.check.cost import Limits, depth, price_of
from diptych.check.values import Binder
from diptych.cli.model import MODEL, load_model
from diptych.compile.dialect import POSTGRES, SQLITE
from diptych.compile.read import compile_reads
from diptych.errors import Code, Refusal, StartError
from diptych.model.model import Model
from diptych.model.view import View

_ROLE = click.option("--as", "role", metavar="ROLE", default=None, help="The role that asks: anonymous, signed_in, …")
_WORDS = r"\b(FROM|WHERE|ORDER BY|LIMIT)\b"


def _view(model: Model, role: str | None, default: str) -> View:
    name = role or default
    if name not in model.role_names:
        raise StartError(f"The model has no role named {name!r}; there are {', '.join(model.role_names)}.")
    return model.view(model.signature(model.viewer_as(name)))


def _broadest(model: Model) -> str:
    """The role that sees most: admin, or the one that implies most."""
    return max(model.role_names, key=lambda name: (name == "admin", len(model.viewer_as(name).roles)))


@click.command()
@MODEL
@_ROLE
def schema(model: str | None, role: str | None) -> None:
    """Print the GraphQL schema (SDL) of a role."""
    found = load_model(model)
    click.echo(print_schema(build_schema(_view(found, role, _broadest(found)))))


@click.command()
@MODEL
@_ROLE
def openapi(model: str | None, role: str | None) -> None:
    """Print the OpenAPI document of a role."""
    found = load_model(model)
    click.echo(json.dumps(openapi_document(_view(found, role, _broadest(found))), indent=2, ensure_ascii=False))


@click.command()
@click.argument("request", metavar="QUERY|'GET /path?…'")
@click.option("--model", default=None, metavar="MODULE:MODEL", help="The model; the default one if left out.")
@click.option("--variables", default="{}", metavar="JSON", help="The variables of the query.")
@_ROLE
def explain(request: str, model: str | None, variables: str, role: str | None) -> None:
    """Show what becomes of a request: its Ask, its price, and its SQL in both dialects."""
    found = load_model(model)
    view = _view(found, role, _broadest(found))
    try:
        wish, inputs = _wish(request, variables, found, view)
        values = Binder(wish.slots, wish.sources, Limits(page=10**9), Code.BAD_USER_INPUT)(inputs)
        _show(wish, values, found, view)
    except Refusal as refusal:
        places = "".join(f"\n  {'.'.join(map(str, fault.place))}: {fault.message}" for fault in refusal.faults)
        raise StartError(f"{refusal.code}: {refusal.message}{places}") from None


def _wish(request: str, variables: str, model: Model, view: View) -> tuple[Wish, dict[str, Any]]:
    if request.startswith("GET /"):
        return _rest_wish(request.removeprefix("GET "), model, view)
    try:
        given = json.loads(variables)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise StartError("--variables is no JSON object.")
    document, operation = read_document(request, None)
    check_roots(document, operation, view)
    graphql = build_schema(view)
    sound = check_document(document, operation, graphql)
    check_variables(sound, given, graphql)
    return translate_graphql(document, operation, given, view).wish, given


def _rest_wish(url: str, model: Model, view: View) -> tuple[Wish, dict[str, Any]]:
    path, _, query = url.partition("?")
    target = find_target(path, model)
    if target is None:
        raise StartError(f"There is no path {path}.")
    taken = read_query(query, target)
    check_target(target, view)
    return translate_rest(target, taken, view), taken.inputs


def _show(wish: Wish, values: list[Any], model: Model, view: View) -> None:
    for index, ask in enumerate(wish.asks):
        click.echo(f"Ask {index}\n{pformat(ask, width=110)}\n")
    levels = max(map(depth, wish.asks), default=0)
    click.echo(f"Values {values}\nDepth  {levels}\nPrice  {price_of(wish.asks)(values)}")
    parts = [split(ask, model.resources) for ask in wish.asks]
    _show_python([finish for _, finish in parts if finish])
    narrowed = [narrow(ask, view) for ask, _ in parts]
    for dialect in (SQLITE, POSTGRES):
        plan = compile_reads(narrowed, model, dialect)
        shown = re.sub(_WORDS, r"\n  \1", plan.sql)
        click.echo(f"\n{dialect.name}\n{shown}")
        click.echo("  binds " + ", ".join(f"{dialect.placeholder}{n} = {each}" for n, each in enumerate(plan.binds, 1)))


def _show_python(finishes: list[Finish]) -> None:
    """What is not SQL: a line for each field that Python computes after the statement."""
    tasks = {task.field: task.resource.name for finish in finishes for task in finish.tasks()}
    for field, resource in tasks.items():
        needs = ", ".join(field.needs) or "nothing"
        how = "once, for all rows" if field.batch else "for each row"
        click.echo(f"Python {resource}.{field.name} is computed of {needs}, {how}")
