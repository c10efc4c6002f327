"""Diptych: declare a model once, in typed Python, and serve it as GraphQL and as REST."""

from __future__ import annotations

from diptych.errors import Code, Refusal
from diptych.model.actions import action, query
from diptych.model.computed import computed
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
from diptych.model.resource import Resource, allow, auto, grant, inverse, through
from diptych.model.roles import Role, Viewer, signed_in
from diptych.model.tx import Tx
from diptych.serve.app import Diptych

__all__ = [
    "BigInt", "Code", "Digits", "Diptych", "Id", "Json", "Max", "MaxLen", "Min", "MinLen", "Model", "Move",
    "OnDelete", "Pattern", "ReadBy", "Refusal", "Resource", "Role", "States", "Tx", "Unique", "Viewer",
    "WriteBy", "action", "allow", "auto", "computed", "contains", "either", "given", "grant", "inverse",
    "is_null", "may_read", "not_", "one_of", "query", "signed_in", "through",
]  # fmt: skip
