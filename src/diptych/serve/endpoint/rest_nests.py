"""Nested writes in REST: a body with relations becomes several writes, which share plans with all of their shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from diptych.api.nest import Unfolder, follows
from diptych.api.nested_row import NestedRow
from diptych.ask.measures import RequestMeasures
from diptych.ask.slots import RawValue
from diptych.ask.wish import Follows
from diptych.engine.known import KnownRequests
from diptych.engine.refusals import joined, moved
from diptych.engine.write import WriteEngine
from diptych.engine.write_op import PreparedWrite, WriteOp
from diptych.errors import Code, Fault, Path, Refusal
from diptych.identity.viewer import Caller
from diptych.model.nesting import NestTaking
from diptych.model.view import View

Ready = tuple[PreparedWrite, Mapping[str, Any]]
"""A prepared row, and its inputs."""
Head = Callable[[NestedRow, Follows, int], Ready]
"""Prepares the row that the request is about; gets what follows it, and the number of levels."""


class RestNests:
    """Plans the nested writes of one service; `known` caches the plans of their rows."""

    def __init__(self, write_engine: WriteEngine, known: KnownRequests[PreparedWrite]) -> None:
        self.write_engine = write_engine
        self.engine = write_engine.engine
        self._known = known
        self._relations = {name: frozenset(resource.ways) for name, resource in self.engine.model.resources.items()}

    def is_nested(self, resource: str, body: Any) -> bool:
        """Does a body contain relations?"""
        return type(body) is dict and not self._relations[resource].isdisjoint(body)

    def plan(self, verb: NestTaking, resource: str, body: Any, caller: Caller, head: Head) -> tuple[WriteOp, ...]:
        """The writes of a body; one Refusal has the faults of all its rows."""
        view = self.engine.model.view(caller.signature)
        unfolder = Unfolder(view, self.engine.limits, own_paths=True)
        rows, position = unfolder.unfold(verb, view.resources[resource], RawValue(body, ("body",)))
        after = follows(rows, position)
        return self.ops(rows, position, view, lambda row: head(row, after, unfolder.depth), unfolder.faults)

    def ops(
        self,
        rows: Sequence[NestedRow],
        position: int,
        view: View,
        head: Callable[[NestedRow], Ready],
        faults: Sequence[Fault] = (),
    ) -> tuple[WriteOp, ...]:
        """The writes of rows; `head` prepares the one at this position, which is answered. One Refusal has all faults,
        with those that are known already."""
        ops: list[WriteOp] = []
        refusals = [Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)] if faults else []
        ready = self._ready(view)
        for index, row in enumerate(rows):
            more = len(rows) - 1 - index
            try:
                if index == position:
                    prepared, inputs = head(row)
                else:
                    prepared, inputs = ready(row), row.inputs
                ops.append(WriteOp(prepared, inputs, (), row.place, "", more, index != position))
            except Refusal as refusal:
                refusals.append(moved(refusal, row.place))
                if refusal.code is not Code.BAD_USER_INPUT:  # it takes precedence over faults of the bodies
                    raise refusals[-1] from None
        if refusals:
            raise joined([*refusals, *_refusals(ops)])
        return tuple(ops)

    def _ready(self, view: View) -> Callable[[NestedRow], PreparedWrite]:
        """Prepares rows of one request; a row is often like the one before."""
        like: NestedRow | None = None
        before: tuple[Any, PreparedWrite] | None = None

        def ready(row: NestedRow) -> PreparedWrite:
            nonlocal before, like
            if before is not None and like is not None and row.like is like:
                return before[1]
            key = _key(row)
            if before is None or before[0] != key:
                before = (key, self.prepared(row, view))
            like = row.like
            return before[1]

        return ready

    def prepared(self, row: NestedRow, view: View, measures: RequestMeasures | None = None) -> PreparedWrite:
        """The write of a row; one that is a request by itself has measures."""
        key = (*_key(row), measures and measures.operation, view.signature)
        known = self._known.get(key)
        if known is None:
            with self._known.planning():
                known = self.write_engine.prepare(row.wish(view), row.inputs, view, measures)
            self._known.keep(key, known, shape=key[2:4])
        return known


def _key(row: NestedRow) -> tuple[Any, ...]:
    """Everything of a row but its values."""
    body = row.values.value
    version = None if row.version is None else row.version.value
    return (
        row.verb,
        row.resource.resource.name,
        frozenset([(name, value is None) for name, value in body.items()]) if type(body) is dict else None,
        len(row.values.path),
        row.id is None,
        None if version is None else type(version) is list,
        row.within and row.within[:2],
        row.by,
        row.later,
        row.shape,
    )


def _refusals(ops: Iterable[WriteOp]) -> Iterator[Refusal]:
    """The faults of the values of prepared writes."""
    for op in ops:
        try:
            op.prepared.binder(op.inputs)
        except Refusal as refusal:
            yield moved(refusal, op.prefix)


def under(op: WriteOp, path: Path, prefix: Path, step: str) -> WriteOp:
    """A write of a body that is itself inside another one."""
    return replace(op, path=path, prefix=(*prefix, *op.prefix[1:]), step="" if op.part else step)
