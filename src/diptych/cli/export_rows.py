"""`diptych export`: the rows of a resource as CSV or NDJSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

import click
import msgspec

from diptych.api.formats import CSV, csv_columns, csv_header, csv_lines, rows_read
from diptych.api.rest.query import read_query
from diptych.api.rest.target import Target
from diptych.api.understand import understand_read
from diptych.cli.database import opened
from diptych.cli.model import MODEL_OPTION, load_model
from diptych.cli.row_files import (
    FORMAT,
    RAW,
    ROLE,
    USER,
    counted,
    engine_on,
    is_shown,
    media_of,
    resource_of,
    viewer_and_view,
)
from diptych.cli.settings import config_of, options
from diptych.db.whole_file import whole_file
from diptych.engine.read import Engine
from diptych.errors import Code, Refusal, StartError
from diptych.explain.stages import refusal_text
from diptych.model.declare.roles import Viewer
from diptych.model.defs import ResourceDef
from diptych.model.view import View


class _Info(msgspec.Struct):
    hasNextPage: bool
    endCursor: str | None = None


class _Page(msgspec.Struct):
    pageInfo: _Info
    nodes: list[msgspec.Raw]
    totalCount: int = 0


_page = msgspec.json.Decoder(_Page)


@click.command("export")
@click.argument("resource")
@click.argument("file", default="-")
@MODEL_OPTION
@options("database")
@ROLE
@USER
@FORMAT
@click.option(
    "--fields", metavar="FIELDS", help="What to write, as in REST: 'name,author(name)'. [default: all stored]"
)
@click.option("--where", metavar="JSON", help='Which rows: \'{"status": {"eq": "paid"}}\'.')
@RAW
def export(
    resource: str,
    file: str,
    model: str | None,
    role: str | None,
    user: str | None,
    kind: str | None,
    fields: str | None,
    where: str | None,
    raw: bool,
    **flags: Any,
) -> None:
    """Write the rows of RESOURCE as CSV or NDJSON.

    They are written to FILE (.csv, .ndjson or .jsonl), or to the standard output, in the order of their ids. FILE gets
    its name when all of it is written.
    """
    loaded = load_model(model)
    definition, media, config = resource_of(loaded, resource), media_of(kind, file), config_of(flags)
    viewer, view = viewer_and_view(loaded, role, user)
    names = fields or ",".join(_stored(definition, view))

    async def run() -> int:
        async with opened(config, loaded) as store:
            engine = await engine_on(store, loaded, config)
            with _writing(file) as out:
                return await _write(out, _pages(engine, definition, names, where, viewer, view), media, raw, loaded)

    try:
        count = asyncio.run(run())
    except Refusal as refusal:
        raise StartError(refusal_text(refusal)) from None
    if file != "-":
        click.echo(f"Wrote {counted(count)} of {definition.path} to {file}.", err=True)


def _stored(resource: ResourceDef, view: View) -> list[str]:
    mine = view.resources.get(resource.name)
    if mine is None:
        raise StartError(f"This role may not read {resource.path}.")
    return [name for name, shown in mine.fields.items() if shown.field.stored and not shown.field.marks_deleted]


async def _pages(
    engine: Engine, resource: ResourceDef, fields: str, where: str | None, viewer: Viewer, view: View
) -> AsyncIterator[tuple[Any, _Page]]:
    """The pages of all rows, each with its Ask."""
    target, size, cursor = Target(resource.name), engine.limits.page, ""
    filtered = {"where": _filter(where)} if where else {}
    while True:
        more = {"after": cursor} if cursor else {"count": "exact"}
        query = read_query(urlencode({"fields": fields, "first": str(size), **filtered, **more}), target)
        wish = understand_read(target, query, view)
        try:
            prepared = engine.prepare(wish, view, Code.BAD_REQUEST, query.inputs)
            (answer,) = await engine.answer(prepared, query.inputs, viewer)
        except Refusal as refusal:
            if refusal.code is not Code.TOO_COMPLEX or size == 1:
                raise
            size = max(1, size // 2)
            continue
        page = _page.decode(answer or b"")
        yield wish.asks[0], page
        if not page.pageInfo.hasNextPage:
            return
        cursor = str(page.pageInfo.endCursor)


def _filter(where: str) -> str:
    try:
        json.loads(where)
    except ValueError:
        raise StartError("--where is not JSON.") from None
    return where


async def _write(out: BinaryIO, pages: AsyncIterator[tuple[Any, _Page]], media: str, raw: bool, model: Any) -> int:
    """Write all pages; returns the number of rows."""
    count, columns, bar = 0, None, None
    async for ask, page in pages:
        if bar is None and is_shown() and out is not sys.stdout.buffer:
            bar = click.progressbar(length=page.totalCount, label="Rows", file=sys.stderr)
        if media == CSV:
            if columns is None:
                inner, picks = rows_read(ask)
                columns = csv_columns(picks, model.resources[inner.resource], model.resources)
                out.write(csv_header(columns).encode())
            rows = [msgspec.json.decode(row) for row in page.nodes]
            out.write(csv_lines(rows, columns, raw=raw).encode())
        else:
            out.writelines(bytes(row) + b"\n" for row in page.nodes)
        count += len(page.nodes)
        if bar is not None:
            bar.update(len(page.nodes))
    if bar is not None:
        bar.render_finish()
    return count


@contextmanager
def _writing(file: str) -> Iterator[BinaryIO]:
    """The output: a file that takes its name at the end, so that there is never half of one."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(Path(file), 0o666) as part, part.open("wb") as out:
        yield out
