"""The read pipeline on one page.

    wire → api → ask → policy → compile → db → bytes → wire

`prepare` is the cold half: the Asks are checked against the limits, joined with the access rules, and compiled into
one statement. `answer` is the hot half: values are bound and priced, the statement runs, and the bytes that come back
go to the wire as they are; a page by itself is put together first (`page`). Plans are cached by the Asks, which hold no
values, and the signature of the viewer's role.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from diptych.ask.cursor import binding, bound_slots, derive, key_scalars, unseal
from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Read
from diptych.ask.python_fields import PythonFields, extract
from diptych.ask.slots import SIZE
from diptych.ask.walk import reads
from diptych.ask.wish import Wish
from diptych.compile.plan import PageLayout
from diptych.compile.read import compile_reads
from diptych.db.feed import Run
from diptych.db.store import Store
from diptych.engine.page import PageParts, page_parts, put_together
from diptych.engine.page_sizes import fixed_sizes, page_slots
from diptych.engine.plan_cache import PlanCache
from diptych.engine.python_fields import finish
from diptych.engine.rate_limiter import SPENDER, RateLimiter
from diptych.engine.read_plan import ROW, Paged, PlansBySize, PreparedRead, ReadPlan, Row, without_viewer
from diptych.engine.usage import Usage
from diptych.errors import Code, Refusal
from diptych.fair.eager import ready
from diptych.fair.idempotency_quota import IdempotencyQuota
from diptych.fair.planning_budget import PlanningBudget
from diptych.lru import LRUCache, footprint
from diptych.model.declare.roles import Viewer
from diptych.model.describe.deprecated_names import deprecated_names
from diptych.model.model import Model
from diptych.model.view import View
from diptych.policy.access import narrow
from diptych.policy.cache_age import max_age
from diptych.policy.cost import cost_of
from diptych.policy.deprecations import AnyWish, Uses, uses_of
from diptych.policy.limits import Checks
from diptych.policy.values import Binder

_NO_KEYS: Mapping[int, bytes] = {}
_PLAN_BYTES, _LEAST = 16 << 10, 4 << 20
"""Average bytes allowed for a plan, and the least bytes of a plan cache."""
_KEYS, _KEY_BYTES, _LONGEST_VALUES = 4_096, 8 << 20, 256
_VIEWER, _PER_CHARACTER = 1_000, 12
"""Bytes of a viewer in a key, and of each character of what identifies it."""


def _wake_nobody() -> None:
    """Nothing runs in the background here."""


def _nothing(price: int) -> None:
    """Prices are not counted."""


class Engine:
    """Runs reads of one model on one store."""

    def __init__(
        self,
        model: Model,
        store: Store,
        checks: Checks,
        secret: bytes = b"",
        plans: int = 1_000,
        planning_budget: PlanningBudget | None = None,
        quota: IdempotencyQuota | None = None,
    ) -> None:
        self.model = model
        self.store = store
        self.checks = checks
        self.limits = checks.limits
        self.secret = secret
        self.plan_cache = plans
        self._plans: PlanCache[ReadPlan] = self.plans("plans of reads")
        self.planning_budget = planning_budget or PlanningBudget()
        self.quota = quota or IdempotencyQuota()
        self._keys: LRUCache[bytes] = LRUCache("keys of cursors", _KEYS, _KEY_BYTES)
        self.note_price: Callable[[int], None] = _nothing
        """Counts the price of each read."""
        self.wake_jobs: Callable[[], None] = _wake_nobody
        """Called after a job was queued, so that it runs soon."""
        self.usage = Usage(store) if deprecated_names(model) else None
        """Counts of what is deprecated; None if nothing is."""
        self.run_audited: Run = store.run
        """Runs a statement over the audit log, which has all that was committed before (`audit/appender.py`)."""
        self.rates: RateLimiter | None = None
        """Limits by rate; None if there are none."""
        self.reader: Run | None = None
        """Runs reads on replicas; None if there are none."""

    def cache(self, name: str, entry_bytes: int = _PLAN_BYTES) -> LRUCache[Any]:
        """A new cache, of as many plans or prepared requests as the settings allow."""
        return LRUCache(name, self.plan_cache, max(_LEAST, self.plan_cache * entry_bytes), second_sight=True)

    def plans(self, name: str) -> PlanCache[Any]:
        """A new cache of plans for this store."""
        return PlanCache(self.cache(name), sees_limits=self.store.dialect.sees_limits)

    def plan_reads(
        self, asks: tuple[Read, ...], view: View, sizes: Mapping[int, int], with_change_cursor: bool = False
    ) -> ReadPlan:
        """policy → compile: the cached plan of a request. `sizes` are the page sizes that are known beforehand."""

        def compile() -> ReadPlan:
            parts = [extract(ask, self.model.resources) for ask in asks]
            narrowed = [narrow(ask, view) for ask, _ in parts]
            rest = (*(python_fields for _, python_fields in parts), *([None] if with_change_cursor else []))
            dialect = self.store.dialect
            plan = compile_reads(narrowed, self.model, dialect, sizes, with_change_cursor=with_change_cursor)
            whole = None
            if plan.page is not None:
                whole = functools.partial(compile_reads, narrowed, self.model, dialect, sizes, as_columns=False)
            age = max_age(asks, view).seconds
            versions = any(self.model.resources[read.resource].versions_of for read in reads(asks))
            return ReadPlan(plan, tuple(self.pages(asks)), rest if any(rest) else None, age, versions, whole)

        return self._plans.get((asks, with_change_cursor), view, sizes, compile)

    def prepare(
        self,
        wish: Wish,
        view: View,
        code: Code,
        inputs: Mapping[str, Any] | None = None,
        measures: RequestMeasures | None = None,
        *,
        with_change_cursor: bool = False,
    ) -> PreparedRead:
        """policy → compile for one shape of requests, `code` is the error code of a bad value.

        The request is priced before it is compiled, with the values in `inputs` if there are any. If every page size
        is a literal, that price holds for all requests of the shape. `with_change_cursor` adds a last answer: the end
        of the change feed in the same snapshot.
        """
        asks = wish.asks
        self.checks.shape(measures, asks)
        binder = Binder(wish.slots, wish.sources, self.limits, code)
        cost = cost_of(asks, self.model.resources)
        page_sizes = page_slots(asks)
        sizes = fixed_sizes(page_sizes, binder)
        is_fixed = len(sizes) == len(page_sizes)
        if measures is not None and (is_fixed or inputs is not None):
            values = binder.fixed if is_fixed else binder(inputs or {})
            self.checks.price(measures, measures.viewer, cost.price(values), cost.price, values)
        planned = self.plan_reads(asks, view, sizes, with_change_cursor)
        price = None if is_fixed and not self.checks.has_more else cost.price
        by_size = None
        if self.store.dialect.sees_limits and not is_fixed:
            slots = tuple(slot for slot in page_sizes if slot not in sizes and wish.slots[slot].scalar is SIZE)

            def compile(sent: Mapping[int, int]) -> ReadPlan:
                with self.planning_budget.planning(goes_on=True):
                    return self.plan_reads(asks, view, {**sizes, **sent}, with_change_cursor)

            by_size = PlansBySize(slots, compile) if slots else None
        fixed = cost.price(binder.fixed) if price is None else 0
        return PreparedRead(planned, price, binder, cost, without_viewer(measures), by_size, self.uses_of(wish), fixed)

    def charge(self, price: int, resources: Iterable[str]) -> None:
        """Charge the price of a request on these resources to its caller; a Refusal if that is over a rate."""
        if self.rates is not None and (spender := SPENDER.get()) is not None:
            spender.charge(price, resources)

    def uses_of(self, wish: AnyWish) -> Uses | None:
        """The deprecated parts of the API that a request uses; None if there are none."""
        return None if self.usage is None else uses_of(wish, self.model.resources)

    def answer(
        self, prepared: PreparedRead, inputs: Mapping[str, Any], viewer: Viewer
    ) -> Awaitable[Sequence[bytes | None]]:
        """bind → price → run: an awaitable of the bytes of every Ask."""
        return self._answers(*self._run(prepared, inputs, viewer), viewer)

    async def answer_list(
        self, prepared: PreparedRead, inputs: Mapping[str, Any], viewer: Viewer
    ) -> PageParts | bytes | None:
        """The answer to a prepared read of one page: its parts, or its bytes if the statement returns those."""
        return await self._list(*self._run(prepared, inputs, viewer), viewer)

    async def _list(
        self,
        planned: ReadPlan,
        values: Sequence[Any],
        keys: Mapping[int, bytes],
        columns: Awaitable[Sequence[bytes | None]],
        viewer: Viewer,
    ) -> PageParts | bytes | None:
        layout = planned.plan.page
        if layout is None or planned.finish is not None:
            (answer,) = await self._answers(planned, values, keys, columns, viewer)
            return answer
        try:
            return page_parts(layout, await columns, values[layout.size], keys[layout.size])
        except Refusal as refusal:
            (answer,) = await self._as_a_whole(refusal, planned, values, viewer, keys)
        return answer

    def _answers(
        self,
        planned: ReadPlan,
        values: Sequence[Any],
        keys: Mapping[int, bytes],
        answers: Awaitable[Sequence[bytes | None]],
        viewer: Viewer,
    ) -> Awaitable[Sequence[bytes | None]]:
        """The answers of a statement that was run: put together, and with their Python fields."""
        if planned.plan.page is not None:
            answers = self._put_together(planned, planned.plan.page, answers, values, viewer, keys)
        return answers if planned.finish is None else self._finished(planned.finish, answers)

    def _run(
        self, prepared: PreparedRead, inputs: Mapping[str, Any], viewer: Viewer
    ) -> tuple[ReadPlan, list[Any], Mapping[int, bytes], Awaitable[Sequence[bytes | None]]]:
        """bind → price → run: the plan, the values of its slots, the keys of its cursors, and its columns."""
        planned, values, keys, parameters = self._bind(prepared, inputs, viewer)
        run = self.run_audited if planned.audited else self.reader or self.store.run
        return planned, values, keys, run(planned.plan, parameters)

    def _bind(
        self, prepared: PreparedRead, inputs: Mapping[str, Any], viewer: Viewer
    ) -> tuple[ReadPlan, list[Any], Mapping[int, bytes], Sequence[Any]]:
        """bind → price: the plan, the values of its slots, the keys of its cursors, and what its statement binds."""
        values = prepared.binder(inputs)
        price = prepared.fixed_price
        if prepared.price is not None:
            price = prepared.price(values)
            self.checks.price(prepared.measures, viewer, price, prepared.cost.price, values)
        self.note_price(price)
        if self.rates is not None and prepared.measures is not None and (spender := SPENDER.get()) is not None:
            spender.charge(price, prepared.measures.resources)
        planned = prepared.planned
        if prepared.by_size is not None:
            planned = prepared.by_size.get(values, planned)
        keys = self.cursor_keys(planned.pages, prepared.binder, values, viewer) if planned.pages else _NO_KEYS
        return planned, values, keys, planned.plan.parameters(values, viewer, keys)

    def answer_now(
        self, prepared: PreparedRead, inputs: Mapping[str, Any], viewer: Viewer
    ) -> Row | Awaitable[Sequence[bytes | None]]:
        """As `answer`, but the bytes themselves where nothing has to be waited for."""
        planned, values, keys, parameters = self._bind(prepared, inputs, viewer)
        row = self._run_now(planned, parameters)
        if not isinstance(row, ROW):
            return self._answers(planned, values, keys, row, viewer)
        if planned.plan.page is None and planned.finish is None:
            return row
        return self._answers(planned, values, keys, ready(row), viewer)

    def answer_list_now(
        self, prepared: PreparedRead, inputs: Mapping[str, Any], viewer: Viewer
    ) -> PageParts | bytes | Awaitable[PageParts | bytes | None] | None:
        """As `answer_list`, but the page itself where nothing has to be waited for."""
        planned, values, keys, parameters = self._bind(prepared, inputs, viewer)
        row, layout = self._run_now(planned, parameters), planned.plan.page
        if not isinstance(row, ROW):
            return self._list(planned, values, keys, row, viewer)
        if layout is not None and planned.finish is None:
            try:
                return page_parts(layout, row, values[layout.size], keys[layout.size])
            except Refusal:
                pass  # it is too long in parts, and put together below
        return self._list(planned, values, keys, ready(row), viewer)

    def _run_now(self, planned: ReadPlan, parameters: Sequence[Any]) -> Row | Awaitable[Sequence[bytes | None]]:
        """The columns of a statement, or an awaitable of them."""
        if planned.audited:
            return self.run_audited(planned.plan, parameters)
        if self.reader is not None:
            return self.reader(planned.plan, parameters)
        row = self.store.run_now(planned.plan, parameters)
        return self.store.run_apart(planned.plan, parameters) if row is None else row

    async def _put_together(
        self,
        planned: ReadPlan,
        layout: PageLayout,
        columns: Awaitable[Sequence[bytes | None]],
        values: Sequence[Any],
        viewer: Viewer,
        keys: Mapping[int, bytes],
    ) -> Sequence[bytes | None]:
        """The one answer of a statement that returns the parts of a page."""
        try:
            return (put_together(layout, await columns, values[layout.size], keys[layout.size]),)
        except Refusal as refusal:
            return await self._as_a_whole(refusal, planned, values, viewer, keys)

    async def _as_a_whole(
        self,
        refusal: Refusal,
        planned: ReadPlan,
        values: Sequence[Any],
        viewer: Viewer,
        keys: Mapping[int, bytes],
    ) -> Sequence[bytes | None]:
        """A page whose parts are too long together, as one text."""
        if refusal.code is not Code.TOO_COMPLEX or planned.whole is None:
            raise refusal
        whole = planned.whole()
        return await (self.reader or self.store.run)(whole, whole.parameters(values, viewer, keys))

    async def _finished(
        self, todo: Sequence[PythonFields | None], answers: Awaitable[Sequence[bytes | None]]
    ) -> Sequence[bytes | None]:
        """The answers with their Python fields computed."""
        return await finish(todo, await answers, self.model.resources)

    def pages(self, asks: Sequence[Read]) -> list[Paged]:
        """The lists of a request that issue or accept cursors."""
        return [
            Paged(page, binding(read), bound_slots(read), key_scalars(read, self.model.resources))
            for read in reads(asks)
            if (page := read.page) is not None and (read.take in ("page", "groups") or page.after or page.before)
        ]

    def cursor_key(self, paged: Paged, values: Sequence[Any], viewer: Viewer) -> bytes:
        """The key that signs the cursors of one list, derived from its filter, the filter's values and the viewer."""
        bound = repr([values[slot] for slot in paged.where]) if paged.where else ""
        if len(bound) > _LONGEST_VALUES:  # the client decides the length: not cached
            return derive(self.secret, paged.binding, bound.encode(), self._seen(viewer))
        key = (paged.binding, bound, viewer)
        signing_key = self._keys.get(key)
        if signing_key is None:
            seen = self._seen(viewer)
            signing_key = derive(self.secret, paged.binding, bound.encode(), seen)
            self._keys.put(key, signing_key, footprint(key[:2]) + _VIEWER + _PER_CHARACTER * len(seen))
        return signing_key

    def _seen(self, viewer: Viewer) -> bytes:
        """The part of a viewer that its cursors are bound to."""
        return repr((viewer.id, self.model.signature(viewer).stable(), *viewer.all_known())).encode()

    def cursor_keys(
        self, pages: Sequence[Paged], binder: Binder, values: list[Any], viewer: Viewer
    ) -> Mapping[int, bytes]:
        """The cursor key of every page, by the slot of its size; cursors in the request are verified and decoded."""
        keys = {}
        for paged in pages:
            page = paged.page
            keys[page.size.index] = key = self.cursor_key(paged, values, viewer)
            for slot in (page.after, page.before):
                if slot is not None:
                    try:
                        values[slot.index] = unseal(key, values[slot.index], paged.keys)
                    except ValueError as error:
                        raise binder.fault(slot.index, str(error)) from None
        return keys
