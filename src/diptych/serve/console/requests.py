"""A request that a person writes in the console: its text in the other style, its price, its statement and its rules.

Nothing runs. Text and price come from the caller's own view, with the refusal that the API itself would give, so they
reveal nothing that the caller could not learn by sending the request. Statement and rules are for admins, as they name
what hides a name; so is the view of another role.
"""

from __future__ import annotations

from typing import Any

from diptych.api.graphql.http import Parameters
from diptych.api.reply import DocumentRefusal, graphql_errors, pointer
from diptych.ask.wish import WriteWish
from diptych.engine.read import Engine
from diptych.errors import Code, Fault, Refusal
from diptych.explain.cost import cost_lines, measured_request
from diptych.explain.rulebook import Matter, Rulebook
from diptych.explain.scope import matters_of
from diptych.explain.statements import parameter_texts, statements
from diptych.explain.text import matter_lines
from diptych.explain.twin import RestText, Twin, twin
from diptych.explain.understood import RestRequest, Sent, Wanted, interpret, understand
from diptych.identity.viewer import Caller
from diptych.model.declare.roles import Viewer
from diptych.model.view import View

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
Json = dict[str, Any]


class Explainer:
    """Explains requests to one service, without a look at its rows."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.model = engine.model

    def view(self, sent: Json, caller: Caller) -> View:
        """The view of the caller, or of the role that an admin views as."""
        if "as" not in sent:
            return self.model.view(caller.signature)
        return self.model.view(self.model.signature(self.viewer_as(sent["as"])))

    def viewer_as(self, role: object) -> Viewer:
        if not isinstance(role, str) or role not in self.model.role_names:
            raise Refusal(Code.BAD_USER_INPUT, "The request is not valid.", [Fault(("body", "as"), "expected a role")])
        return self.model.viewer_as(role)

    def twin(self, body: Json, caller: Caller, *, admin: bool) -> Json:
        """A request in both styles; `admin` also gets its statements and rules."""
        sent = read_sent(body)
        with self.engine.planning_budget.planning():
            view = self.view(body, caller)
            try:
                wanted, refusal = interpret(sent, self.model, view) if admin else (self._own(sent, view), None)
            except Refusal as error:
                return {**_EMPTY, **_sent_text(sent), "refused": refusal_body(error)}
            texts = twin(wanted, sent, self.model)
            description = {"kind": _kind(wanted), **_texts(texts, sent), "price": self._price(wanted)}
            description["refused"] = None if refusal is None else refusal_body(refusal)
            description["sql"] = self._sql(wanted) if admin and refusal is None else []
            description["rules"] = self._rules(wanted, view) if admin else []
            return description

    def _own(self, sent: Sent, view: View) -> Wanted:
        """The request through the view of the caller alone."""
        return understand(sent, self.model, view)

    def _price(self, wanted: Wanted) -> Json:
        limits = self.engine.limits
        depth, cost = measured_request(wanted, self.model.resources, limits)
        lines = cost_lines(wanted, self.model.resources, limits)
        return {"depth": depth, "maxDepth": limits.depth, "cost": cost, "maxCost": limits.complexity, "lines": lines}

    def _sql(self, wanted: Wanted) -> list[Json]:
        dialect = self.engine.store.dialect
        return [
            {"statement": plan.sql, "parameters": parameter_texts(plan, values, dialect)}
            for plan, values in statements(wanted, self.model, dialect)
        ]

    def _rules(self, wanted: Wanted, view: View) -> list[Json]:
        rulebook = Rulebook(self.model, view)
        return [rule_text(matter, rulebook) for matter in matters_of(wanted, rulebook)]


_EMPTY: Json = {"kind": None, "graphql": None, "rest": [], "price": None, "sql": [], "rules": []}


def read_sent(body: Json) -> Sent:
    """The request in the body of an endpoint; a Refusal if it is none."""
    if "query" in body:
        name, variables = body.get("operationName"), body.get("variables")
        if not isinstance(body["query"], str) or not isinstance(name, str | None):
            raise invalid_member("query", "expected a document")
        if not isinstance(variables, dict | None):
            raise invalid_member("variables", "expected an object")
        return Parameters(body["query"], name or None, variables or {})
    method, url, headers = body.get("method", "GET"), body.get("url"), body.get("headers") or {}
    if not isinstance(url, str) or not url.startswith("/"):
        raise invalid_member("url", "expected a path")
    if method not in _METHODS:
        raise invalid_member("method", f"expected one of {', '.join(_METHODS)}")
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise invalid_member("headers", "expected texts by name")
    path, _, query = url.partition("?")
    return RestRequest(method, path, query, body.get("body"), {name.lower(): value for name, value in headers.items()})


def invalid_member(name: str, message: str) -> Refusal:
    """The Refusal of a body with a member that is not valid."""
    return Refusal(Code.BAD_USER_INPUT, "The request is not valid.", [Fault(("body", name), message)])


def _kind(wanted: Wanted) -> str:
    if wanted.watch is not None:
        return "watch"
    if not wanted.ops:
        return "read"
    return "write" if all(isinstance(wish, WriteWish) for wish, _ in wanted.ops) else "call"


def _sent_text(sent: Sent) -> Json:
    """The request as it was sent, in its own style."""
    if isinstance(sent, RestRequest):
        url = f"{sent.path}?{sent.query}" if sent.query else sent.path
        return {"rest": [{"method": sent.method, "url": url, "headers": dict(sent.headers), "body": sent.body}]}
    return {"graphql": {"query": sent.query, "variables": sent.variables or {}}}


def _texts(texts: Twin, sent: Sent) -> Json:
    """Both texts; that of its own style is as it was sent."""
    document = texts.graphql
    graphql = {"none": document} if isinstance(document, str) else {"query": document[0], "variables": document[1]}
    return {"graphql": graphql, "rest": [_rest(text) for text in texts.rest], **_sent_text(sent)}


def _rest(text: RestText | str) -> Json:
    if isinstance(text, str):
        return {"none": text}
    request = {"method": text.method, "url": text.url, "headers": dict(text.headers), "body": text.body}
    return {**request, "note": text.note} if text.note else request


def refusal_body(refusal: Refusal) -> Json:
    """A refusal, with the places at fault: pointers into the request, and lines of a document."""
    faults: list[Json] = [{"pointer": pointer(fault.path), "message": fault.message} for fault in refusal.faults]
    if isinstance(refusal, DocumentRefusal):
        faults = [
            {"pointer": "/query", "message": error["message"], "location": next(iter(error.get("locations", ())), None)}
            for error in graphql_errors(refusal)
        ]
    return {"code": refusal.code.value, "message": refusal.message, "faults": faults}


def rule_text(matter: Matter, rulebook: Rulebook) -> Json:
    """The rules of a matter, as `diptych explain` writes them, and where the first of them is declared."""
    title, *lines = matter_lines(matter, rulebook)
    spot = next((clause.spot for clause in matter.clauses if clause.spot), "")
    file, _, line = spot.rpartition(":")
    return {"title": title, "lines": lines, "file": file or None, "line": int(line) if line else None}
