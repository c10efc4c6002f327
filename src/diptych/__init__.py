"""Diptych: declare a model once, in typed Python, and serve it as GraphQL and as REST."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from diptych.ask.asked import Asked, Limits
from diptych.check.limits import Check
from diptych.errors import Code, Refusal
from diptych.model.actions import action, query
from diptych.model.computed import computed
from diptych.model.helpers import contains, either, every, given, is_null, may_read, none, not_, one_of, some
from diptych.model.markers import (
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
from diptych.model.model import Model
from diptych.model.resource import Resource, allow, auto, grant, inverse, now, through, today
from diptych.model.roles import Claims, Role, Viewer, signed_in
from diptych.model.tx import Tx

if TYPE_CHECKING:
    from diptych.serve.app import Diptych

__all__ = [
    "Asked", "BigInt", "Check", "Claims", "Code", "Digits", "Diptych", "Id", "Index", "Json", "Limits", "Max", "MaxLen",
    "Min", "MinLen", "Model", "Move", "OnDelete", "Pattern", "Public", "ReadBy", "Refusal", "Resource", "Role",
    "States", "Tx", "Unique", "Viewer", "Weight", "WriteBy", "action", "allow", "auto", "computed", "contains",
    "either", "every", "given", "grant", "inverse", "is_null", "may_read", "none", "not_", "now", "one_of", "query",
    "signed_in", "some", "through", "today",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """`Diptych` is imported on first use: whoever only declares or reads a model needs no server."""
    if name != "Diptych":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("diptych.serve.app").Diptych
