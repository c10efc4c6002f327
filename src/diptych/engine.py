"""The whole pipeline on one page.

    wire → api → ask → check → compile → db → bytes → wire

`ready` is the cold half: rules are joined to the Asks, their shape is held against the limits, and they are
compiled into one statement. `answer` is the hot half: values are bound and priced, the statement runs, and the
bytes that come back go to the wire as they are. Plans are kept by what recognises them: the Asks themselves,
which hold no values, and the signature of the viewer's role.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diptych.ask.asked import Asked
from diptych.ask.cursor import binding, derive, key_scalars, unseal, where_slots
from diptych.ask.nodes import Page, Read
from diptych.ask.slots import Source
from diptych.ask.split import Finish, split
from diptych.ask.walk import reads
from diptych.check.access import narrow
from diptych.check.cost import Cost, Price, cost_of
from diptych.check.limits import Checks
from diptych.check.public import age_of
from diptych.check.values import Binder
from diptych.compile.plan import Plan
from diptych.compile.read import compile_reads
from diptych.db.store import Store
from diptych.errors import Code
from diptych.finish import finish
from diptych.lru import Hashed, LRUCache, footprint
from diptych.meter import Meter
from diptych.model.expr import Slot
from diptych.model.model import Model
from diptych.model.roles import NOBODY, Viewer
from diptych.model.scalars import Scalar
from diptych.model.view import View
from diptych.quota import ReplayQuota

_NO_KEYS: Mapping[int, bytes] = {}
_PLAN_BYTES, _LEAST = 16 << 10, 4 << 20
"""Bytes that a plan may take on average, and bytes of a cache of few plans."""
FINISH = 8 << 10
"""Bytes that the types of an answer take which Python has a part in."""
_KEYS, _KEY_BYTES, _LONGEST_VALUES = 4_096, 8 << 20, 256
_VIEWER, _PER_CHARACTER = 1_000, 12
"""Bytes of a viewer, and of a character by which it is told from others."""


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
    pages: tuple[Paged, ...]
    finish: tuple[Finish | None, ...] | None = None
    """What Python does with each answer, if it has a part in any."""
    max_age: int = 0
    """For how many seconds anyone may keep the answers; 0 is never."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.plan.size + sum(len(paged.binding) for paged in self.pages) + FINISH * (self.finish is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A request of a known shape: its plan, and how its values are got. No price if that is known to be fair."""

    plan: Plan
    price: Price | None
    pages: tuple[Paged, ...]
    binder: Binder
    cost: Cost
    """The same price in any case, for whoever wants to know it."""
    asked: Asked | None = None
    """What is asked, but for who asks, and the price."""
    finish: tuple[Finish | None, ...] | None = None
    max_age: int = 0

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        prepared = Prepared(self.plan, self.pages, self.finish)
        return prepared.size + self.binder.size


def without_viewer(asked: Asked | None) -> Asked | None:
    """What is asked, to be kept with a plan: it must not keep the viewer who asked first."""
    return None if asked is None else replace(asked, viewer=NOBODY)


def known_sizes(asks: Sequence[Read], binder: Binder) -> dict[int, int]:
    """The page sizes that stand in the request's own text, by their slots."""
    slots = (read.page.size.index for read in reads(asks) if read.page is not None)
    return {slot: binder.fixed[slot] for slot in slots if binder.is_fixed(slot)}


