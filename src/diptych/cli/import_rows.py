"""`diptych import`: rows from CSV or NDJSON, in batches that are each one transaction.

How far an import has come is stored with each batch, in its transaction: one that was interrupted, or that stopped at
a fault, goes on there when the same command runs again, and no row is doubled.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from diptych.api.formats import CSV, BadLine, read_csv, read_ndjson
from diptych.ask.act import Act, acting
from diptych.cli.database import opened, unhurried
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
from diptych.cli.row_writers import AskWriter, DirectWriter, RowWriter
from diptych.cli.settings import config_of, options
from diptych.db.store import Session, Store
from diptych.errors import MAX_FAULTS, Refusal, StartError
from diptych.model.defs import ResourceDef

BATCH = 1_000
"""Rows of one transaction."""
_GET = "SELECT value FROM diptych_settings WHERE name = $1"
_PUT = (
    "INSERT INTO diptych_settings (name, value) VALUES ($1, $2) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING 1"
)
_BEGIN = "INSERT INTO diptych_settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING 1"
_GO_ON = "UPDATE diptych_settings SET value = $2 WHERE name = $1 AND value = $3 RETURNING 1"
"""Both store a position in the place of the one before: nothing, if another import has stored one since."""
_DROP = "DELETE FROM diptych_settings WHERE name = $1 AND value = $2"


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--into", "resource", metavar="RESOURCE", help="The resource. [default: that of the file's name]")
@MODEL_OPTION
@options("database")
@ROLE
@USER
@click.option("--upsert", "key", metavar="KEY", help="Update the row that has the same value of this unique key.")
@FORMAT
@RAW
@click.option("--dry-run", is_flag=True, help="Try all rows, and write none.")
@click.option("--restart", is_flag=True, help="Start again, even if rows of this file were imported before.")
def import_(
    file: str,
    resource: str | None,
    model: str | None,
    role: str | None,
    user: str | None,
    key: str | None,
    kind: str | None,
    raw: bool,
    dry_run: bool,
    restart: bool,
    **flags: Any,
) -> None:
    """Create the rows of FILE, which is CSV or NDJSON.

    It is what `diptych export` writes: .csv, .ndjson or .jsonl.

    Each batch of 1,000 rows is imported as a whole. At a fault the import stops; mend the file and run the same command
    again: it goes on after the last batch.
    """
    loaded = load_model(model)
    definition, config = resource_of(loaded, resource or Path(file).stem), config_of(flags)
    viewer, view = viewer_and_view(loaded, role, user)
    if dry_run:
        config = unhurried(config)
    source = _Source(Path(file), media_of(kind, file), definition, raw)

    async def run() -> tuple[int, int]:
        async with opened(config, loaded) as store:
            engine = await engine_on(store, loaded, config)
            writer: RowWriter = DirectWriter(engine, definition)
            if role is not None or key is not None:
                writer = AskWriter(engine, definition, viewer, view, key, trusted=role is None)
            with acting(Act("import", user, roles=(role,) if role else ()) if loaded.audited else None):
                return await _Import(store, source, writer, dry_run=dry_run, restart=restart).run()

    done, before = asyncio.run(run())
    earlier = f", after {before:,} of an earlier run" if before else ""
    verb = "Would have imported" if dry_run else "Imported"
    click.echo(f"{verb} {counted(done)} into {definition.path}{earlier}.")


class _Position(NamedTuple):
    """How far an import has come: rows, the last line, and a hash of all lines up to it."""

    rows: int = 0
    line: int = 0
    hash: str = ""


class _Source:
    """The rows of a file, and how far they were read."""

    def __init__(self, path: Path, media: str, resource: ResourceDef, raw: bool) -> None:
        self.path = path
        self.media = media
        self.name = f"import {resource.name} {path.resolve()}"
        self.size = path.stat().st_size
        self.read = 0
        self._fields = resource.fields
        self._raw = raw
        self._hash = hashlib.sha256()
        self._line = self._rows = 0

    def rows(self) -> Iterator[tuple[int, Any]]:
        try:
            with self.path.open(encoding="utf-8", newline="") as lines:
                seen = self._seen(lines)
                read = read_csv(seen, self._fields, raw=self._raw) if self.media == CSV else read_ndjson(seen)
                for number, row in read:
                    self._rows += 1
                    yield number, row
        except UnicodeDecodeError as error:
            raise StartError(f"{self.path} is no UTF-8 after line {self._line}: {error.reason}.") from None
        except OSError as error:
            raise StartError(f"{self.path} cannot be read: {error.strerror}.") from None

    def _seen(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            data = line.encode()
            self._hash.update(data)
            self._line += 1
            self.read += len(data)
            yield line

    def position(self) -> _Position:
        return _Position(self._rows, self._line, self._hash.hexdigest())


class _Import:
    def __init__(self, store: Store, source: _Source, writer: RowWriter, *, dry_run: bool, restart: bool) -> None:
        self.store = store
        self.source = source
        self.writer = writer
        self.dry_run = dry_run
        self.restart = restart
        self.done = 0
        self._stored = ""
        """The position that is stored in the database."""
        self._trial: Session | None = None

    async def run(self) -> tuple[int, int]:
        """The number of rows that were imported now, and before."""
        before = await self._before()
        rows = self._rest(before)
        bar = click.progressbar(length=self.source.size, label="Bytes", file=sys.stderr) if is_shown() else None
        shown = 0
        try:
            while batch := self._batch(rows):
                await self._write(batch, before)
                if bar is not None:
                    bar.update(self.source.read - shown)
                    shown = self.source.read
            await self._end()
        except BadLine as bad:
            raise self._stopped([f"line {bad.line}: {bad.message}"], before) from None
        finally:
            if bar is not None:
                bar.render_finish()
            if self._trial is not None:
                await self._trial.end()
        return self.done, before.rows

    async def _before(self) -> _Position:
        """Where an earlier import of this file stopped."""
        if self.restart or self.dry_run:
            return _Position()
        session = await self.store.session()
        try:
            rows = await session.rows(_GET, (self.source.name,))
        finally:
            await session.end()
        self._stored = rows[0][0] if rows else ""
        return _Position(*json.loads(self._stored)) if rows else _Position()

    def _rest(self, before: _Position) -> Iterator[tuple[int, Any]]:
        """The rows that are not imported yet."""
        rows = self.source.rows()
        for _ in range(before.rows):
            if next(rows, None) is None:
                break
        if before.rows and self.source.position() != before:
            earlier = f"{counted(before.rows)} of {self.source.path} {_were(before.rows)} imported before"
            raise StartError(
                f"{earlier}, up to line {before.line}, and it has changed there since. "
                "Run it with --restart to import it from the beginning."
            )
        return rows

    def _batch(self, rows: Iterator[tuple[int, Any]]) -> list[tuple[int, Any]]:
        batch: list[tuple[int, Any]] = []
        for row in rows:
            batch.append(row)
            if len(batch) == BATCH:
                break
        return batch

    async def _write(self, batch: list[tuple[int, Any]], before: _Position) -> None:
        """Write a batch, and how far the import has come, in one transaction."""
        scripts = []
        faults: list[str] = []
        for line, row in batch:
            try:
                scripts.append((line, self.writer.script(row)))
            except Refusal as refusal:
                faults += _texts(line, refusal)
        if faults:
            raise self._stopped(faults, before)
        session = self._trial or await self.store.session()
        position = json.dumps(self.source.position())
        try:
            if not self.dry_run:
                await self._claim(session, position)
            for line, script in scripts:
                try:
                    await session.drive(script)
                except Refusal as refusal:
                    raise self._stopped(_texts(line, refusal), before) from None
            if self.dry_run:
                self._trial = session
            else:
                for statement in self.writer.after():
                    await session.rows(statement, ())
                await session.commit()
                self._stored = position
        finally:
            if not self.dry_run:
                await session.end()
        self.done += len(batch)

    async def _claim(self, session: Session, position: str) -> None:
        """Store how far the import will have come; a StartError if another goes on from the same position."""
        name = self.source.name
        if self._stored:
            mine = await session.rows(_GO_ON, (name, position, self._stored))
        else:
            mine = await session.rows(_PUT if self.restart else _BEGIN, (name, position))
        if not mine:
            done = f"{counted(self.done)} {_were(self.done)} imported by this one"
            raise StartError(f"{self.source.path} is being imported by another process, too; {done}.")

    async def _end(self) -> None:
        """Forget how far the import has come: it is complete."""
        if self.dry_run:
            return
        session = await self.store.session()
        try:
            await session.rows(_DROP, (self.source.name, self._stored))
            await session.commit()
        finally:
            await session.end()

    def _stopped(self, faults: list[str], before: _Position) -> StartError:
        shown = faults[:MAX_FAULTS]
        lines = [f"{self.source.path} cannot be imported:", *(f"- {fault}" for fault in shown)]
        if len(faults) > len(shown):
            lines.append(f"- and {len(faults) - len(shown)} more")
        there = before.rows + self.done
        if self.dry_run:
            lines.append("Nothing was imported.")
        elif there:
            first = f"The first {counted(there)} {_were(there)} imported."
            lines.append(f"{first} Mend the rest and run the command again: it goes on.")
        else:
            lines.append("Nothing was imported. Mend the file and run the same command again.")
        return StartError("\n".join(lines))


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _texts(line: int, refusal: Refusal) -> list[str]:
    """A refusal in words, with its line and its fields."""
    if not refusal.faults:
        return [f"line {line}: {refusal.message}"]
    return [
        f"line {line}: {'.'.join(str(step) for step in fault.path[1:]) or 'the row'}: {fault.message}"
        for fault in refusal.faults
    ]
