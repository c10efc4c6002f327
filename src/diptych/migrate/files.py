"""Migration files: written, read, and checked against each other.

    migrations/0001_first.py    Migration(after="", leads_to="sha256:…", expand=(create_table(…), …))
    migrations/0002_rank.py     Migration(after="0001_first", …)
    migrations/state.json       the tables that the last one leads to

The state of each is computed from its steps and must have the hash that the file says: a file whose steps were changed
without it, one that is missing, and two that come after the same one are refused.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from msgspec import Struct

from diptych.compile.system.object import DialectName
from diptych.errors import StartError
from diptych.migrate.shape import catalogue_of
from diptych.migrate.state import Check, Column, Key, State, Table
from diptych.migrate.step import Action, Alone, Backfill, MigrationStep, Number, Rebuild, Stored, Validate

FOLDER, STATE = "migrations", "state.json"
NAME = re.compile(r"[0-9]{4}_[a-z0-9_]+")
DIALECTS: tuple[DialectName, ...] = ("sqlite", "postgres")


class Migration(Struct, frozen=True):
    """What a file declares: `contract` drops what only services of the model before need, `expand` does the rest."""

    after: str
    leads_to: str
    expand: Sequence[MigrationStep] = ()
    contract: Sequence[MigrationStep] = ()
    replaces: Sequence[str] = ()
    """The migrations in whose place it is."""


class Loaded(Struct, frozen=True):
    """A migration in its place: its file, and the states before, between its halves and after it."""

    name: str
    migration: Migration
    before: State
    between: State
    state: State
    hash: str

    def steps(self, half: str) -> list[tuple[MigrationStep, State]]:
        """The steps of a half, each with the state before it."""
        collected, state = [], self.before if half == "expand" else self.between
        for step in getattr(self.migration, half):
            collected.append((step, state))
            state = step.change(state)
        return collected


def read_folder(folder: Path, *, mend: bool = False) -> list[Loaded]:
    """All migrations of a folder in their order. With `mend`, `state.json` need not be the state of the last one."""
    files = sorted(folder.glob("[0-9]*.py")) if folder.is_dir() else []
    declared = {file.stem: (_load(file), file) for file in files}
    for name, (migration, _) in declared.items():
        if migration.after and migration.after not in declared:
            raise StartError(f"{name} comes after {migration.after}, and there is no file {migration.after}.py.")
    chain: list[Loaded] = []
    state, last = State(), ""
    while len(chain) < len(declared):
        after = [name for name, (migration, _) in declared.items() if migration.after == last]
        if len(after) > 1:
            raise StartError(
                f"{' and '.join(after)} both come after {last or 'nothing'}: two branches were merged. Delete the one "
                f"that no database has yet, with its lines of {STATE}, and run `diptych migrate make` again."
            )
        if not after:
            lost = ", ".join(name for name in declared if name not in {loaded.name for loaded in chain})
            raise StartError(f"These migrations follow from no other: {lost}.")
        migration, file = declared[after[0]]
        chain.append(_placed(after[0], migration, state, file))
        state, last = chain[-1].state, after[0]
    if not mend:
        _check_state(folder, chain)
    return chain


def _placed(name: str, migration: Migration, before: State, file: Path) -> Loaded:
    between = before
    for step in migration.expand:
        between = step.change(between)
    state = between
    for step in migration.contract:
        state = step.change(state)
    if state.hash != migration.leads_to:
        raise StartError(
            f"{name}.py was edited: its steps lead to {state.hash}, and it says {migration.leads_to}. Undo it, or, if "
            "no database has it yet, delete the file and run `diptych migrate make` again."
        )
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:32]
    return Loaded(name, migration, before, between, State(state.tables, name), digest)


def _check_state(folder: Path, chain: Sequence[Loaded]) -> None:
    file = folder / STATE
    if not chain and not file.exists():
        return
    try:
        there = State.decode(file.read_text("utf-8"))
    except OSError:
        raise StartError(f"There is no {file}; `diptych migrate make` writes it anew.") from None
    except msgspec.MsgspecError as error:
        raise StartError(f"{file} cannot be read ({error}); `diptych migrate make` writes it anew.") from None
    if not chain:
        raise StartError(f"{file} is there, and the migration {there.migration} is missing.")
    last = chain[-1]
    if there.migration not in {loaded.name for loaded in chain}:
        raise StartError(f"{file} is the state after {there.migration}, and there is no file {there.migration}.py.")
    if there.hash != last.state.hash:
        raise StartError(f"{file} is not the state after {last.name}; `diptych migrate make` writes it anew.")


def _load(file: Path) -> Migration:
    if not NAME.fullmatch(file.stem):
        raise StartError(f"{file.name} is no name of a migration; write 0007_what_it_does.py.")
    name = f"diptych_migration_{file.stem}"
    module = sys.modules[name] = ModuleType(name)
    try:
        # without bytecode: a file that is edited within a second would be taken for the one before
        exec(compile(file.read_text("utf-8"), str(file), "exec"), module.__dict__)
    except StartError:
        raise
    except Exception as error:
        raise StartError(f"The migration {file.name} cannot be read: {type(error).__name__}: {error}.") from None
    migration = getattr(module, "migration", None)
    if not isinstance(migration, Migration):
        raise StartError(f"The migration {file.name} has no `migration = Migration(…)`.")
    return migration


# writing


def write_migration(folder: Path, name: str, migration: Migration, before: State, state: State) -> Path:
    """Write a migration and the state that it leads to."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(migration_text(name, migration, before), "utf-8")
    (folder / STATE).write_text(State(state.tables, name).encode(), "utf-8")
    return file


