"""`diptych explain`: what becomes of a request, and which rule decides about which row and field of it."""

from __future__ import annotations

import asyncio
import json
import re
from pprint import pformat
from typing import Any

import click

from diptych.api.graphql.http import Parameters
from diptych.ask.asked import Limits
from diptych.ask.change import Guard
from diptych.ask.nodes import Write
from diptych.ask.split import Finish, split, split_watch
from diptych.ask.wish import WatchWish, WriteWish
from diptych.check.access import narrow, narrow_watch
from diptych.check.change import guard
from diptych.check.limits import Checks
from diptych.cli.database import opened
from diptych.cli.documents import ROLE, role_of
from diptych.cli.model import MODEL_OPTION, load_model
from diptych.cli.settings import config_of
from diptych.compile.dialect import POSTGRES, SQLITE, Dialect
from diptych.compile.plan import Plan
from diptych.compile.read import compile_reads
from diptych.compile.watch import BOUNDS, compile_watch
from diptych.compile.write import compile_write
from diptych.config import Config
from diptych.engine import Engine
from diptych.errors import Refusal, StartError
from diptych.explain.cost import cost_lines
from diptych.explain.keeping import keeping_lines
from diptych.explain.lines import lay, matter_lines
from diptych.explain.rulebook import Rulebook
from diptych.explain.touched import touched
from diptych.explain.trial import tried
from diptych.explain.wanted import Rest, Sent, Wanted, interpret
from diptych.explain.why import tell_rows
from diptych.model.expr import FALSE
from diptych.model.model import Model
from diptych.model.roles import ANONYMOUS, Claims, Viewer
from diptych.serve.app import limits_of

_WORDS = r"\b(FROM|WHERE|ORDER BY|LIMIT)\b"
_REST = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/\S*)")


@click.command()
@click.argument("request", metavar="QUERY|'METHOD /path?…'")
@MODEL_OPTION
@ROLE
@click.option("--user", metavar="ID", default=None, help="The id of the user who asks.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Narrow the token, as in users:read.")
@click.option("--claims", default=None, metavar="JSON", help="More claims of the token, for viewers of a model's own.")
@click.option("--variables", default="{}", metavar="JSON", help="The variables of the query.")
@click.option("--body", default=None, metavar="JSON", help="The body of a POST, PUT or PATCH.")
@click.option("--database", default=None, metavar="URL", help="Tell of its rows, too. Nothing there is changed.")
def explain(
    request: str, model: str | None, role: str | None, user: str | None, scopes: tuple[str, ...], claims: str | None,
    variables: str, body: str | None, database: str | None,
) -> None:  # fmt: skip
    """Show what becomes of a request: its Ask, its price, its SQL, and the rules that decide about it."""
    found = load_model(model)
    viewer = _viewer(found, role_of(found, role), user, scopes, _object("--claims", claims))
    view = found.view(found.signature(viewer))
    rulebook = Rulebook(found, view)
    config = config_of({} if database is None else {"database": database})
    limits = limits_of(config)
    try:
        wanted, refusal = interpret(_sent(request, variables, body), found, view)
        if refusal is None:
            _show(wanted, rulebook, limits)
    except Refusal as faulty:
        raise StartError(_told(faulty)) from None
    if refusal is not None:
        click.echo(f"Refused {_told(refusal)}")
    _show_rules(wanted, rulebook)
    if database is not None:
        asyncio.run(_show_rows(wanted, rulebook, viewer, config, limits, refusal))


def _told(refusal: Refusal) -> str:
    places = "".join(f"\n  {'.'.join(map(str, fault.place))}: {fault.message}" for fault in refusal.faults)
    return f"{refusal.code}: {refusal.message}{places}"


# what is asked, and by whom


def _viewer(model: Model, role: str, user: str | None, scopes: tuple[str, ...], more: dict[str, Any] | None) -> Viewer:
    if user is None and not scopes and more is None:
        return model.viewer_as(role)
    if role == ANONYMOUS:
        raise StartError("Whoever is anonymous has no token; leave out --user, --scope and --claims.")
    subject = user or model.viewer_as(role).id
    claims = Claims(subject, frozenset({role}), frozenset(scopes) or None, 0, more or {})
    try:
        viewer = model.viewer_of(claims)
    except ValueError as error:
        raise StartError(f"The viewer of the model does not take these claims: {error}.") from None
    if viewer is None:
        raise StartError("The viewer of the model refuses a token with these claims.")
    return viewer


def _sent(request: str, variables: str, body: str | None) -> Sent:
    if not re.match(r"[A-Z]+ /", request):
        return Parameters(request, None, _object("--variables", variables))
    found = _REST.fullmatch(request)
    if found is None:
        raise StartError("A request in the resource style is GET, POST, PUT, PATCH or DELETE and a path: 'GET /users'.")
    path, _, query = found[2].partition("?")
    return Rest(found[1], path, query, _json("--body", body))


def _json(option: str, text: str | None, kind: str = "JSON") -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        raise StartError(f"{option} is no {kind}.") from None


