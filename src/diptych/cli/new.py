"""`diptych new`: a small project to begin with.

The files are templates in `project/`, without placeholders. Their suffix `.tpl` keeps tools from taking them for code
of the package.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import click

from diptych.errors import StartError

_NAMES = {"gitignore": ".gitignore"}
"""Names that a file cannot have here: a `.gitignore` would hold for the package."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=".")
def new(folder: Path) -> None:
    """Make a project in FOLDER: a model, its settings and tests. Without FOLDER, make it here."""
    texts = project_files()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if there := [name for name in texts if os.path.lexists(folder / name)]:
            raise StartError(f"{folder} has {', '.join(there)} already; nothing was made.")
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise StartError(f"The project cannot be made in {folder}: {error.strerror}.") from None
    click.echo(f"Made {', '.join(texts)} in {folder.resolve()}.\n\nNext:")
    steps = ["diptych check", "diptych dev", "python -m pytest"]
    for step in steps if folder.resolve() == Path.cwd() else [f"cd {folder}", *steps]:
        click.echo(f"    {step}")


def project_files() -> dict[str, str]:
    """The text of each file of a new project, by its name."""
    texts = {
        template.name.removesuffix(".tpl"): template.read_text("utf-8")
        for template in files("diptych.cli").joinpath("project").iterdir()
        if template.name.endswith(".tpl")
    }
    return {_NAMES.get(name, name): texts[name] for name in sorted(texts)}
