"""The steps of a move, from one database to another."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from diptych.errors import StartError
from diptych.model.model import Model
from diptych.move.postgres_values import decode_image
from diptych.move.side import Clash, Head, Row, Side, StoredChange, chunks

_CHUNK = 2_000
"""Rows that are read and written at a time."""
_LITTLE = 200
"""Changes that are left to the switch, at most, if the source is not written faster than it is followed."""
_ROUNDS = 50
"""Rounds of following before the switch comes anyway."""
Progress = Callable[[str, int, int], None]
"""Called for each chunk: what is copied or verified, how many rows are done, and of how many."""


class Moved(NamedTuple):
    """The result of a move: how many rows and changes it has copied."""

    rows: int
    changes: int
    held_up: float
    """Seconds for which writers were held up; 0 without a switch."""


class MoveRun:
    """A move of the data of a model from one database to another; `run` may be called again after an interruption."""

    def __init__(self, model: Model, source: Side, target: Side, progress: Progress) -> None:
        self.model, self.source, self.target, self.progress = model, source, target, progress
        self.tables = [resource.table for resource in model.resources.values()]
        stored = {
            resource.table: [field.name for field in resource.fields.values() if field.stored]
            for resource in model.resources.values()
        }
        self._place_of_id = {table: names.index("id") for table, names in stored.items()}
        self._suspects: dict[str, set[str]] = {table: set() for table in self.tables}
        """Ids of rows that changed since they were verified."""

    async def check(self, *, text_only: bool) -> int:
        """Refuse a source with values that the target cannot take; gives the number of its rows."""
        faults = await self.source.faults(text_only)
        if faults:
            listed = "".join(f"\n- {fault}" for fault in faults)
            raise StartError(f"The source cannot be moved as it is; nothing was changed.{listed}")
        return sum([await self.source.count(table) for table in self.tables])

    async def run(self, *, switch: bool) -> Moved:
        """Copy, follow and verify; with `switch`, the source takes no more writes afterwards."""
        await self._begin()
        for table in self.tables:
            await self._copy(table)
        await self._copy_audit()
        await self._follow_closely()
        rows = sum([await self._verify(table) for table in self.tables])
        changes = await self._verify_feed()
        await self._follow_closely()
        held_up = await self._switch() if switch else 0.0
        return Moved(rows, changes, held_up)

    async def finish(self) -> None:
        """Finish a move that was interrupted after its switch."""
        await self.target.release()

    async def _begin(self) -> None:
        """Note where the feed is before the first row is read; or see that an earlier run can go on."""
        state, head = await self.target.state(), await self.source.head()
        if not state:
            if not await self.target.is_empty():
                raise StartError(f"{self.target.name} is not empty; a move needs a database of its own.")
            await self.target.prepare()
        else:
            await self.target.suspend()
        if "followed" not in state:
            begin = {"source": head.feed, "followed": str(head.position), "feed": str(max(head.oldest - 1, 0))}
            await self.target.put_changes([], begin)
            return
        if state["source"] != head.feed:
            raise StartError(f"{self.target.name} holds a move of another database that is not finished.")
        if int(state["followed"]) < head.oldest - 1:
            raise StartError(
                f"The feed of {self.source.name} no longer has the changes since the move began; "
                f"empty {self.target.name}, and begin anew."
            )

    async def _copy(self, table: str) -> None:
        state, total = await self.target.state(), await self.source.count(table)
        after, done = json.loads(state.get(f"copied {table}", "null")), int(state.get(f"rows {table}", "0"))
        if after is True:
            return
        replaces, tries = False, 0
        while rows := await self.source.rows(table, after, _CHUNK):
            last, many = self._id(table, rows[-1]), done + len(rows)
            ids = [str(self._id(table, row)) for row in rows] if replaces else []
            try:
                await self.target.put(
                    table, ids, rows, {f"copied {table}": json.dumps(last), f"rows {table}": str(many)}
                )
            except Clash:
                replaces, tries = True, tries + 1
                if tries > _ROUNDS:
                    raise
                await self._follow_on()  # it brings rows that are not copied yet, too
                continue
            after, done, tries = last, many, 0
            self.progress(f"Copying {table}", done, total)
        await self.target.put(table, (), (), {f"copied {table}": "true"})

    async def _copy_audit(self) -> None:
        """Take over the entries of the audit log that the target has not yet."""
        after = int((await self.target.state()).get("audit", "0"))
        while entries := await self.source.audit(after, _CHUNK):
            if not self.model.audited:
                raise StartError(f"{self.source.name} has an audit log, and no resource of the model is audited.")
            after = entries[-1].entry
            await self.target.put_audit(entries, {"audit": str(after)})
            self.progress("Copying the audit log", after, after)

    async def _follow_closely(self) -> None:
        for _ in range(_ROUNDS):
            if await self._follow_on() <= _LITTLE:
                return

    async def _follow_on(self) -> int:
        """Follow up to now. A row may have taken a unique value from one that changes a moment later: it comes along
        with that change."""
        for _ in range(_ROUNDS):
            with suppress(Clash):
                return await self._follow(await self.source.head())
        return await self._follow(await self.source.head())

    async def _follow(self, head: Head) -> int:
        """Take over the changes up to a position of the feed, and the rows that they touch; gives how many."""
        state = await self.target.state()
        followed, taken = int(state["followed"]), int(state["feed"])
        touched: dict[str, set[str]] = {}
        position = min(followed, taken)
        while changes := await self.source.changes(position, head.position, _CHUNK):
            position = changes[-1].position
            new = [change for change in changes if change.position > taken]
            if new:
                await self.target.put_changes(new, {"feed": str(position)})
            for change in changes:
                if change.position > followed and change.resource in self._suspects:
                    touched.setdefault(change.resource, set()).add(change.row_id)
        await self._put(touched)
        await self.target.put_changes([], {"followed": str(head.position)})
        for table, ids in touched.items():
            self._suspects[table] |= ids
        return head.position - followed

    async def _put(self, touched: dict[str, set[str]]) -> None:
        """Put rows as they are now. Two may have swapped a unique value: all go before any comes."""
        for table, ids in touched.items():
            listed = sorted(ids)
            rows = [row for part in chunks(listed, _CHUNK) for row in await self.source.rows_of(table, part)]
            await self.target.put(table, listed, rows, {})

    async def _verify(self, table: str) -> int:
        """Compare all rows; one that differs may have changed meanwhile, and is compared again in the switch."""
        after, done, total = None, 0, await self.source.count(table)
        while rows := await self.source.rows(table, after, _CHUNK):
            self._suspects[table] |= await self._differing(table, rows)
            after, done = self._id(table, rows[-1]), done + len(rows)
            self.progress(f"Verifying {table}", done, total)
        return done

    async def _verify_feed(self) -> int:
        """Compare the changes that were taken over; gives their number."""
        state, head = await self.target.state(), await self.source.head()
        position, until, done = max(head.oldest - 1, 0), int(state["feed"]), 0
        while changes := await self.source.changes(position, until, _CHUNK):
            taken = await self.target.changes(position, until, _CHUNK)
            for change, copy in zip(changes, taken, strict=False):
                if change != copy and _image(change) != _image(copy):
                    raise StartError(f"The change {change.position} of the feed differs; nothing was switched.")
            if len(taken) != len(changes):
                raise StartError(f"The target lacks changes of the feed after {position}; nothing was switched.")
            position, done = changes[-1].position, done + len(changes)
        return done

    async def _differing(self, table: str, rows: Sequence[Row]) -> set[str]:
        ids = [str(self._id(table, row)) for row in rows]
        there = {str(self._id(table, row)): row for row in await self.target.rows_of(table, ids)}
        return {key for key, row in zip(ids, rows, strict=True) if there.get(key) != row}

    async def _switch(self) -> float:
        """Hold up the writers, take over the rest, verify it, and close the source to writes."""
        begun = time.monotonic()
        async with self.source.held_up():
            begun = time.monotonic()
            head = await self.source.head()
            await self._follow(head)
            await self._copy_audit()
            if self.model.audited and (rest := await self.source.audit_rest()) is not None:
                await self.target.put_audit_rest(rest)
            for table in await self.source.system_tables():
                columns, rows = await self.source.system_rows(table)
                await self.target.put_system(table, columns, rows)
            await self._compare()
            await self.target.complete(head, await self.source.last_ids())
            await self.source.close_to_writes(self.target.name)
        held_up = time.monotonic() - begun
        await self.target.release()
        return held_up

    async def _compare(self) -> None:
        """Refuse to switch if anything differs, now that nothing changes."""
        for table in self.tables:
            here, there = await self.source.count(table), await self.target.count(table)
            if here != there:
                raise StartError(
                    f"{table} has {here} rows in the source and {there} in the target; nothing was switched."
                )
            for part in chunks(sorted(self._suspects[table]), _CHUNK):
                rows = await self.source.rows_of(table, part)
                differing = await self._differing(table, rows)
                gone = set(part) - {str(self._id(table, row)) for row in rows}
                differing |= {str(self._id(table, row)) for row in await self.target.rows_of(table, sorted(gone))}
                if differing:
                    raise StartError(f"The row {min(differing)} of {table} differs; nothing was switched.")

    def _id(self, table: str, row: Row) -> Any:
        return row[self._place_of_id[table]]


def _image(change: StoredChange) -> tuple[Any, ...]:
    """A change in a form that can be compared: the order of columns means nothing."""
    return (*change[:5], *(None if text is None else decode_image(text) for text in change[5:]))