class Engine:
    """One model on one store."""

    def __init__(self, model: Model, store: Store, checks: Checks, secret: bytes = b"", plans: int = 1_000,
                 meter: Meter | None = None, quota: ReplayQuota | None = None) -> None:  # fmt: skip
        self.model = model
        self.store = store
        self.checks = checks
        self.limits = checks.limits
        self.secret = secret
        self.plan_cache = plans
        self.plans: LRUCache[Prepared] = self.cache("plans of reads")
        self.meter = meter or Meter()
        self.quota = quota or ReplayQuota()
        self._keys: LRUCache[bytes] = LRUCache("keys of cursors", _KEYS, _KEY_BYTES)

    def cache(self, name: str) -> LRUCache[Any]:
        """A new cache of as many plans as the settings allow, or of what belongs to them."""
        return LRUCache(name, self.plan_cache, max(_LEAST, self.plan_cache * _PLAN_BYTES), second_sight=True)

    def prepare(
        self, asks: tuple[Read, ...], view: View, sizes: Mapping[int, int], place: bool = False
    ) -> Prepared:
        """check → compile: the plan of a request, made once. `sizes` are its page sizes that are known beforehand."""
        key = Hashed((asks, view.signature, tuple(sizes.items()) if self.store.dialect.sees_limits else (), place))
        found = self.plans.get(key)
        if found is None:
            parts = [split(ask, self.model.resources) for ask in asks]
            narrowed = [narrow(ask, view) for ask, _ in parts]
            rest = (*(each for _, each in parts), *([None] if place else []))
            plan = compile_reads(narrowed, self.model, self.store.dialect, sizes, place=place)
            age = age_of(asks, view).seconds
            found = Prepared(plan, tuple(self.pages(asks)), rest if any(rest) else None, age)
            self.plans.put(key, found, found.size)
        return found

    def ready(
        self, asks: tuple[Read, ...], slots: Sequence[Slot], sources: Sequence[Source], view: View, code: Code,
        *, inputs: Mapping[str, Any] | None = None, asked: Asked | None = None, place: bool = False,
    ) -> Ready:  # fmt: skip
        """The same for one shape of requests, whose values come from the sources; `code` is what a fault is called.

        It is priced before it is compiled: with the values of the first such request, if there are `inputs`. Where
        every page size stands in the request's own text, that holds for all. With `place`, the last answer is the end
        of the feed in the snapshot of the others.
        """
        self.checks.shape(asked, asks)
        binder = Binder(slots, sources, self.limits, code)
        cost = cost_of(asks, self.model.resources)
        sizes = known_sizes(asks, binder)
        is_fixed = len(sizes) == sum(read.page is not None for read in reads(asks))
        if asked is not None and (is_fixed or inputs is not None):
            values = binder.fixed if is_fixed else binder(inputs or {})
            self.checks.price(asked, asked.viewer, cost.price(values))
        prepared = self.prepare(asks, view, sizes, place)
        price = None if is_fixed and not self.checks.has_more else cost.price
        kept = without_viewer(asked)
        return Ready(prepared.plan, price, prepared.pages, binder, cost, kept, prepared.finish, prepared.max_age)

    def answer(
        self, ready: Ready, inputs: Mapping[str, Any], viewer: Viewer
    ) -> Awaitable[Sequence[bytes | None]]:
        """values → price → db: the bytes of every Ask, once they are awaited."""
        values = ready.binder(inputs)
        if ready.price is not None:
            self.checks.price(ready.asked, viewer, ready.price(values))
        keys = self.cursor_keys(ready.pages, ready.binder, values, viewer)
        answers = self.store.run(ready.plan, ready.plan.parameters(values, viewer, keys))
        return answers if ready.finish is None else self._finished(ready.finish, answers)

    async def _finished(
        self, todo: Sequence[Finish | None], answers: Awaitable[Sequence[bytes | None]]
    ) -> Sequence[bytes | None]:
        """The answers, with what Python computes in them."""
        return await finish(todo, await answers, self.model.resources)

    def pages(self, asks: Sequence[Read]) -> list[Paged]:
        """The lists of a request that make cursors or take one."""
        return [
            Paged(page, binding(read), where_slots(read.where), key_scalars(read, self.model.resources[read.resource]))
            for read in reads(asks)
            if (page := read.page) is not None and (read.take == "page" or page.after or page.before)
        ]

    def cursor_key(self, paged: Paged, values: Sequence[Any], viewer: Viewer) -> bytes:
        """The key that signs the cursors of one list: of this filter with its values, for this viewer."""
        bound = repr([values[slot] for slot in paged.where]) if paged.where else ""
        if len(bound) > _LONGEST_VALUES:  # what a client makes long is not kept
            return derive(self.secret, paged.binding, bound.encode(), self._seen(viewer))
        key = (paged.binding, bound, viewer)
        found = self._keys.get(key)
        if found is None:
            seen = self._seen(viewer)
            found = derive(self.secret, paged.binding, bound.encode(), seen)
            self._keys.put(key, found, footprint(key[:2]) + _VIEWER + _PER_CHARACTER * len(seen))
        return found

    def _seen(self, viewer: Viewer) -> bytes:
        """What of a viewer binds its cursors."""
        return repr((viewer.id, self.model.signature(viewer).stable(), *viewer.all_known())).encode()

    def cursor_keys(
        self, pages: Sequence[Paged], binder: Binder, values: list[Any], viewer: Viewer
    ) -> Mapping[int, bytes]:
        """The key of every page's cursors, by the slot of its size; cursors that were given are opened with it."""
        if not pages:
            return _NO_KEYS
        keys = {}
        for paged in pages:
            keys[paged.page.size.index] = key = self.cursor_key(paged, values, viewer)
            for slot in (paged.page.after, paged.page.before):
                if slot is not None:
                    try:
                        values[slot.index] = unseal(key, values[slot.index], paged.keys)
                    except ValueError as error:
                        raise binder.fault(slot.index, str(error)) from None
        return keys
