"""`diptych migrate`: bring databases to a model that has changed, by files that are reviewed."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from diptych.cli.counts import counted
from diptych.cli.model import load_model, model_argument
from diptych.cli.settings import check_lasting, config_of
from diptych.compile.system.upgrade import SYSTEM_VERSION
from diptych.config import Config
from diptych.errors import StartError
from diptych.migrate.diff import Answers, MigrationQuestion
from diptych.migrate.files import FOLDER, Loaded, sql_of
from diptych.migrate.key_steps import run
from diptych.migrate.log import HALVES, Half
from diptych.migrate.nodes import StillNeeded, version_of
from diptych.migrate.runner import Project, dialect_of
from diptych.migrate.state import state_of
from diptych.migrate.step import MigrationStep

Command = Callable[..., None]
_FOLDER = click.option("--folder", default=FOLDER, show_default=True, help="The folder of the migrations.")
_DATABASE = click.option(
    "--database", metavar="URL", default=None, help="The database; left out, the setting `database`."
)


@click.group()
def migrate() -> None:
    """Migrations: files that bring a database to a changed model.

    They are in your repository, and reviewed like all code.
    """


@migrate.command()
@model_argument
@click.option("--name", metavar="NAME", help="The name of the file after its number; left out, that of its first step.")
@_FOLDER
@click.option("--rename", "renames", multiple=True, metavar="OLD=NEW", help="posts=articles, posts.title=headline.")
@click.option(
    "--drop", "drops", multiple=True, metavar="NAME", help="A table or table.column that is gone, not renamed."
)
@click.option(
    "--fill",
    "fills",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="What rows that are there get: posts.rank=3, or posts.slug='= lower(title)' for an SQL expression.",
)
@click.option("--using", "usings", multiple=True, metavar="COLUMN=SQL", help="How values of a column are converted.")
def make(name: str | None, model: str | None, folder: str, **said: Sequence[str]) -> None:
    """Write the migration from the last one to the model."""
    project = Project(load_model(model), Path(folder))
    chain = project.chain(mend=True)
    answers = Answers(
        _pairs(said["renames"], "--rename"),
        set(said["drops"]),
        _pairs(said["fills"], "--fill"),
        _pairs(said["usings"], "--using"),
    )
    difference = project.changes(answers, chain)
    while difference.questions:
        if not sys.stdin.isatty():
            raise StartError(_unanswered(difference.questions))
        _ask(difference.questions[0], answers)
        difference = project.changes(answers, chain)
    if not difference.expand and not difference.contract:
        project.write_state(chain)
        click.echo("The model is as the last migration leaves it: nothing to do.")
        return
    title = name or _title([*difference.expand, *difference.contract], first=not chain)
    if not re.fullmatch(r"[a-z0-9_]{1,60}", title):
        raise StartError(f"{title!r} is no name of a migration; use a-z, 0-9 and _.")
    file = project.make(title, difference, chain)
    click.echo(f"{file}: steps: {len(difference.expand)}, to contract: {len(difference.contract)}.")
    for step in (*difference.expand, *difference.contract):
        click.echo(f"  {_line(step)}")


@migrate.command()
@model_argument
@_FOLDER
@_DATABASE
@click.option("--sql", is_flag=True, help="Print the statements.")
def plan(model: str | None, folder: str, database: str | None, sql: bool) -> None:
    """Show what apply would do. Nothing is changed."""
    project = Project(load_model(model), Path(folder))
    chain, config = project.complete_chain(), _config(database)
    if project.is_new(config):
        click.echo("The database is new: `apply` makes all tables as the last migration leaves them.")
        return
    left = project.pending(config, chain)
    version = project.system_version(config)
    if not left:
        click.echo("The database has all migrations.")
    if version is not None and version < SYSTEM_VERSION:
        click.echo(_system_line(version))
    for half in left:
        click.echo(f"{half.migration.name}: {half.half}")
        for number, (step, before) in enumerate(half.migration.steps(half.half)):
            done = " (done)" if number in half.done else ""
            click.echo(f"  {_line(step)}{_remark(step)}{done}")
            for statement in sql_of(step, before, dialect_of(config.database)) if sql else ():
                click.echo(f"    {statement};")


@migrate.command("apply")
@model_argument
@_FOLDER
@_DATABASE
@click.option(
    "--expand",
    is_flag=True,
    help="Leave out what the last migration drops, so that services with the model before it can go on.",
)
@click.option("--allow-loss", is_flag=True, help="Drop what the migrations drop, even if it holds values.")
@click.option("--ignore-nodes", is_flag=True, help="Apply even what running services are not ready for.")
def apply_(model: str | None, folder: str, database: str | None, **how: bool) -> None:
    """Apply the migrations that a database does not have yet."""
    migrate_now(_config(database), model, folder, **how)


def migrate_now(config: Config, model: str | None, folder: str = FOLDER, *, patient: bool = False, **how: bool) -> None:
    """Apply what is pending, and print it; `how` are the options of `apply`. If it is `patient`, services that may have
    been killed are waited for."""
    sentences: list[str] = []

    def tell(sentence: str) -> None:
        sentences.append(sentence)
        click.echo(sentence)

    project = Project(load_model(model), Path(folder))
    if patient:
        _apply_patiently(project, config, tell)
    else:
        project.apply(config, tell, **how)
    if not sentences:
        click.echo("The database has all migrations.")


def _apply_patiently(project: Project, config: Config, tell: Callable[[str], None]) -> None:
    """Apply what is pending. A service in its way that may have been killed is waited for: if it runs, it is seen anew,
    and that is refused; if not, it is forgotten."""
    ages: dict[str, int] = {}
    while True:
        try:
            project.apply(config, tell)
        except StillNeeded as needed:
            node = needed.node
            if node.runs or node.age < ages.get(node.id, 0):
                raise
            if node.id not in ages:
                tell(f"The service {node} needs what would be dropped. Waiting until it is seen again, or forgotten.")
            ages[node.id] = node.age
            time.sleep(_EVERY)
        else:
            return


_EVERY = 1.0
"""Seconds between two looks at services that may have been killed."""


@migrate.command()
@model_argument
@_FOLDER
@_DATABASE
@click.option("--allow-loss", is_flag=True, help="Drop values that were written since.")
@click.option("--ignore-nodes", is_flag=True, help="Undo it though services that run need what it made.")
def undo(model: str | None, folder: str, database: str | None, **how: bool) -> None:
    """Take back the last `apply --expand` (PostgreSQL)."""
    Project(load_model(model), Path(folder)).undo(_config(database), click.echo, **how)


@migrate.command()
@model_argument
@_FOLDER
@_DATABASE
def status(model: str | None, folder: str, database: str | None) -> None:
    """List the migrations, and which of them a database has."""
    project = Project(load_model(model), Path(folder))
    chain, config = project.chain(), _config(database)
    left = {(half.migration.name, half.half): half for half in project.pending(config, chain)}
    for loaded in chain:
        click.echo(f"{loaded.name}  {_progress(loaded, left)}")
    if not chain or chain[-1].state.hash != state_of(project.model).hash:
        click.echo("The model has changes that no migration has: `diptych migrate make`.")
    version = project.system_version(config)
    if version is not None:
        click.echo(_system_line(version))
    for node in project.nodes(config):
        click.echo(f"The service {node} has the model of {version_of(node, chain)}.")


@migrate.command()
@model_argument
@_FOLDER
@click.option("--database", metavar="URL", default=None, help="A database to compare with the last migration too.")
def check(model: str | None, folder: str, database: str | None) -> None:
    """Check that the files are whole and lead to the model.

    With --database, check that the database is as they leave it, too.
    """
    project = Project(load_model(model), Path(folder))
    chain = project.complete_chain()
    differences = project.drift(_config(database), chain) if database is not None else []
    if differences:
        raise StartError(f"The database is not as {chain[-1].name} leaves it: {'; '.join(differences)}.")
    click.echo(f"{counted(len(chain), 'migration')} {'leads' if len(chain) == 1 else 'lead'} to the model.")


@migrate.command()
@model_argument
@_FOLDER
def squash(model: str | None, folder: str) -> None:
    """Replace all migrations by one. Databases must have all of them first; data steps are left out."""
    project = Project(load_model(model), Path(folder))
    click.echo(f"{project.squash(project.complete_chain())} replaces all others.")


def _system_line(version: int) -> str:
    """How the version of the system tables compares with that of this code."""
    if version == SYSTEM_VERSION:
        return f"The system tables have version {version}."
    if version < SYSTEM_VERSION:
        return f"The system tables have version {version}: `apply`, or the next start, brings them to {SYSTEM_VERSION}."
    return f"The system tables have version {version}, of a later Diptych; this one, with {SYSTEM_VERSION}, can go on."


def _config(database: str | None) -> Config:
    config = config_of({"database": database} if database else {})
    check_lasting(config)
    return config


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name or not value:
            raise StartError(f"{option} {text}: write NAME=VALUE.")
        pairs[name] = value
    return pairs


def _unanswered(questions: Sequence[MigrationQuestion]) -> str:
    lines = ["Before there can be a migration:"]
    for question in questions:
        new = question.candidates[0] if question.candidates else ""
        option = {
            "rename": f"--rename {question.name}={new}, or --drop {question.name}",
            "fill": f"--fill {question.name}=VALUE, a JSON value, or --fill '{question.name}== SQL'",
            "using": f"--using '{question.name}=SQL'",
        }[question.kind]
        lines.append(f"- {question.sentence} {option}")
    return "\n".join(lines)


def _ask(question: MigrationQuestion, answers: Answers) -> None:
    """Ask at the terminal."""
    if question.kind == "rename":
        said = click.prompt(f"{question.sentence} Its new name, or - if it is gone", type=str).strip()
        if said == "-":
            answers.drops.add(question.name)
        else:
            answers.renames[question.name] = said
    elif question.kind == "fill":
        said = click.prompt(f"{question.sentence} A JSON value, or = and an SQL expression", type=str)
        answers.fills[question.name] = said.strip()
    else:
        answers.usings[question.name] = click.prompt(f"{question.sentence} An SQL expression", type=str).strip()


def _title(steps: Sequence[MigrationStep], *, first: bool) -> str:
    if first:
        return "first"
    step: Any = steps[0]
    parts = [getattr(step, name) for name in ("table", "name", "new") if isinstance(getattr(step, name, None), str)]
    return re.sub(r"[^a-z0-9_]", "_", "_".join([type(step).__name__.partition("_")[0], *parts]))[:60]


def _line(step: MigrationStep) -> str:
    given: Any = step
    name = type(step).__name__.replace("_", " ")
    match name:
        case "rename table":
            return f"{name} {given.old} to {given.new}"
        case "rename column":
            return f"{name} {given.table}.{given.old} to {given.new}"
        case "create table" | "drop table":
            return f"{name} {given.name}"
        case "add key" | "drop key":
            return f"{name} {given.table} ({given.key}){' unique' * given.key.unique}"
        case "set search":
            return f"{name} {given.table} ({', '.join(given.columns)})"
    return f"run {given.function.__name__}" if isinstance(step, run) else f"{name} {given.table}.{given.name}"


def _remark(step: MigrationStep) -> str:
    words = []
    if step.loses:
        words.append("loses data")
    if step.stops:
        words.append("services of the model before cannot go on")
    return f" ({'; '.join(words)})" if words else ""


def _progress(migration: Loaded, left: dict[tuple[str, str], Half]) -> str:
    halves = [half for half in HALVES if (migration.name, half) in left]
    if not halves:
        return "applied"
    begun = any(left[migration.name, half].done for half in halves)
    return "expanded, not contracted" if halves == ["contract"] else "begun" if begun else "pending"
