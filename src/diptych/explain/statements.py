"""The statements of a translated request, as the service compiles them."""

from __future__ import annotations

from collections.abc import Iterator

from diptych.ask.nodes import Write
from diptych.ask.python_fields import extract, extract_watch
from diptych.ask.wish import WatchWish, WriteWish
from diptych.compile.dialect import Dialect
from diptych.compile.find import compile_find, compile_rows
from diptych.compile.plan import Bind, Plan, SlotBind
from diptych.compile.read import compile_reads
from diptych.compile.watch import compile_watch
from diptych.compile.write import compile_write
from diptych.engine.upsert import LOCKS
from diptych.explain.text import value_text
from diptych.explain.understood import BoundValues, Wanted
from diptych.model.model import Model
from diptych.policy.access import narrow, narrow_watch
from diptych.policy.bulk import reached
from diptych.policy.guards import add_guards
from diptych.policy.upserts import key_of_upsert, possible_writes


def statements(wanted: Wanted, model: Model, dialect: Dialect) -> Iterator[tuple[Plan, BoundValues]]:
    """All statements of a request, in their order, with the values of their slots; model code runs others."""
    if wanted.watch is not None:
        wish, values = wanted.watch
        yield watch_plan(wanted, wish, model, dialect), values
        return
    if wanted.reads[0].asks or not wanted.ops:
        yield read_plan(wanted, model, dialect), wanted.reads[1]
    for op, values in wanted.ops:
        if isinstance(op, WriteWish):
            yield from ((plan, values) for plan in write_plans(wanted, op.ask, model, dialect))


def read_plan(wanted: Wanted, model: Model, dialect: Dialect) -> Plan:
    """The one statement of all reads."""
    asks = [extract(ask, model.resources)[0] for ask in wanted.reads[0].asks]
    return compile_reads([narrow(ask, wanted.view) for ask in asks], model, dialect)


def write_plans(wanted: Wanted, write: Write, model: Model, dialect: Dialect) -> Iterator[Plan]:
    """The statements of a Write: of an upsert, the one that finds its row, and those of what it can become."""
    if write.rows is not None:
        where = reached(write, wanted.view)
        yield compile_rows(write.resource, where, write.rows.most, model, dialect, "UPDATE")
    if write.key and write.verb in ("upsert", "delete"):
        key = key_of_upsert(write, wanted.view)
        yield compile_find(key.resource, key.has, key.seen, model, dialect, LOCKS[write.keep])
    for part in possible_writes(write, model.resources):
        yield compile_write(add_guards(part, wanted.view), model, dialect).change


def watch_plan(wanted: Wanted, wish: WatchWish, model: Model, dialect: Dialect) -> Plan:
    """The statement of a subscription, which runs over one range of the feed after another."""
    whole, _ = extract_watch(wish.ask, model.resources)
    narrowed = narrow_watch(whole, wanted.view)
    rules = narrowed.seen, narrowed.deleted, narrowed.readable
    return compile_watch(narrowed.watch, *rules, len(wish.slots), model, dialect)


def parameter_texts(plan: Plan, values: BoundValues, dialect: Dialect) -> list[str]:
    """The parameters of a statement: the values that the request gives, or what else they are."""
    return [f"{dialect.placeholder}{number} = {_text(bind, values)}" for number, bind in enumerate(plan.binds, 1)]


def _text(bind: Bind, values: BoundValues) -> str:
    if isinstance(bind, SlotBind) and bind.slot < len(values):
        return value_text(values[bind.slot])
    return str(bind)
