"""Diptych: declare a model once, in typed Python, and serve it as GraphQL and as REST."""

from __future__ import annotations

from diptych.model.helpers import contains, either, given, is_null, may_read, not_, one_of
from diptych.model.markers import (
    BigInt,
    Digits,
    Id,
    Json,
    Max,
    MaxLen,
    Min,
    MinLen,
    Move,
    OnDelete,
    Pattern,
    ReadBy,
    States,
    Unique,
    WriteBy,
)
from diptych.model.model import Model
from diptych.model.resource import Resource, allow, auto, computed, grant, inverse, through
from diptych.model.roles import Role, Viewer, signed_in
from diptych.serve.app import Diptych

__all__ = [
    "BigInt", "Digits", "Diptych", "Id", "Json", "Max", "MaxLen", "Min", "MinLen", "Model", "Move", "OnDelete",
    "Pattern", "ReadBy", "Resource", "Role", "States", "Unique", "Viewer", "WriteBy", "allow", "auto", "computed",
    "contains", "either", "given", "grant", "inverse", "is_null", "may_read", "not_", "one_of", "signed_in", "through",
]  # fmt: skip
