"""Explains a request, stage by stage, as lines of text: its Asks, values, guards, price, and statements.

    explanation = Explanation(model, viewer, limits, sent)
    explanation.lines()                understood → guarded → priced → compiled, and the rules that decide
    await explanation.rows(store)      which rule decides about which row of a database

Writes run in a transaction that is rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pprint import pformat
from typing import Any

from diptych.ask.guarded import Guard
from diptych.ask.measures import Limits
from diptych.ask.nodes import Write
from diptych.ask.python_fields import PythonFields, extract, extract_watch
from diptych.ask.wish import WatchWish, WriteWish
from diptych.compile.dialect import POSTGRES, SQLITE, Dialect
from diptych.compile.plan import Plan
from diptych.compile.watch import BOUNDS
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.errors import Refusal
from diptych.explain.advice import advice
from diptych.explain.cost import cache_lines, cost_lines
from diptych.explain.over_limits import limit_refusal
from diptych.explain.rulebook import Rulebook
from diptych.explain.scope import matters_of
from diptych.explain.statements import read_plan, watch_plan, write_plans
from diptych.explain.text import lay, matter_lines
from diptych.explain.understood import Sent, Wanted, interpret
from diptych.explain.why import report_rows
from diptych.explain.writes import dry_run
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model
from diptych.model.rules.expr import FALSE
from diptych.policy.guards import add_guards
from diptych.policy.limits import Checks
from diptych.policy.upserts import possible_writes

_CLAUSES = r"\b(FROM|WHERE|ORDER BY|LIMIT)\b"
_DIALECTS = (SQLITE, POSTGRES)


def refusal_text(refusal: Refusal) -> str:
    faults = "".join(f"\n  {'.'.join(map(str, fault.path))}: {fault.message}" for fault in refusal.faults)
    return f"{refusal.code}: {refusal.message}{faults}"


class Explanation:
    """The explanation of one request of one viewer."""

    def __init__(self, model: Model, viewer: Viewer, limits: Limits, sent: Sent) -> None:
        self.model = model
        self.viewer = viewer
        self.limits = limits
        view = model.view(model.signature(viewer))
        self.rulebook = Rulebook(model, view)
        self.wanted, self.refusal = interpret(sent, model, view)

    def lines(self) -> Iterator[str]:
        """The stages, or why the request is refused; then the rules."""
        if self.refusal is None:
            yield from self._stages()
        else:
            yield f"Refused {refusal_text(self.refusal)}"
        yield "\nRules"
        matters = matters_of(self.wanted, self.rulebook)
        for matter in matters:
            yield from matter_lines(matter, self.rulebook, depth=1)
        if not matters:
            yield from lay("No rule applies to this request.", 1)

    async def rows(self, store: Store) -> list[str]:
        """Which rule decides, row by row; writes run in a transaction that is rolled back."""
        lines = ["\nRows"]
        for entry in await report_rows(self.wanted, self.rulebook, self.viewer, store):
            lines += ["    " + line for line in entry.lines]
        ops = self.wanted.ops
        if self.refusal is None and ops and all(isinstance(wish, WriteWish) for wish, _ in ops):
            met = await dry_run(self.wanted, self.viewer, Engine(self.model, store, Checks(self.limits)))
            lines.append(f"\nRefused {refusal_text(met)}" if met else "\nThe change would be made.")
        return lines

    def _stages(self) -> Iterator[str]:
        wanted = self.wanted
        if wanted.watch is not None:
            yield from self._watch(*wanted.watch)
            return
        wish, values = wanted.reads
        for index, ask in enumerate([*wish.asks, *(op.ask for op, _ in wanted.ops)]):
            yield f"Ask {index}\n{pformat(ask, width=110)}\n"
        if wish.asks or not wanted.ops:
            yield f"Values {values}"
        for op, bound in wanted.ops:
            values = ["a new id" if source.make else value for source, value in zip(op.sources, bound, strict=True)]
            yield f"Values {values}"
            if isinstance(op, WriteWish):
                yield from self._guards(op.ask)
        yield from self._cost()
        if over := limit_refusal(wanted, self.viewer, self.limits):
            yield f"Refused {refusal_text(over)}"
        yield from cache_lines(wanted)
        for line in advice(wish.asks, self.model.resources, wanted.view):
            yield from lay(f"Advice {line}", 0)
        yield from self._reads(wanted)
        for op, _ in wanted.ops:
            if isinstance(op, WriteWish):
                yield from self._writes(op.ask)

    def _writes(self, write: Write) -> Iterator[str]:
        for dialect in _DIALECTS:
            for plan in write_plans(self.wanted, write, self.model, dialect):
                yield from _plan_lines(plan, dialect)

    def _watch(self, wish: WatchWish, values: list[Any]) -> Iterator[str]:
        """The stages of a subscription. Its statement runs over one range of the feed after another."""
        yield f"Ask 0\n{pformat(wish.ask, width=110)}\n"
        yield f"Values {values}"
        yield from self._cost()
        _, finishes = extract_watch(wish.ask, self.model.resources)
        yield from _python_lines([finish for finish in finishes if finish])
        slots = len(wish.slots)
        for dialect in _DIALECTS:
            yield from _plan_lines(watch_plan(self.wanted, wish, self.model, dialect), dialect)
            ends = ", ".join(f"slot {slots + number} = {name}" for number, name in enumerate(BOUNDS))
            yield f"  for a range of the feed: {ends}"

    def _reads(self, wanted: Wanted) -> Iterator[str]:
        asks = wanted.reads[0].asks
        if not asks and wanted.ops:
            return
        parts = [extract(ask, self.model.resources) for ask in asks]
        yield from _python_lines([finish for _, finish in parts if finish])
        for dialect in _DIALECTS:
            yield from _plan_lines(read_plan(wanted, self.model, dialect), dialect)

    def _cost(self) -> Iterator[str]:
        for line in cost_lines(self.wanted, self.model.resources, self.limits):
            yield from lay(line, 0)

    def _guards(self, write: Write) -> Iterator[str]:
        """The guards of a Write, in the order in which their failure is reported."""
        for part in possible_writes(write, self.model.resources):
            title = "Guard  " if part is write else f"Guard of {'each ' * (write.rows is not None)}{part.verb}  "
            for guard in add_guards(part, self.wanted.view).guards:
                yield from lay(f"{title}{self._guard_text(guard, write.resource)}", 0)

    def _guard_text(self, guard: Guard, resource: str) -> str:
        sides = [("the row as it is", guard.was), ("the row as it becomes", guard.becomes)]
        rules = [f"{side}: {self.rulebook.say(expr, resource)}" for side, expr in sides if expr != FALSE]
        return f"{f'{guard.why.name} {guard.field}'.rstrip()}, {'; or '.join(rules) or 'never'}"


def _plan_lines(plan: Plan, dialect: Dialect) -> Iterator[str]:
    yield f"\n{dialect.name}\n" + re.sub(_CLAUSES, r"\n  \1", plan.sql)
    yield "  binds " + ", ".join(f"{dialect.placeholder}{n} = {bind}" for n, bind in enumerate(plan.binds, 1))


def _python_lines(finishes: list[PythonFields]) -> Iterator[str]:
    """One line for each field that Python computes after the statement."""
    tasks = {task.field: task.resource.name for finish in finishes for task in finish.tasks()}
    for field, resource in tasks.items():
        needs = ", ".join(field.needs) or "nothing"
        how = "once, for all rows" if field.batch else "for each row"
        yield f"Python {resource}.{field.name} is computed from {needs}, {how}"
