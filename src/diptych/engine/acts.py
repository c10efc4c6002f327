"""What an audited model asks of a request that changes something: a reason; and which action made a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from diptych.ask.act import ACT, needs_reason
from diptych.model.model import Model


def check_reason(model: Model, resources: Iterable[str]) -> None:
    """Refuse a change of these resources that lacks a reason which one of them requires."""
    act = ACT.get()
    if act is None or act.reason is not None or act.channel == "job":
        return
    for name in resources:
        resource = model.resources[name]
        if resource.audit is not None and resource.audit.reason == "required":
            raise needs_reason(resource.path)


def note_actions(model: Model, prepared: Sequence[Any]) -> None:
    """Refuse writes and calls that lack a reason, and note which actions make the changes of this request."""
    calls = [operation for operation in prepared if not hasattr(operation, "write")]
    check_reason(
        model,
        [
            operation.write.resource if hasattr(operation, "write") else operation.resource.name
            for operation in prepared
        ],
    )
    act = ACT.get()
    if act is not None and calls:
        ACT.set(replace(act, channel="action", operation=", ".join(call.definition.root for call in calls)))
