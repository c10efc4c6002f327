"""The options that commands share, made from the one table of settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from diptych.config import SETTINGS, Config, Setting, load

Command = TypeVar("Command", bound=Callable[..., Any])


def options(*names: str) -> Callable[[Command], Command]:
    """Add an option for each named setting; left out, environment, file and default decide."""

    def add(command: Command) -> Command:
        for setting in reversed(SETTINGS):
            if setting.name in names:
                command = _option(setting)(command)
        return command

    return add


def _option(setting: Setting) -> Callable[[Command], Command]:
    name = setting.name.replace("_", "-")
    shown = f"{setting.help}. [default: {setting.default}]" if setting.default not in ("", None) else f"{setting.help}."
    if isinstance(setting.default, bool):
        return click.option(f"--{name}/--no-{name}", setting.name, default=None, help=shown)
    kinds: dict[type, Any] = {int: click.IntRange(min=0), float: click.FloatRange(min=0), str: str}
    return click.option(f"--{name}", setting.name, default=None, type=kinds[type(setting.default)], help=shown)


def config_of(given: dict[str, Any]) -> Config:
    """The settings that hold, from the options of a command."""
    names = {setting.name for setting in SETTINGS}
    return load({name: value for name, value in given.items() if name in names})
