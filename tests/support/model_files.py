"""Writes model files and reads them, as whoever declares a model would.

The rules of a model are read by their source, and mistakes name their line; so a test declares its model as
text, in a file of its own.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from diptych import Model, Resource, Viewer
from diptych.model.defs import ResourceDef
from diptych.model.view import View

HEADER = """
from __future__ import annotations

import datetime as dt
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, ClassVar, List, Optional
from uuid import UUID

from diptych import *

staff = Role("staff")
admin = Role("admin", implies=staff)
"""
_numbers = itertools.count()


def declare(source: str, header: str = HEADER) -> ModuleType:
    """A module with this source, under a header that imports all that a model file may need."""
    name = f"written_{next(_numbers)}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.py"
        file.write_text(header + source, "utf-8")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec and spec.loader
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.__dict__["built"] = _build(module)
    return module


def _build(module: ModuleType) -> Model | Exception:
    """The model of all resources of the module, in the order of the file, or why there is none."""
    kinds = [value for value in vars(module).values() if isinstance(value, type)]
    classes = [kind for kind in kinds if issubclass(kind, Resource) and kind.__module__ == module.__name__]
    viewers = [kind for kind in kinds if issubclass(kind, Viewer) and kind is not Viewer]
    try:
        return Model(*(cls for cls in classes if not cls.__name__.startswith("Mixin")), viewer=[*viewers, Viewer][0])
    except Exception as error:
        return error


def model_of(source: str, header: str = HEADER) -> Model:
    """The model that the source declares."""
    built = declare(source, header).built
    if isinstance(built, Exception):
        raise built
    assert isinstance(built, Model)
    return built


def resource(source: str) -> ResourceDef:
    """The first resource that the source declares."""
    return next(iter(model_of(source).resources.values()))


def seen_by(model: Model, role: str) -> View:
    """What a role sees of a model."""
    return model.view(model.signature(model.viewer_as(role)))
