"""The whole pipeline on one page.

    wire → api → ask → check → compile → db → bytes → wire

`prepare` is the cold half: rules are joined to the Asks, their shape is held against the limits, and they are
compiled into one statement. `answer` is the hot half: values are bound and priced, the statement runs, and the
bytes that come back go to the wire as they are. Plans are kept by what recognises them: the Asks themselves,
which hold no values, and the signature of the viewer's role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diptych.ask.cursor import binding, derive, key_scalars, unseal, where_slots
from diptych.ask.nodes import Ask, Page, Read
from diptych.ask.slots import Source
from diptych.ask.walk import reads
from diptych.check.access import narrow
from diptych.check.cost import Limits, Price, check_price, check_shape, price_of
from diptych.check.values import bind
from diptych.compile.plan import Plan
from diptych.compile.read import compile_reads
from diptych.db.store import Store
from diptych.errors import Code, Fault, Refusal
from diptych.model.expr import Slot
from diptych.model.model import Model
from diptych.model.roles import Viewer
from diptych.model.scalars import Scalar
from diptych.model.view import View
from diptych.recall import Recall


@dataclass(frozen=True, slots=True, eq=False)
class Paged:
    """A page of an Ask: what its cursors are bound to, and the slots that may hold one."""

    page: Page
    binding: bytes
    where: tuple[int, ...]
    keys: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A plan with all that is needed to run it again."""

    plan: Plan
    price: Price
    pages: tuple[Paged, ...]


class Engine:
    """One model on one store."""

    def __init__(self, model: Model, store: Store, limits: Limits, secret: bytes = b"", plans: int = 1_000) -> None:
        self.model = model
        self.store = store
        self.limits = limits
        self.secret = secret
        self.plans: Recall[Prepared] = Recall(plans)

    def prepare(self, asks: tuple[Ask, ...], view: View) -> Prepared:
        """check → compile: the plan of a request, made once."""
        key = (asks, view.signature)
        found = self.plans.get(key)
        if found is None:
            check_shape(asks, self.limits)
            narrowed = [narrow(ask, view) for ask in asks]
            plan = compile_reads(narrowed, self.model, self.store.dialect)
            found = Prepared(plan, price_of(asks), tuple(self._pages(asks)))
            self.plans.put(key, found)
        return found

    async def answer(
        self, prepared: Prepared, slots: Sequence[Slot], sources: Sequence[Source], inputs: Mapping[str, Any],
        viewer: Viewer, code: Code,
    ) -> Sequence[bytes | None]:  # fmt: skip
        """values → price → db: the bytes of every Ask. `code` is what a faulty value is called here."""
        values = bind(slots, sources, inputs, self.limits, code)
        check_price(prepared.price(values), self.limits)
        keys = self._cursor_keys(prepared.pages, sources, values, viewer, code) if prepared.pages else {}
        return await self.store.run(prepared.plan, prepared.plan.parameters(values, viewer.id, keys))

    def _pages(self, asks: Sequence[Read]) -> list[Paged]:
        """The lists of a request that make cursors or take one."""
        return [
            Paged(page, binding(read), where_slots(read.where), key_scalars(read, self.model.resources[read.resource]))
            for read in reads(asks)
            if (page := read.page) is not None and (read.take == "page" or page.after or page.before)
        ]

    def _cursor_keys(
        self, pages: Sequence[Paged], sources: Sequence[Source], values: list[Any], viewer: Viewer, code: Code
    ) -> Mapping[int, bytes]:
        """The key of every page's cursors, by the slot of its size; cursors that were given are opened with it."""
        signature = repr(self.model.signature(viewer)).encode()
        keys = {}
        for paged in pages:
            bound = repr([values[slot] for slot in paged.where]).encode()
            key = derive(self.secret, paged.binding, bound, signature, repr(viewer.id).encode())
            keys[paged.page.size.index] = key
            for slot in (paged.page.after, paged.page.before):
                if slot is not None:
                    try:
                        values[slot.index] = unseal(key, values[slot.index], paged.keys)
                    except ValueError as error:
                        fault = Fault(sources[slot.index].place, str(error))
                        raise Refusal(code, "Some values are not valid.", [fault]) from None
        return keys
