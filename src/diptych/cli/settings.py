"""The options that commands share, made from the one table of settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from diptych.config import SETTINGS, Config, Setting, load
from diptych.errors import StartError

Command = TypeVar("Command", bound=Callable[..., Any])


def options(*names: str, **defaults: Any) -> Callable[[Command], Command]:
    """Add an option for each named setting; left out, environment, file and default decide."""

    def add(command: Command) -> Command:
        for setting in reversed(SETTINGS):
            if setting.name in names and setting.has_flag:
                command = _option(setting, defaults.get(setting.name, setting.default))(command)
        return command

    return add


def _option(setting: Setting, default: Any) -> Callable[[Command], Command]:
    name = setting.name.replace("_", "-")
    told = {True: "yes", False: "no"}[default] if isinstance(default, bool) else default
    shown = f"{setting.help}. [default: {told}]" if told not in ("", ()) else f"{setting.help}."
    if isinstance(default, bool):
        return click.option(f"--{name}/--no-{name}", setting.name, default=None, help=shown)
    kind = {int: "INTEGER", float: "NUMBER"}.get(type(setting.default), "TEXT")
    return click.option(f"--{name}", setting.name, default=None, type=_reader(setting), metavar=kind, help=shown)


def _reader(setting: Setting) -> Callable[[str], Any]:
    """Reads the value of a flag as the environment and the file are read."""

    def read(text: str) -> Any:
        try:
            return setting.read(text)
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: {error}.") from None

    return read


def config_of(given: dict[str, Any], **defaults: Any) -> Config:
    """The settings that hold, from the options of a command, which may have defaults of its own."""
    names = {setting.name for setting in SETTINGS}
    return load({name: value for name, value in given.items() if name in names}, defaults=defaults)


def check_lasting(config: Config) -> None:
    """Refuse a database in memory: it would be another one in each process."""
    if config.database == "sqlite:///:memory:":
        raise StartError("A database in memory ends with the process that made it; name a file: sqlite:///PATH.")