def migration_text(name: str, migration: Migration, before: State) -> str:
    """The text of a migration file."""
    halves, names = [], {"Migration"}
    state = before
    for half in ("expand", "contract"):
        lines = []
        for step in getattr(migration, half):
            names.add(type(step).__name__)
            lines += _comment(step, state)
            lines.append(f"        {_python(step, names)},")
            state = step.change(state)
        if lines:
            halves.append("    {}=(\n{}\n    ),\n".format(half, "\n".join(lines)))
    replaces = f"    replaces={tuple(migration.replaces)!r},\n".replace("'", '"') if migration.replaces else ""
    title = name.partition("_")[2].replace("_", " ").capitalize()
    return (
        f'"""{title}."""\n\nfrom diptych.migrate import {", ".join(sorted(names))}\n\n'
        f'migration = Migration(\n    after="{migration.after}",\n    leads_to="{migration.leads_to}",\n'
        f"{''.join(halves)}{replaces})\n"
    )


def _comment(step: MigrationStep, before: State) -> list[str]:
    lines = []
    for dialect in DIALECTS:
        for text in sql_of(step, before, dialect):
            flat = " ".join(text.split())
            flat = next((words for begin, words in _IN_WORDS.items() if re.match(begin, flat)), flat)
            if flat:
                lines.append(f"        # {dialect + ':':9} {flat if len(flat) <= 400 else flat[:399] + '…'}")
    return lines


_IN_WORDS = {
    "UPDATE diptych_feed ": "-- stored changes follow",
    r"DO \$\$ .*(DIS|EN)ABLE TRIGGER": "",
    r"DO \$\$": "-- our triggers are made anew",
    "CREATE OR REPLACE FUNCTION diptych_fill": "-- a trigger fills it for services of the model before, until contract",
    "[A-Z ]+TRIGGER .*diptych_fill_": "",
    "WITH batch AS .* -- in batches": "-- rows get numbers in the order in which they were made, in batches of 1000",
    "WITH batch AS ": "-- the rest gets its numbers",
    r"DO \$do\$ .*diptych_count_": "-- a trigger gives numbers from now on",
    "[A-Z ]+(TRIGGER|FUNCTION|INDEX|TABLE IF NOT EXISTS|FROM).*diptych_(count|number)": "",
}
"""How statements begin that are said in words, or left out."""


def sql_of(step: MigrationStep, before: State, dialect: DialectName) -> list[str]:
    """The statements of a step, for a database that is as the state before says."""
    return [action_text(action, dialect) for action in step.actions(before, catalogue_of(before, dialect), dialect)]


def action_text(action: Action, dialect: DialectName) -> str:
    """An action as SQL, or in words where it is many statements."""
    match action:
        case Rebuild(table, _, after, values):
            given = f" with {', '.join(f'{name} = {value}' for name, value in values.items())}" if values else ""
            return f"-- {table} is made anew{given}, and its {len(after.columns)} columns are copied"
        case Backfill(table, name, expression):
            batch = " -- in batches of 1000 rows" * (dialect == "postgres")
            return f'UPDATE "{table}" SET "{name}" = {expression} WHERE "{name}" IS NULL{batch}'
        case Alone(sql, _) | Validate(sql) | Stored(sql):
            return sql
        case Number(sql):
            return f"{sql} -- in batches of 1000 rows"
    return str(action)


def _python(value: Any, names: set[str]) -> str:
    """A step, or a part of one, as Python."""
    if isinstance(value, Column):
        names.add("column")
        return _call("column", value, names, 1)
    if isinstance(value, Key | Check | Table | MigrationStep):
        names.add(type(value).__name__)
        return _call(type(value).__name__, value, names, 1 if isinstance(value, Key) else 9)
    if isinstance(value, dict) and value and all(isinstance(inner, Column) for inner in value.values()):
        lines = (f"            {_text(name)}: {_python(each, names)},\n" for name, each in value.items())
        return "{\n" + "".join(lines) + "        }"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(name)}: {_python(each, names)}" for name, each in value.items()) + "}"
    if isinstance(value, tuple):
        inner = ", ".join(_python(item, names) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return _text(value) if isinstance(value, str) else repr(value)


def _call(name: str, value: msgspec.Struct, names: set[str], positional: int) -> str:
    parts = []
    for index, info in enumerate(msgspec.structs.fields(value)):
        argument = getattr(value, info.name)
        default = info.default if info.default is not msgspec.NODEFAULT else None
        if info.default_factory is not msgspec.NODEFAULT:
            default = info.default_factory()
        if not info.required and argument == default:
            continue
        keyed = index >= positional or not info.required
        parts.append((f"{info.name}=" if keyed else "") + _python(argument, names))
    return f"{name}({', '.join(parts)})"


def _text(value: str) -> str:
    """A string with double quotes where it needs none inside."""
    return f'"{value}"' if value.isprintable() and not set('"\\') & set(value) else repr(value)
