"""Diptych: declare a model once, in typed Python, and serve it as GraphQL and as REST."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from diptych.ask.measures import Limits, RequestMeasures
from diptych.check.limits import Check
from diptych.config import Config
from diptych.errors import Code, ModelError, Refusal
from diptych.model.declare.actions import action, query
from diptych.model.declare.computed import computed
from diptych.model.declare.markers import (
    BigInt,
    Digits,
    Id,
    Index,
    Json,
    Max,
    MaxLen,
    Min,
    MinLen,
    Move,
    OnDelete,
    Pattern,
    Public,
    ReadBy,
    States,
    Unique,
    Weight,
    WriteBy,
)
from diptych.model.declare.resource import Resource, allow, auto, grant, inverse, now, through, today
from diptych.model.declare.roles import Claims, Role, Viewer, signed_in
from diptych.model.declare.tx import Tx
from diptych.model.model import Model
from diptych.model.rules.helpers import contains, either, every, given, is_null, may_read, none, not_, one_of, some

if TYPE_CHECKING:
    from diptych.serve.app import Diptych

    __version__: str

__all__ = [
    "BigInt",
    "Check",
    "Claims",
    "Code",
    "Config",
    "Digits",
    "Diptych",
    "Id",
    "Index",
    "Json",
    "Limits",
    "Max",
    "MaxLen",
    "Min",
    "MinLen",
    "Model",
    "ModelError",
    "Move",
    "OnDelete",
    "Pattern",
    "Public",
    "ReadBy",
    "Refusal",
    "RequestMeasures",
    "Resource",
    "Role",
    "States",
    "Tx",
    "Unique",
    "Viewer",
    "Weight",
    "WriteBy",
    "__version__",
    "action",
    "allow",
    "auto",
    "computed",
    "contains",
    "either",
    "every",
    "given",
    "grant",
    "inverse",
    "is_null",
    "may_read",
    "none",
    "not_",
    "now",
    "one_of",
    "query",
    "signed_in",
    "some",
    "through",
    "today",
]


def __getattr__(name: str) -> Any:
    """Load `Diptych` and `__version__` on first use, so that declaring or reading a model imports no server."""
    if name == "Diptych":
        return importlib.import_module("diptych.serve.app").Diptych
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("diptych")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
