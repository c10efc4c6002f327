"""The viewer and the request that the options of a command describe."""

from __future__ import annotations

import json
import re
from typing import Any

from diptych.api.graphql.http import Parameters
from diptych.errors import StartError
from diptych.explain.understood import RestRequest, Sent
from diptych.model.declare.roles import ANONYMOUS, Claims, Viewer
from diptych.model.model import Model

_REST = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/\S*)")


def viewer_as(
    model: Model, role: str, user: str | None, scopes: tuple[str, ...], more: dict[str, Any] | None
) -> Viewer:
    """The viewer with a role and with claims of a token."""
    if user is None and not scopes and more is None:
        return model.viewer_as(role)
    if role == ANONYMOUS:
        raise StartError("An anonymous viewer has no token; leave out --user, --scope and --claims.")
    subject = user or model.viewer_as(role).id
    claims = Claims(subject, frozenset({role}), frozenset(scopes) or None, 0, more or {})
    try:
        viewer = model.viewer_of(claims)
    except ValueError as error:
        raise StartError(f"The viewer of the model does not take these claims: {error}.") from None
    if viewer is None:
        raise StartError("The viewer of the model refuses a token with these claims.")
    return viewer


def read_request(request: str, variables: str, body: str | None) -> Sent:
    """Parse a request of either style from the command line."""
    if not re.match(r"([A-Za-z]+ +)?/", request):
        return Parameters(request, None, json_object("--variables", variables))
    match = _REST.fullmatch(request)
    if match is None:
        raise StartError("A REST request is GET, POST, PUT, PATCH or DELETE and a path: 'GET /users'.")
    path, _, query = match[2].partition("?")
    return RestRequest(match[1], path, query, _json("--body", body))


def _json(option: str, text: str | None, kind: str = "JSON") -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        raise StartError(f"{option} is not {kind}.") from None


def json_object(option: str, text: str | None) -> dict[str, Any] | None:
    value = _json(option, text, "a JSON object")
    if value is None or isinstance(value, dict):
        return value
    raise StartError(f"{option} is not a JSON object.")
