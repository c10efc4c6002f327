"""Which migrations a running service's database has, and whether its tables are as the last one leaves them.

    status = await migration_status(model, store)
    status.migrations[0].name, .state        0001_first  applied

`diptych migrate status` executes the files of the folder; a service does not. Here they are read: their hashes are
compared with the log of the database, and `state.json` with its tables and with the model.
"""

from __future__ import annotations

import ast
import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from diptych.compile.system.object import DialectName
from diptych.db.store import Store
from diptych.migrate.files import FOLDER, NAME, STATE
from diptych.migrate.log import HALVES, WHOLE
from diptych.migrate.shape import drift
from diptych.migrate.state import State, state_of
from diptych.model.model import Model

_HAS = {
    "sqlite": "SELECT 1 FROM sqlite_schema WHERE name = 'diptych_migrations'",
    "postgres": "SELECT 1 WHERE to_regclass('diptych_migrations') IS NOT NULL",
}
_READ = "SELECT name, hash, half, step, at FROM diptych_migrations ORDER BY at"
_MOST = 20
"""Differences that are listed."""
Row = tuple[str, str, str, int, str]


class MigrationState(Struct, frozen=True):
    """A migration, and how far the database has it."""

    name: str
    state: str
    """applied, expanded (its second half is not done), begun, pending, edited (not the file that was applied), missing
    (the database has it, and there is no file), or unknown (the database has no log)."""
    at: str = ""
    """When it was applied."""


class MigrationStatus(Struct, frozen=True):
    """The migrations of a project, and what is not as they say."""

    migrations: list[MigrationState]
    differences: list[str]
    """How the tables differ from what the last migration leaves."""
    model_differs: bool
    """Has the model changes that no migration has?"""


class _File(Struct, frozen=True):
    hash: str
    replaces: tuple[str, ...]


async def migration_status(model: Model, store: Store, folder: Path | None = None) -> MigrationStatus:
    """The status of a database that is open. Nothing is changed, and no file is executed."""
    files, state = await asyncio.to_thread(_read, folder or Path(FOLDER))
    rows = await _log(store)
    differences: list[str] = []
    if state is not None:
        dialect: DialectName = "sqlite" if store.dialect.name == "sqlite" else "postgres"
        differences = list(drift(state, await store.catalogue(), dialect))
    if rows is None:
        is_there = state is not None and not differences
        states = [MigrationState(name, "applied" if is_there else "unknown") for name in files]
    else:
        states = list(_states(files, _unsquashed(files, rows)))
    model_differs = bool(files) and (state is None or state.hash != state_of(model).hash)
    return MigrationStatus(states, differences[:_MOST], model_differs)


def _read(folder: Path) -> tuple[dict[str, _File], State | None]:
    """The files in their order, and the state that the last one leads to."""
    files = {}
    for file in sorted(folder.glob("[0-9]*.py")) if folder.is_dir() else ():
        if NAME.fullmatch(file.stem):
            text = file.read_bytes()
            files[file.stem] = _File(hashlib.sha256(text).hexdigest()[:32], _replaced(text))
    try:
        return files, State.decode((folder / STATE).read_text("utf-8"))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return files, None


def _replaced(text: bytes) -> tuple[str, ...]:
    """The migrations that a squashed one replaces: `Migration(replaces=("0001_first", …))`."""
    try:
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        given = [word.value for call in calls for word in call.keywords if word.arg == "replaces"]
        return tuple(map(str, ast.literal_eval(given[0]))) if given else ()
    except (SyntaxError, ValueError, TypeError):
        return ()


async def _log(store: Store) -> list[Row] | None:
    session = await store.session(reading=True)
    try:
        if not await session.rows(_HAS[store.dialect.name], ()):
            return None
        return [
            (str(n), str(h), str(half), int(step), str(at)) for n, h, half, step, at in await session.rows(_READ, ())
        ]
    finally:
        await session.end()


def _unsquashed(files: Mapping[str, _File], rows: list[Row]) -> list[Row]:
    """The log, with a squashed migration in the place of those that it replaces."""
    for name, file in files.items():
        ends = [
            row for row in rows if file.replaces and row[0] == file.replaces[-1] and row[2:4] == ("contract", WHOLE)
        ]
        if ends:
            rows = [row for row in rows if row[0] not in {*file.replaces, name}]
            rows += [(name, file.hash, half, WHOLE, ends[0][4]) for half in HALVES]
    return rows


def _states(files: Mapping[str, _File], rows: Iterable[Row]) -> Iterable[MigrationState]:
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row[0], []).append(row)
    for name, file in files.items():
        yield _state(name, file, by_name.get(name, []))
    for name in by_name:
        if name not in files:
            yield MigrationState(name, "missing", by_name[name][-1][4])


def _state(name: str, file: _File, rows: list[Row]) -> MigrationState:
    if not rows:
        return MigrationState(name, "pending")
    at = rows[-1][4]
    if any(row[1] != file.hash for row in rows):
        return MigrationState(name, "edited", at)
    whole = {row[2] for row in rows if row[3] == WHOLE}
    return MigrationState(name, "applied" if whole == {*HALVES} else "expanded" if "expand" in whole else "begun", at)
