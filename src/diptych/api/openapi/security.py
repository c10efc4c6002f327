"""Security schemes of the OpenAPI document, and the scopes that operations need.

    bearer    a token, wherever it comes from, or an API key
    oauth2    the flows by which a tool gets such a token, with endpoints and scopes
    client    how a client authenticates at the authorization server

A request without a token is anonymous, so no operation requires one. A token with scopes is narrowed to them: an
operation names those that it needs, for the resources that it concerns (`posts:read`); `read` includes all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from diptych.api.descriptions import describe_scope
from diptych.api.openapi.components import JsonObject
from diptych.model.call_defs import CallDef, QueryDef
from diptych.model.defs import ResourceDef, RuleDef
from diptych.model.reach import read_first
from diptych.model.view import View

_READS = ("get",)
_CHANGES = ("post", "put", "patch", "delete")
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "An access token, or an API key. Without one, the caller is anonymous.",
}
_CLIENT = {
    "type": "http",
    "scheme": "basic",
    "description": "The id and the secret of a client; both can be in the form instead.",
}
_LOCAL = "http://127.0.0.1:8000"
"""Address of a service whose address is not set: the document needs absolute ones."""
NO_TOKEN: list[JsonObject] = [{}]
CLIENT_SECURITY: list[JsonObject] = [{"client": []}, {}]
"""A client without a secret sends its id in the form."""
TOKEN: list[JsonObject] = [{"bearer": []}, {"oauth2": []}]
ANYONE: list[JsonObject] = [{"bearer": []}, {"oauth2": []}, {}]


def security_schemes(view: View, issuer: str) -> JsonObject:
    """All schemes; `issuer` is the address of the authorization server."""
    issuer = issuer or _LOCAL
    scopes = {scope: describe_scope(scope).capitalize() + "." for scope in _scopes(view)}
    token = {"tokenUrl": f"{issuer}/oauth/token", "scopes": scopes}
    person = {"authorizationUrl": f"{issuer}/oauth/authorize", "refreshUrl": f"{issuer}/oauth/token", **token}
    flows = {"authorizationCode": person, "clientCredentials": token}
    description = (
        "Authorization code with PKCE (S256) for people, client credentials for programs. `read` stands for the scopes "
        "to read all resources, `write` for those to change them."
    )
    return {
        "bearer": _BEARER,
        "oauth2": {"type": "oauth2", "description": description, "flows": flows},
        "client": _CLIENT,
    }


def _scopes(view: View) -> list[str]:
    """The scopes that are useful to the role."""
    scopes = {"read": None, "write": None}
    for readable in view.resources.values():
        changes = any(readable.may(verb) for verb in ("create", "update", "delete"))
        scopes |= dict.fromkeys(f"{readable.resource.path}:{kind}" for kind in ("read", "write")[: 1 + changes])
    for resource, call in view.calls.values():
        scopes[f"{resource.path}:{'read' if isinstance(call, QueryDef) else 'write'}"] = None
    return list(scopes)


def secured(
    item: JsonObject, view: View, reads: Iterable[ResourceDef], writes: Iterable[ResourceDef] = ()
) -> JsonObject:
    """A path item with the scopes of its operations, by the resources that it reads and writes."""
    written = list(writes)
    read = _to_read(reads, view)
    looked_at = (seen for resource in written for rule in resource.rules for seen in _read_by(rule, resource, view))
    change = {*read, *(f"{resource.path}:write" for resource in written), *_to_read(looked_at, view)}
    needed = {**dict.fromkeys(_READS, read), **dict.fromkeys(_CHANGES, change)}
    return {
        method: {**part, "security": _requirement(needed[method])} if method in needed else part
        for method, part in item.items()
    }


def secured_call(item: JsonObject, view: View, resource: ResourceDef, call: CallDef) -> JsonObject:
    """Add security requirements to the operation of a call, which reads its row and what it returns."""
    seen = [view.model[call.result.resource]] if call.result.resource else []
    seen += [resource] if call.on == "row" or isinstance(call, QueryDef) else []
    return secured(item, view, seen, [resource])


def _to_read(resources: Iterable[ResourceDef], view: View) -> set[str]:
    """The scopes to read these resources, and others whose rows must be readable for that."""
    known: set[str] = set()
    left = list(resources)
    while left:
        resource = left.pop()
        if resource.name not in known:
            known.add(resource.name)
            rules = (rule for rule in resource.rules if "read" in rule.verbs and not rule.fields)
            left += (required for rule in rules for required in _read_by(rule, resource, view))
    return {f"{view.model[name].path}:read" for name in known}


def _read_by(rule: RuleDef, resource: ResourceDef, view: View) -> list[ResourceDef]:
    """The resources of which a rule asks whether a row can be read."""
    if rule.role is not None and rule.role not in view.signature.roles:
        return []
    return [view.model[name] for name in read_first(rule.expr, resource, view.model)]


def _requirement(scopes: Iterable[str]) -> list[JsonObject]:
    return [{"bearer": []}, {"oauth2": sorted(scopes)}, {}]
