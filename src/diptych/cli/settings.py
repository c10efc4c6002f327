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
    return click.option(f"--{name}", setting.name, default=None, type=_Value(setting), help=shown)


class _Value(click.ParamType):
    """The value of a flag, read as the environment and the file are."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.name = {int: "integer", float: "float"}.get(type(setting.default), "text")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.setting.read(str(value))
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


def config_of(given: dict[str, Any], **defaults: Any) -> Config:
    """The settings that hold, from the options of a command, which may have defaults of its own."""
    names = {setting.name for setting in SETTINGS}
    return load({name: value for name, value in given.items() if name in names}, defaults=defaults)
