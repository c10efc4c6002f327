"""Says who makes the changes of a request, where a model is audited: `ACT` is set before the request is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from diptych.ask.act import ACT, EXTENSION, HEADER, Act, Channel, read_reason
from diptych.identity.tokens import client_of
from diptych.identity.viewer import Caller
from diptych.model.declare.roles import SIGNED_IN
from diptych.model.model import Model
from diptych.serve.http.request import Request


class Acts:
    """The acts of the requests of one service."""

    def __init__(self, model: Model) -> None:
        self._takes_reasons = any(audit.reason for audit in model.audited.values())

    def note(self, request: Request, caller: Caller) -> None:
        """Note who sends a request; a Refusal if its reason is no valid text."""
        reason = read_reason(request.headers.get(HEADER)) if self._takes_reasons else None
        ACT.set(act_of(caller, _channel(request.path), request.id, reason))

    @staticmethod
    def note_operation(caller: Caller) -> None:
        """Note who sends an operation of a WebSocket."""
        ACT.set(act_of(caller, "graphql"))

    def note_extensions(self, extensions: Mapping[str, Any] | None) -> None:
        """Note the reason that a GraphQL request has in its extensions."""
        act = ACT.get()
        if self._takes_reasons and act is not None and extensions and EXTENSION in extensions:
            ACT.set(replace(act, reason=read_reason(extensions[EXTENSION])))


def acts_of(model: Model) -> Acts | None:
    """What notes the acts of a service; None if its model is not audited."""
    return Acts(model) if model.audited else None


def act_of(caller: Caller, channel: Channel, request: str | None = None, reason: str | None = None) -> Act:
    """The act of a caller."""
    claims = caller.claims
    if claims is None:
        return Act(channel, request=request, reason=reason)
    return Act(
        channel,
        caller.viewer.id,
        _text(claims.get("account")),
        client_of(claims),
        _text(claims.get("jti")),
        tuple(sorted(caller.viewer.roles - {SIGNED_IN})),
        request,
        None,
        reason,
    )


def _text(claim: Any) -> str | None:
    return claim if isinstance(claim, str) else None


def _channel(path: str) -> Channel:
    if path == "/graphql":
        return "graphql"
    if path.startswith("/oauth/") or path == "/oauth":
        return "account"
    return "batch" if path.endswith("/batch") else "rest"
