"""Command-line options, made from the table of settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from diptych.config import SETTINGS, Config, Setting, load
from diptych.errors import DiptychError, ModelError, StartError
from diptych.setting_parsers import shown

Command = TypeVar("Command", bound=Callable[..., Any])


def options(*names: str, **defaults: Any) -> Callable[[Command], Command]:
    """Add an option for each named setting; without it, environment, file and default apply."""

    def add(command: Command) -> Command:
        for setting in reversed(SETTINGS):
            if setting.name in names and setting.has_flag:
                command = _option(setting, defaults.get(setting.name, setting.default))(command)
        return command

    return add


def _option(setting: Setting, default: Any) -> Callable[[Command], Command]:
    name = setting.name.replace("_", "-")
    shown_default = {True: "yes", False: "no"}[default] if isinstance(default, bool) else default
    shown_default = ",".join(shown_default) if isinstance(shown_default, tuple) else shown_default
    text = f"{setting.help}. [default: {shown_default}]" if shown_default != "" else f"{setting.help}."
    if isinstance(default, bool):
        return click.option(f"--{name}/--no-{name}", setting.name, default=None, help=text)
    kind = {int: "INTEGER", float: "NUMBER"}.get(type(setting.default), "TEXT")
    return click.option(f"--{name}", setting.name, default=None, type=_reader(setting), metavar=kind, help=text)


def _reader(setting: Setting) -> Callable[[str], Any]:
    """The parser of an option, the same as for the environment and the file."""

    def read(text: str) -> Any:
        try:
            return setting.read(text)
        except ValueError as error:
            raise click.BadParameter(f"{shown(text)}: {error}.") from None

    return read


def config_of(flags: dict[str, Any], **defaults: Any) -> Config:
    """The effective settings of a command, which may have defaults of its own."""
    names = {setting.name for setting in SETTINGS}
    return load({name: value for name, value in flags.items() if name in names}, defaults=defaults)


def sentence(error: DiptychError) -> str:
    """The text of an error, for stderr."""
    return f"The model cannot work:\n{error}" if isinstance(error, ModelError) else str(error)


def check_lasting(config: Config) -> None:
    """Refuse an in-memory database: each process would have its own."""
    if config.database == "sqlite:///:memory:":
        raise StartError("A database in memory ends with the process that made it; name a file: sqlite:///PATH.")
