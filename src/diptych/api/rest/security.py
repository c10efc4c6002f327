"""How a caller proves who it is, and which scopes it needs for what, in an OpenAPI document.

    bearer    a token, wherever it comes from, or an API key
    oauth2    the flows by which a tool gets such a token: it knows where to send people, and for what to ask
    client    what a client proves itself by at the authorization server

Whoever has no token is anonymous, so no operation demands one. A token that has scopes is narrowed to them: an
operation names those that it needs, for all resources alike (`read`) or for those that it is about (`posts:read`).
"""

from __future__ import annotations

from collections.abc import Iterable

from diptych.api.rest.components import Part
from diptych.api.words import told_scope
from diptych.model.defs import CallDef, QueryDef, ResourceDef, RuleDef
from diptych.model.reach import read_first
from diptych.model.view import View

_READS = ("get", "head")
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
"""Where a service is that was told no address: a document must name whole ones."""
NO_TOKEN: list[Part] = [{}]
CLIENTS: list[Part] = [{}, {"client": []}]
"""A client without a secret tells its id in the form."""
ANYONE: list[Part] = [{}, {"bearer": []}, {"oauth2": []}]


def security_schemes(view: View, issuer: str) -> Part:
    """Every scheme; `issuer` is the address of the authorization server."""
    issuer = issuer or _LOCAL
    scopes = {scope: told_scope(scope).capitalize() + "." for scope in _scopes(view)}
    token = {"tokenUrl": f"{issuer}/oauth/token", "scopes": scopes}
    person = {"authorizationUrl": f"{issuer}/oauth/authorize", "refreshUrl": f"{issuer}/oauth/token", **token}
    flows = {"authorizationCode": person, "clientCredentials": token}
    told = "Authorization code with PKCE (S256) for people, client credentials for programs."
    return {"bearer": _BEARER, "oauth2": {"type": "oauth2", "description": told, "flows": flows}, "client": _CLIENT}


def _scopes(view: View) -> list[str]:
    """The scopes that can be of use to the role."""
    found = {"read": None, "write": None}
    for each in view.resources.values():
        changes = any(each.may(verb) for verb in ("create", "update", "delete"))
        found |= dict.fromkeys(f"{each.resource.path}:{kind}" for kind in ("read", "write")[: 1 + changes])
    for resource, call in view.calls.values():
        found[f"{resource.path}:{'read' if isinstance(call, QueryDef) else 'write'}"] = None
    return list(found)


def secured(item: Part, view: View, reads: Iterable[ResourceDef], writes: Iterable[ResourceDef] = ()) -> Part:
    """A path item whose operations tell their scopes: it reads rows of some resources, and changes rows of others."""
    written = list(writes)
    read = _to_read(reads, view)
    looked_at = (each for found in written for rule in found.rules for each in _asked_about(rule, found, view))
    change = {*read, *(f"{found.path}:write" for found in written), *_to_read(looked_at, view)}
    needed = {**dict.fromkeys(_READS, read), **dict.fromkeys(_CHANGES, change)}
    return {
        method: {**part, "security": _requirement(needed[method])} if method in needed else part
        for method, part in item.items()
    }


def secured_call(item: Part, view: View, found: ResourceDef, call: CallDef) -> Part:
    """The same for code of the model's own: it reads what it is called on, and what it gives."""
    seen = [view.model[call.result.resource]] if call.result.resource else []
    seen += [found] if call.on == "row" or isinstance(call, QueryDef) else []
    return secured(item, view, seen, [found])


def _to_read(resources: Iterable[ResourceDef], view: View) -> set[str]:
    """The scopes to read rows of these, and of others whose rows must be readable for that."""
    known: set[str] = set()
    left = list(resources)
    while left:
        found = left.pop()
        if found.name not in known:
            known.add(found.name)
            rules = (rule for rule in found.rules if "read" in rule.verbs and not rule.fields)
            left += (each for rule in rules for each in _asked_about(rule, found, view))
    return {f"{view.model[name].path}:read" for name in known}


def _asked_about(rule: RuleDef, found: ResourceDef, view: View) -> list[ResourceDef]:
    """The resources of which a rule asks whether a row can be read."""
    if rule.role is not None and rule.role not in view.signature.roles:
        return []
    return [view.model[name] for name in read_first(rule.expr, found, view.model)]


def _requirement(scopes: Iterable[str]) -> list[Part]:
    own = sorted(scopes)
    common = sorted({scope.rpartition(":")[2] for scope in own})
    return [{}, {"bearer": []}, {"oauth2": common}, {"oauth2": own}]
