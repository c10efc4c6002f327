"""Reads from standbys: a statement runs there if the standby has all that the caller must see, else on the primary.

What a caller must see is a position in the feed: that of its read token, or else the newest one, which the primary is
asked for (callers that come at the same time share the question). A change gets its position after its commit, and a
standby replays commits in order, so one that has the position has all that it covers.

The standby is tested inside the statement, in its snapshot: by the change at that position and its mark, so a server
that has diverged, or is no standby any more, does not pass. (A transaction id or an LSN would not do: on a standby
`pg_visible_in_snapshot` is true of transactions in progress, and `pg_last_wal_replay_lsn` is newer than the snapshot.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import asyncpg

from diptych.compile.fragment import identifier
from diptych.compile.plan import MAX_ANSWER, Plan
from diptych.db.freshness import FRESHNESS, Freshness, SeenPosition, newest
from diptych.db.postgres.replica import Replica
from diptych.db.postgres.writer import BROKEN
from diptych.db.store import FeedHead, ReplicaState
from diptych.errors import Code, Refusal
from diptych.lru import LRUCache
from diptych.model.model import Model

_CHECKED = """
SELECT _h.has, _f.position, _f.mark, {waiting}, _q.*
FROM (SELECT pg_is_in_recovery() AND EXISTS (
  SELECT FROM diptych_feed WHERE position = ${position}::bigint AND mark = ${mark}::integer) AS has) AS _h
LEFT JOIN (
  SELECT position, mark FROM diptych_feed WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1) AS _f ON true
LEFT JOIN LATERAL (SELECT _r.* FROM ({sql}) AS _r WHERE _h.has) AS _q ON true
"""
"""A read with a test of its own snapshot; where that fails, the read itself is not run."""
_WAITING = """EXISTS (SELECT FROM diptych_feed AS _w, diptych_feed_head AS _d
  WHERE _w.position IS NULL AND _w.id > _d.settled)"""
"""Does the snapshot hold changes that have no position yet? Then the newest position does not cover it."""
_NONE = ("", "")
"""No statements: the read is the primary's."""
_STATEMENTS, _BYTES = 2_048, 8 << 20


class Primary(Protocol):
    """The store of the primary."""

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]: ...

    async def head(self) -> FeedHead: ...


class Replicas:
    """The standbys of one database, and its primary for all that they cannot answer."""

    def __init__(self, replicas: Sequence[Replica], model: Model, primary: Primary) -> None:
        self._replicas = replicas
        self._primary = primary
        self._loop = asyncio.get_running_loop()
        self._turn = 0
        self._checked: LRUCache[tuple[str, str]] = LRUCache("reads from replicas", _STATEMENTS, _BYTES)
        self._unfollowed = [
            identifier(resource.table).text for resource in model.resources.values() if not resource.followed
        ]
        """Tables whose changes have no positions."""
        self.on_primary = 0
        """How many reads the primary has answered."""

    async def run(self, plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
        """The columns of the one row of a plan, as of a moment that the caller may see."""
        freshness = FRESHNESS.get()
        statements = self._statements(plan, len(parameters))
        if statements is not _NONE and any(replica.is_up for replica in self._replicas):
            required = freshness.required if freshness is not None else None
            if required is None:
                required = newest(await self._primary.head())
            replica = self._choose(required)
            if replica is not None:
                sql = statements[freshness is not None]
                row = await self._read(replica, sql, (*parameters, *required), freshness)
                if row is not None:
                    return row
        self.on_primary += 1
        if freshness is not None:
            freshness.note_uncovered()
        return await self._primary.run(plan, parameters)

    def states(self) -> list[ReplicaState]:
        """How each of them is."""
        return [replica.state for replica in self._replicas]

    async def close(self) -> None:
        await asyncio.gather(*(replica.close() for replica in self._replicas))

    def _choose(self, required: SeenPosition) -> Replica | None:
        """A standby that has a position, or may have it by now; they take turns."""
        now = self._loop.time()
        self._turn += 1
        for number in range(len(self._replicas)):
            replica = self._replicas[(self._turn + number) % len(self._replicas)]
            if replica.is_up and replica.may_have(required.position, now):
                return replica
        return None

    async def _read(
        self, replica: Replica, sql: str, parameters: Sequence[Any], freshness: Freshness | None
    ) -> Sequence[bytes | None] | None:
        """Read from a standby; None if the primary must answer."""
        try:
            has, position, mark, is_waiting, *columns = await replica.read(sql, parameters)
        except asyncpg.QueryCanceledError as error:
            raise Refusal(Code.TIMEOUT, "The request took too long.") from error
        except (Refusal, TimeoutError, asyncpg.PostgresError, *BROKEN):
            return None
        replica.learn(position or 0)
        if not has or any(isinstance(column, bytes) and len(column) > MAX_ANSWER for column in columns):
            return None
        answer: list[bytes | None] = columns
        replica.reads += 1
        if freshness is not None:
            if is_waiting:
                freshness.note_uncovered()
            else:
                freshness.note_read(SeenPosition(position, mark))
        return answer

    def _statements(self, plan: Plan, count: int) -> tuple[str, str]:
        """A plan with the test of its snapshot, without and with the test for changes that have no position; _NONE if
        it reads what has no positions."""
        checked = self._checked.get(plan.sql)
        if checked is None:
            checked = _NONE
            if not any(table in plan.sql for table in self._unfollowed):
                names = {"sql": plan.sql, "position": count + 1, "mark": count + 2}
                checked = _CHECKED.format(waiting="NULL", **names), _CHECKED.format(waiting=_WAITING, **names)
            self._checked.put(plan.sql, checked, 3 * len(plan.sql))
        return checked
