"""Diptych: declare a model once, in typed Python, and serve it as GraphQL and as REST."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diptych.ask.measures import Limits, RequestMeasures
    from diptych.config import Config
    from diptych.errors import Code, ModelError, Refusal
    from diptych.model.declare.actions import action, query
    from diptych.model.declare.audited import Audited
    from diptych.model.declare.computed import computed
    from diptych.model.declare.deprecated import deprecated, deprecated_values
    from diptych.model.declare.fault import Fault
    from diptych.model.declare.job_resource import JobResource, JobState
    from diptych.model.declare.job_tx import JobTx, Retry
    from diptych.model.declare.keys import check, index, unique
    from diptych.model.declare.markers import (
        BigInt,
        Column,
        Columns,
        Counter,
        Digits,
        Example,
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
        RenamedFrom,
        States,
        Unique,
        Weight,
        WriteBy,
    )
    from diptych.model.declare.rate import Rate
    from diptych.model.declare.resource import Resource, allow, auto, from_viewer, grant, inverse, now, through, today
    from diptych.model.declare.roles import Claims, Role, Viewer, signed_in
    from diptych.model.declare.search import Search
    from diptych.model.declare.sign_up import SignUp
    from diptych.model.declare.tx import Tx
    from diptych.model.declare.value import Value
    from diptych.model.declare.webhook import Webhook
    from diptych.model.declare.webhook_resource import WebhookResource
    from diptych.model.model import Model
    from diptych.model.rules.helpers import contains, either, every, given, is_null, may_read, none, not_, one_of, some
    from diptych.policy.limits import Check
    from diptych.serve.app import Diptych

    __version__: str

__all__ = [
    "Audited",
    "BigInt",
    "Check",
    "Claims",
    "Code",
    "Column",
    "Columns",
    "Config",
    "Counter",
    "Digits",
    "Diptych",
    "Example",
    "Fault",
    "Id",
    "Index",
    "JobResource",
    "JobState",
    "JobTx",
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
    "Rate",
    "ReadBy",
    "Refusal",
    "RenamedFrom",
    "RequestMeasures",
    "Resource",
    "Retry",
    "Role",
    "Search",
    "SignUp",
    "States",
    "Tx",
    "Unique",
    "Value",
    "Viewer",
    "Webhook",
    "WebhookResource",
    "Weight",
    "WriteBy",
    "__version__",
    "action",
    "allow",
    "auto",
    "check",
    "computed",
    "contains",
    "deprecated",
    "deprecated_values",
    "either",
    "every",
    "from_viewer",
    "given",
    "grant",
    "index",
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
    "unique",
]
_MODULES = {
    "ask.measures": "Limits RequestMeasures",
    "policy.limits": "Check",
    "config": "Config",
    "errors": "Code ModelError Refusal",
    "model.declare.actions": "action query",
    "model.declare.audited": "Audited",
    "model.declare.computed": "computed",
    "model.declare.deprecated": "deprecated deprecated_values",
    "model.declare.fault": "Fault",
    "model.declare.job_resource": "JobResource JobState",
    "model.declare.job_tx": "JobTx Retry",
    "model.declare.keys": "check index unique",
    "model.declare.markers": "BigInt Column Columns Counter Digits Example Id Index Json Max MaxLen Min MinLen Move "
    "OnDelete Pattern Public ReadBy RenamedFrom States Unique Weight WriteBy",
    "model.declare.rate": "Rate",
    "model.declare.resource": "Resource allow auto from_viewer grant inverse now through today",
    "model.declare.roles": "Claims Role Viewer signed_in",
    "model.declare.search": "Search",
    "model.declare.sign_up": "SignUp",
    "model.declare.tx": "Tx",
    "model.declare.value": "Value",
    "model.declare.webhook": "Webhook",
    "model.declare.webhook_resource": "WebhookResource",
    "model.model": "Model",
    "model.rules.helpers": "contains either every given is_null may_read none not_ one_of some",
    "serve.app": "Diptych",
}
"""The names of each module; a test compares them with the imports above."""
_WHERE = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import the module of a name on first use: `diptych --version` needs none, and to read a model no server."""
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("diptych")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