def _object(option: str, text: str | None) -> dict[str, Any] | None:
    found = _json(option, text, "JSON object")
    if found is None or isinstance(found, dict):
        return found
    raise StartError(f"{option} is no JSON object.")


# what becomes of it


def _show_cost(wanted: Wanted, model: Model, limits: Limits) -> None:
    for line in cost_lines(wanted, model.resources, limits):
        _echo(line, 0)


def _show(wanted: Wanted, rulebook: Rulebook, limits: Limits) -> None:
    """The Asks, their values and their price, what Python does, and the statements."""
    if wanted.watch is not None:
        _show_watch(*wanted.watch, wanted, rulebook.model, limits)
        return
    wish, values = wanted.reads
    asks = [*wish.asks, *(deed.ask for deed, _ in wanted.deeds)]
    for index, ask in enumerate(asks):
        click.echo(f"Ask {index}\n{pformat(ask, width=110)}\n")
    if wish.asks or not wanted.deeds:
        click.echo(f"Values {values}")
    for deed, given in wanted.deeds:
        known = ["a new id" if source.make else value for source, value in zip(deed.sources, given, strict=True)]
        click.echo(f"Values {known}")
        if isinstance(deed, WriteWish):
            _show_guards(deed.ask, wanted, rulebook)
    _show_cost(wanted, rulebook.model, limits)
    for line in keeping_lines(wanted):
        click.echo(line)
    _show_reads(wanted, rulebook.model)
    for deed, _ in wanted.deeds:
        if isinstance(deed, WriteWish):
            changed = guard(deed.ask, wanted.view)
            for dialect in (SQLITE, POSTGRES):
                _show_plan(compile_write(changed, rulebook.model, dialect).change, dialect)


def _show_watch(wish: WatchWish, values: list[Any], wanted: Wanted, model: Model, limits: Limits) -> None:
    """The same of changes. Their statement runs over one part of the feed after the other."""
    ask = wish.ask
    click.echo(f"Ask 0\n{pformat(ask, width=110)}\n")
    click.echo(f"Values {values}")
    _show_cost(wanted, model, limits)
    whole, finishes = split_watch(ask, model.resources)
    _show_python([finish for finish in finishes if finish])
    narrowed = narrow_watch(whole, wanted.view)
    for dialect in (SQLITE, POSTGRES):
        slots = len(wish.slots)
        plan = compile_watch(
            narrowed.watch, narrowed.seen, narrowed.gone, narrowed.readable, slots, model, dialect
        )
        _show_plan(plan, dialect)
        ends = ", ".join(f"slot {slots + number} = {name}" for number, name in enumerate(BOUNDS))
        click.echo(f"  for a part of the feed: {ends}")


def _show_reads(wanted: Wanted, model: Model) -> None:
    asks = wanted.reads[0].asks
    if not asks and wanted.deeds:
        return
    parts = [split(ask, model.resources) for ask in asks]
    _show_python([finish for _, finish in parts if finish])
    narrowed = [narrow(ask, wanted.view) for ask, _ in parts]
    for dialect in (SQLITE, POSTGRES):
        _show_plan(compile_reads(narrowed, model, dialect), dialect)


def _show_plan(plan: Plan, dialect: Dialect) -> None:
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


def _show_guards(write: Write, wanted: Wanted, rulebook: Rulebook) -> None:
    """What a change must pass, in the order in which its failure is told."""
    for each in guard(write, wanted.view).guards:
        _echo(f"Guard  {_guard_text(each, write.resource, rulebook)}", 0)


def _guard_text(each: Guard, resource: str, rulebook: Rulebook) -> str:
    sides = [("the row as it is", each.was), ("the row as it becomes", each.becomes)]
    told = [f"{side}: {rulebook.say(expr, resource)}" for side, expr in sides if expr != FALSE]
    name = f"{each.why.name} {each.field}".rstrip()
    return f"{name}, {'; or '.join(told) or 'never'}"


# which rules decide


def _show_rules(wanted: Wanted, rulebook: Rulebook) -> None:
    click.echo("\nRules")
    matters = touched(wanted, rulebook)
    for matter in matters:
        click.echo("\n".join(matter_lines(matter, rulebook, depth=1)))
    if not matters:
        _echo("No rule speaks about what is asked.", 1)


async def _show_rows(
    wanted: Wanted, rulebook: Rulebook, viewer: Viewer, config: Config, limits: Limits, refusal: Refusal | None
) -> None:
    async with opened(config, rulebook.model) as store:
        click.echo("\nRows")
        for each in await tell_rows(wanted, rulebook, viewer, store):
            click.echo("\n".join("    " + line for line in each.lines))
        if refusal is None and wanted.deeds and all(isinstance(wish, WriteWish) for wish, _ in wanted.deeds):
            met = await tried(wanted, viewer, Engine(rulebook.model, store, Checks(limits)))
            click.echo(f"\nRefused {_told(met)}" if met else "\nThe change would be made.")


def _echo(text: str, indent: int) -> None:
    click.echo("\n".join(lay(text, indent)))
