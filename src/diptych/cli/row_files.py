"""Shared by `diptych import` and `diptych export`: the resource and the file of a command, and its engine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from diptych.api.formats import CSV, NDJSON
from diptych.config import Config
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.errors import StartError
from diptych.identity.tokens import load_secret
from diptych.model.declare.roles import Viewer
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.view import View
from diptych.policy.limits import Checks
from diptych.serve.request_limits import request_limits

_SUFFIXES = {".csv": CSV, ".ndjson": NDJSON, ".jsonl": NDJSON}
_FORMATS = {"csv": CSV, "ndjson": NDJSON}
FORMAT = click.option(
    "--format", "kind", type=click.Choice(list(_FORMATS)), help="The format; left out, that of the file's name."
)
RAW = click.option("--raw", is_flag=True, help="CSV: leave cells that look like formulas as they are.")
ROLE = click.option("--as", "role", metavar="ROLE", help="Under the rules of this role; left out, under none.")
USER = click.option("--user", metavar="ID", help="The id of the user of that role.")


def resource_of(model: Model, name: str) -> ResourceDef:
    """The resource of a command, by its class or its path."""
    for resource in model.resources.values():
        if name in (resource.name, resource.path, resource.table):
            return resource
    known = ", ".join(resource.path for resource in model.resources.values())
    raise StartError(f"The model has no resource named {name}; it has {known}.")


def media_of(kind: str | None, path: str) -> str:
    """The format of a command, or of its file."""
    if kind is not None:
        return _FORMATS[kind]
    media = _SUFFIXES.get(Path(path).suffix.lower())
    if media is None and path != "-":
        raise StartError(f"The name {path} does not say its format; add --format csv or --format ndjson.")
    return media or CSV


async def engine_on(store: Store, model: Model, config: Config) -> Engine:
    return Engine(model, store, Checks(request_limits(config)), await load_secret(store))


def viewer_and_view(model: Model, role: str | None, user: str | None) -> tuple[Viewer, View]:
    """The viewer whose rules apply to a command, and its view; without a role, no rules apply."""
    if role is None:
        if user is not None:
            raise StartError("--user is for a role; add --as ROLE.")
        return model.anonymous, model.trusted(False)
    if role not in model.role_names:
        raise StartError(f"The model has no role named {role!r}; there are {', '.join(model.role_names)}.")
    viewer = model.viewer_as(role) if user is None else model.viewer(frozenset({role}), id=user)
    return viewer, model.view(model.signature(viewer))


def counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def is_shown() -> bool:
    """Does someone look at the progress?"""
    return sys.stderr.isatty()
