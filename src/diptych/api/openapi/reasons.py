"""What reasons of changes add to the OpenAPI document: the header `Change-Reason`, where a resource asks for it.

class Invoice(Resource, audit=Audited(reason="required"))   →   PATCH /invoices/{id}: Change-Reason, required
"""

from __future__ import annotations

from typing import Any

from diptych.api.openapi.components import JsonObject, refer
from diptych.ask.act import MAX_REASON
from diptych.model.view import View

_NAME, _REQUIRED = "Change-Reason", "Change-Reason.required"
_CHANGES = ("post", "put", "patch", "delete")
_SHARED = {"/batch": ("post",), "/graphql": ("post",)}
"""Operations that may change any resource: which of them needs a reason depends on the body."""
_TEXT = "Why it is changed, for the audit log: one line."


def add_reasons(paths: dict[str, Any], parameters: dict[str, JsonObject], view: View) -> None:
    """Add the header to all operations that take it, and its components to the parameters."""
    wanted = {
        name: resource.resource.audit.reason
        for name, resource in view.resources.items()
        if resource.resource.audit is not None and resource.resource.audit.reason
    }
    if not wanted:
        return
    used = set()
    for path, item in paths.items():
        for method in _SHARED.get(path, _CHANGES):
            operation = item.get(method)
            asked = "optional" if path in _SHARED else wanted.get(operation["tags"][0]) if operation else None
            if operation is None or not asked:
                continue
            name = _REQUIRED if asked == "required" else _NAME
            used.add(name)
            operation["parameters"] = [*operation.get("parameters", ()), refer("parameters", name)]
    parameters |= {name: _parameter(name == _REQUIRED) for name in sorted(used)}


def _parameter(required: bool) -> JsonObject:
    schema = {"type": "string", "minLength": 1, "maxLength": MAX_REASON}
    return {"name": _NAME, "in": "header", "required": required, "description": _TEXT, "schema": schema}
