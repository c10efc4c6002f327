"""`diptych new`: a small project to begin with.

The files are templates without placeholders, in `project/`, and in `project_from/` for a database that exists. Their
suffix `.tpl` keeps tools from taking them for code of the package.
"""

from __future__ import annotations

import importlib
import json
import os
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import click

from diptych.cli.database import SQLITE
from diptych.errors import StartError

_NAMES = {
    "gitignore": ".gitignore",
    "0001_first.py": "migrations/0001_first.py",
    "state.json": "migrations/state.json",
}
"""Names that a file cannot have here, a `.gitignore` would hold for the package, and places in folders."""
_SETTINGS = """\
# Settings of all commands in this folder. A flag or an environment variable (DIPTYCH_DATABASE=…) wins over this file.
"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option("--from", "database", metavar="DATABASE", help="A database that exists, whose model is inspected.")
def new(folder: Path, database: str | None) -> None:
    """Make a project in FOLDER: model, settings, tests, migration.

    Without FOLDER, it is made here. With --from, the model is that of a database that exists, as `diptych inspect`
    prints it, and there is no migration: its tables stay as they are.
    """
    texts = project_files() if database is None else inspected_files(database)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tops = dict.fromkeys(name.partition("/")[0] for name in texts)
        if there := [name for name in tops if os.path.lexists(folder / name)]:
            raise StartError(f"{folder} has {', '.join(there)} already; nothing was made.")
        for name, text in texts.items():
            (folder / name).parent.mkdir(exist_ok=True)
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise StartError(f"The project cannot be made in {folder}: {error.strerror}.") from None
    click.echo(f"Made {', '.join(texts)} in {folder.resolve()}.\n\nNext:")
    steps = ["diptych check", "diptych dev", "python -m pytest"]
    for step in steps if folder.resolve() == Path.cwd() else [f"cd {folder}", *steps]:
        click.echo(f"    {step}")


def inspected_files(database: str) -> dict[str, str]:
    """The files of a project for a database that exists. Its address may hold a password: that is not written down."""
    text, left = importlib.import_module("diptych.cli.inspect").model_of(database)
    for sentence in left:
        click.echo(f"Left out: {sentence}", err=True)
    address = urlsplit(database)
    hidden = database.replace(f":{address.password}@", "@") if address.password else database
    if database.startswith(SQLITE) and not hidden.startswith("sqlite:////"):
        hidden = SQLITE + str(Path(database.removeprefix(SQLITE)).resolve())
    settings = f'{_SETTINGS}model = "model:model"\ndatabase = {json.dumps(hidden)}\n'
    own = {".gitignore": project_files()[".gitignore"], "diptych.toml": settings, "model.py": text}
    return dict(sorted({**project_files("project_from"), **own}.items()))


def project_files(folder: str = "project") -> dict[str, str]:
    """The text of each file of a new project, by its name."""
    texts = {
        template.name.removesuffix(".tpl"): template.read_text("utf-8")
        for template in files("diptych.cli").joinpath(folder).iterdir()
        if template.name.endswith(".tpl")
    }
    return {name: texts[key] for name, key in sorted((_NAMES.get(key, key), key) for key in texts)}
