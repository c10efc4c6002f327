"""Why a request is refused, in lines: the rules that allow it never, and those that do not hold on its rows."""

from __future__ import annotations

from diptych.db.store import Store
from diptych.errors import Refusal
from diptych.explain.lines import matter_lines
from diptych.explain.rows import Inquiry
from diptych.explain.rulebook import Rulebook
from diptych.explain.story import Story, Told
from diptych.explain.touched import touched
from diptych.explain.wanted import Sent, Wanted, interpret
from diptych.model.expr import FALSE
from diptych.model.model import Model
from diptych.model.roles import Viewer


async def tell_rows(wanted: Wanted, rulebook: Rulebook, viewer: Viewer, store: Store) -> list[Told]:
    """What the rules say of the rows of a request, as they are now."""
    session = await store.session(reading=True)
    try:
        return await Story(wanted, Inquiry(rulebook, viewer, session, store.dialect)).tell()
    finally:
        await session.end()


async def why(sent: Sent, model: Model, viewer: Viewer, store: Store) -> list[str]:
    """All that stands in the way of a request; nothing, if no rule does, or if nobody could send it."""
    view = model.view(model.signature(viewer))
    rulebook = Rulebook(model, view)
    try:
        wanted, _ = interpret(sent, model, view)
    except Refusal:
        return []
    never = [each for each in touched(wanted, rulebook) if each.left == FALSE]
    lines = [line for matter in never for line in matter_lines(matter, rulebook)]
    told = await tell_rows(wanted, rulebook, viewer, store)
    return lines + [line for each in told if each.denied for line in each.lines]
