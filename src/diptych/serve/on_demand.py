"""Modules that a service imports on first use: together they would double the time of a start.

GraphQL brings graphql-core, the authorization server Authlib and argon2, tokens joserfc, WebSockets their protocol. A
server imports them in a thread, right after it has started (`warm_up`), so that no request waits for them; only the
OpenAPI document stays until it is asked for, since most processes never are.
"""

from __future__ import annotations

import importlib
from asyncio import Protocol
from typing import Any

GRAPHQL = "diptych.serve.endpoint.graphql"
OAUTH = "diptych.serve.endpoint.oauth"
SOCKETS = "diptych.serve.handshake"
SOCKET_PROTOCOL = "diptych.serve.http.websocket_protocol"
HOME = "diptych.serve.endpoint.home"
CONSOLE = "diptych.serve.console.endpoint"
CONSOLE_GRAPHQL = "diptych.serve.console.recorded_graphql"
CONSOLE_RECENT = "diptych.serve.console.recent"
CONSOLE_FILES = "diptych.serve.console.files"
MAIL = "diptych.identity.mail.post"
WEBHOOKS = "diptych.webhooks.service"
JOBS = "diptych.jobs.service"
OPENAPI = "diptych.api.openapi.encode"
TOKENS = "joserfc.jwt"
SLOW_LOG = "diptych.serve.slow_log"
EXPLAINING = "diptych.serve.explaining"
"""The handler of development servers, with all that explains."""
TRACING = "diptych.serve.tracing"
SERVER_TIMING = "diptych.serve.server_timing"
EXPOSITION = "diptych.metrics.exposition"


def socket_protocol(**settings: Any) -> Protocol:
    """The protocol of one WebSocket."""
    protocol: Protocol = importlib.import_module(SOCKET_PROTOCOL).SocketProtocol(**settings)
    return protocol


def warm_up() -> None:
    """Import what most services need sooner or later."""
    for module in (TOKENS, GRAPHQL, SOCKETS, OAUTH):
        importlib.import_module(module)
