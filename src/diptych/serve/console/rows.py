"""Console endpoints that read the database: why a row is hidden or a change refused, how a statement is executed.

Rows are explained in `diptych dev` only, as everywhere (docs/reference/explaining.md): the values that a rule saw can
be of rows that an admin may not read. `diptych serve` names the rules and looks at no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from diptych.ask.wish import WriteWish
from diptych.engine.read import Engine
from diptych.errors import Code
from diptych.explain.rulebook import Rulebook
from diptych.explain.scope import matters_of
from diptych.explain.statements import statements
from diptych.explain.text import matter_lines
from diptych.explain.understood import RestRequest, Wanted, interpret
from diptych.explain.why import report_rows
from diptych.explain.writes import dry_run
from diptych.identity.viewer import Caller
from diptych.model.declare.roles import ANONYMOUS, Viewer
from diptych.policy.limits import Checks
from diptych.serve.console.requests import Explainer, Json, invalid_member, read_sent, refusal_body, rule_text

_METHODS = {"read": "GET", "create": "POST", "update": "PATCH", "delete": "DELETE"}
_EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN ", "postgres": "EXPLAIN "}
_NO_ROWS = "The service looks at no row for an explanation: `diptych explain --database` does, and `diptych dev`."


class RowExplainer:
    """Explains rows and plans of one service."""

    def __init__(self, engine: Engine, explainer: Explainer, *, dev: bool) -> None:
        self.engine = engine
        self.explainer = explainer
        self.model = engine.model
        self.is_dev = dev

    async def why(self, body: Json, caller: Caller) -> Json:
        """Which rules decide about a row or a change of it, for the caller or for a role."""
        viewer = self._viewer(body, caller)
        view = self.model.view(self.model.signature(viewer))
        rulebook = Rulebook(self.model, view)
        with self.engine.planning_budget.planning():
            wanted, refusal = interpret(self._request(body), self.model, view)
            matters = matters_of(wanted, rulebook)
            rules = [rule_text(matter, rulebook) for matter in matters]
        if not self.is_dev:
            lines = [line for matter in matters for line in matter_lines(matter, rulebook)]
            return {"decided": None, "lines": [*lines, _NO_ROWS], "rules": rules}
        report = await report_rows(wanted, rulebook, viewer, self.engine.store)
        lines = [line for entry in report for line in entry.lines]
        denied = refusal is not None or any(entry.denied for entry in report)
        if refusal is None and wanted.ops and all(isinstance(wish, WriteWish) for wish, _ in wanted.ops):
            trial = Engine(self.model, self.engine.store, Checks(self.engine.limits))
            met = await dry_run(wanted, viewer, trial)
            denied = met is not None
            lines.append("The change would be made." if met is None else f"Refused {met.code}: {met.message}")
        return {"decided": not denied, "lines": lines, "rules": rules}

    def _viewer(self, body: Json, caller: Caller) -> Viewer:
        role, user = body.get("as"), body.get("user")
        if role is None:
            return caller.viewer
        viewer = self.explainer.viewer_as(role)
        if not isinstance(user, str) or role == ANONYMOUS:
            return viewer
        return self.model.viewer(frozenset({role}), id=user)

    def _request(self, body: Json) -> RestRequest:
        resource = self.model.resources.get(str(body.get("resource")))
        key, verb = body.get("id"), body.get("verb", "read")
        if resource is None:
            raise invalid_member("resource", "expected the name of a resource")
        if verb not in _METHODS:
            raise invalid_member("verb", f"expected one of {', '.join(_METHODS)}")
        path = f"/{resource.path}"
        if verb != "create" and not (verb == "read" and key is None):  # a list, without an id
            if not isinstance(key, str) or not key:
                raise invalid_member("id", "expected an id")
            path += f"/{quote(key, safe='')}"
        field = body.get("field")
        query = f"fields={quote(field, safe='')}" if isinstance(field, str) and field else ""
        change = body.get("change") if verb in ("create", "update") else None
        return RestRequest(_METHODS[verb], path, query, change if change is not None or verb == "read" else {})

    async def plan(self, body: Json, caller: Caller) -> Json:
        """How the database would execute the statements of a request; they are not executed."""
        view = self.explainer.view(body, caller)
        viewer = self.explainer.viewer_as(body["as"]) if "as" in body else caller.viewer
        with self.engine.planning_budget.planning():
            sent = read_sent(body)
            wanted, refusal = interpret(sent, self.model, view)
        if refusal is not None:
            return {"plans": [], "refused": refusal_body(refusal)}
        return {"plans": await self._plans(wanted, viewer), "refused": None}

    async def _plans(self, wanted: Wanted, viewer: Viewer) -> list[Json]:
        store = self.engine.store
        with self.engine.planning_budget.planning(goes_on=True):
            bound = [*self._bound(wanted, viewer)]
        session = await store.session(reading=True)
        try:
            plans = []
            for sql, parameters in bound:
                rows = await session.rows(_EXPLAIN[store.dialect.name] + sql, parameters)
                plans.append({"statement": sql, "lines": _lines(rows)})
            return plans
        finally:
            await session.end()

    def _bound(self, wanted: Wanted, viewer: Viewer) -> Iterator[tuple[str, list[Any]]]:
        """The statements with their parameters; that of a subscription runs over ranges, and has none by itself."""
        wish, values = wanted.reads
        if wish.asks:
            prepared = self.engine.prepare(wish, wanted.view, Code.BAD_USER_INPUT)
            values = [*values]
            keys = self.engine.cursor_keys(prepared.planned.pages, prepared.binder, values, viewer)
            plan = prepared.planned.plan
            yield plan.sql, plan.parameters(values, viewer, keys)
        elif wanted.ops:
            for plan, bound in statements(wanted, self.model, self.engine.store.dialect):
                yield plan.sql, plan.parameters(bound, viewer, {})


def _lines(rows: list[tuple[Any, ...]]) -> list[str]:
    """The lines of a plan: PostgreSQL indents them, SQLite has a tree."""
    if rows and len(rows[0]) == 1:
        return [str(row[0]) for row in rows]
    depths = {0: -1}
    lines = []
    for key, parent, _, text in rows:
        depths[key] = depths.get(parent, -1) + 1
        lines.append("  " * depths[key] + str(text))
    return lines
