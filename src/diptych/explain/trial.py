"""Changes, tried: made in a transaction that is always undone, to see what the service itself would answer."""

from __future__ import annotations

from functools import partial

from diptych.ask.asked import Asked
from diptych.ask.wish import WriteWish
from diptych.engine import Engine
from diptych.errors import Refusal
from diptych.explain.wanted import Wanted
from diptych.model.roles import Viewer
from diptych.steps import Deed, steps
from diptych.transact import Transactor


async def tried(wanted: Wanted, viewer: Viewer, engine: Engine) -> Refusal | None:
    """The Refusal that the changes of a request meet, if they meet one.

    Code of the model's own is not tried: what it does outside of the database could not be undone.
    """
    transactor = Transactor(engine)
    deeds: list[Deed] = []
    for (wish, _), inputs in zip(wanted.deeds, wanted.inputs, strict=True):
        assert isinstance(wish, WriteWish)
        deeds.append(Deed(transactor.ready(wish, inputs, wanted.view), inputs))
    session = await engine.store.session()
    try:
        found = transactor.bind(deeds, viewer)
        engine.checks.price(Asked("rest", viewer), viewer, sum(bound.price for bound in found))
        for bound in found:
            await session.drive(partial(steps, bound, engine.store.dialect))
    except Refusal as refusal:
        return refusal
    finally:
        await session.end()
    return None
