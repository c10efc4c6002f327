"""Why a request is refused, as lines: the rules that never allow it, and those that do not hold on its rows."""

from __future__ import annotations

from diptych.db.store import Store
from diptych.errors import Refusal
from diptych.explain.report import ReportEntry, RowReport
from diptych.explain.rows import Inquiry
from diptych.explain.rulebook import Rulebook
from diptych.explain.scope import matters_of
from diptych.explain.text import matter_lines
from diptych.explain.understood import Sent, Wanted, interpret
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model
from diptych.model.rules.expr import FALSE


async def report_rows(wanted: Wanted, rulebook: Rulebook, viewer: Viewer, store: Store) -> list[ReportEntry]:
    """The report of a request's rows, as they are now."""
    session = await store.session(reading=True)
    try:
        return await RowReport(wanted, Inquiry(rulebook, viewer, session, store.dialect)).entries()
    finally:
        await session.end()


async def why(sent: Sent, model: Model, viewer: Viewer, store: Store) -> list[str]:
    """All rules that deny a request; none if it is allowed, or if it is invalid for everyone."""
    view = model.view(model.signature(viewer))
    rulebook = Rulebook(model, view)
    try:
        wanted, _ = interpret(sent, model, view)
    except Refusal:
        return []
    never = [matter for matter in matters_of(wanted, rulebook) if matter.left == FALSE]
    lines = [line for matter in never for line in matter_lines(matter, rulebook)]
    report = await report_rows(wanted, rulebook, viewer, store)
    return lines + [line for entry in report if entry.denied for line in entry.lines]
