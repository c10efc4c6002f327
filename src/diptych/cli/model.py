"""Finds and imports the model of a command."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from diptych.config import load
from diptych.errors import ModelError, StartError
from diptych.model.model import Model

Command = TypeVar("Command", bound=Callable[..., Any])

MODEL_OPTION = click.option(
    "--model", metavar="MODULE:MODEL", help="The model; left out, the setting `model`, and then the default model."
)
DEFAULT = "diptych.demo.model:model"


def model_argument(command: Callable[..., None]) -> Callable[..., None]:

    @click.argument("model", metavar="[MODULE:MODEL]", required=False)
    @click.option("--model", "named", metavar="MODULE:MODEL", help="The same as the argument.")
    @functools.wraps(command)
    def merged(*args: Any, model: str | None, named: str | None, **flags: Any) -> None:
        if model and named and model != named:
            raise StartError(f"The model is named twice: {model} and {named}.")
        command(*args, model=model or named, **flags)

    return merged


def model_name(name: str | None) -> str:
    """The name of the model: from the command line, else from the settings, else the default model."""
    return name or load({}).model or DEFAULT


def load_model(chosen: str | None) -> Model:
    """Import the model at MODULE:MODEL, from the current directory first."""
    name = model_name(chosen)
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise StartError(f"{name!r} does not say where the model is: write MODULE:MODEL, such as blog:model.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    model = getattr(_import(module_name), attribute, None)
    if not isinstance(model, Model):
        raise StartError(f"{module_name} has no Model named {attribute!r}.")
    return model


def check_roles(model: Model, roles: Iterable[str]) -> None:
    unknown = [role for role in roles if role not in model.roles]
    if unknown:
        known = ", ".join(model.roles) or "none"
        raise StartError(f"The model has no role named {', '.join(unknown)}; its roles are {known}.")


def check_scopes(model: Model, scopes: Iterable[str], others: Sequence[str] = ()) -> None:
    """Refuse scopes that are neither of the model nor among the others."""
    known_scopes = [*sorted(model.scopes), *others]
    unknown = [scope for scope in scopes if scope not in known_scopes]
    if unknown:
        known = ", ".join(known_scopes)
        raise StartError(f"The model has no scope named {', '.join(unknown)}; there are {known}.")


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModelError:
        raise
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise StartError(f"There is no module named {name!r} here.") from None
        raise StartError(f"The module {name!r} needs {error.name!r}, which is not installed.") from None
    except SyntaxError as error:
        spot = f"{Path(error.filename or name).name}:{error.lineno}"
        raise StartError(f"The module {name!r} cannot be imported: {error.msg} ({spot}).") from None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        spot = f" ({Path(last.filename).name}:{last.lineno})"
        raise StartError(f"The module {name!r} cannot be imported: {type(error).__name__}: {error}{spot}.") from None
