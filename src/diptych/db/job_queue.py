"""The durable queue of jobs, and the ticks of schedules: each job is leased by one node at a time.

A record is there from the call until the end of the job; both are in the transactions of their effects. `attempts`
counts how often it was leased, so (id, node, attempts) names one run: a run that another has replaced finds no record.

The queue is fair by start-time fair queueing. A job gets a `turn` when it is queued: one after the last turn of its
`share` (who asked), and not before the turn that the queue is at. Jobs run in the order of their turns, so one job of
each share runs in each turn, however many one of them has queued. A tick of a schedule has the turn 0, before all
others. Jobs that wait for another attempt have a negative turn, and are found by the time at which they are due.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import astuple

from diptych.compile.dialect import Dialect
from diptych.compile.plan import Plan
from diptych.db.leases import NOW, Leases
from diptych.db.script import Script, Step
from diptych.db.store import Store
from diptych.db.system_records import Records

CANDIDATES = 100
"""Jobs that a look at the queue finds."""
NEVER = 1 << 60
"""The `next_at` of a job that has failed: it is kept, so that it can be tried again by command."""


class QueuedJob(Struct, frozen=True):
    """A job that has not ended."""

    id: str
    name: str
    """The root field of its action, or the name of its schedule."""
    arguments: str
    """Its row and its arguments, as JSON."""
    owner: str
    attempts: int
    state: str
    """Its last checkpoint, as JSON."""
    created_at: int
    next_at: int
    """Milliseconds: it does not run before."""
    lease_by: str
    lease_until: int
    share: str = ""
    """Among whom the queue is shared: who asked."""
    turn: int = 0


class WaitingJob(Struct, frozen=True):
    """A job that nobody runs."""

    id: str
    name: str
    created_at: int
    next_at: int
    turn: int


class ScheduleRow(Struct, frozen=True):
    """The next tick of a schedule."""

    name: str
    timetable: str
    next_at: int


QUEUE = Records("diptych_jobs", QueuedJob)
SCHEDULES = Records("diptych_schedules", ScheduleRow)
LEASES = Leases("diptych_jobs", free="next_at <= {now}", sets="attempts = attempts + 1")

_NAMES = ", ".join(WaitingJob.__struct_fields__)
_LISTED = {
    "sqlite": "SELECT CAST(json_group_array(json_array({0})) AS BLOB) FROM ({1})",
    "postgres": "SELECT convert_to(coalesce(json_agg(json_build_array({0}))::text, '[]'), 'UTF8') FROM ({1}) AS t",
}
_FREE = "CASE WHEN lease_until < (SELECT {now}) AND next_at <= (SELECT {now}) THEN name IN ({names}) ELSE FALSE END"
"""As a CASE, it has no selectivity that PostgreSQL could estimate too low: it then would read and sort the queue."""
_NEW = f"SELECT * FROM diptych_jobs WHERE turn >= 0 AND {_FREE} ORDER BY turn, created_at LIMIT {CANDIDATES}"
_AGAIN = (
    f"SELECT * FROM diptych_jobs WHERE turn < 0 AND next_at <= (SELECT {{now}}) AND {_FREE} "
    f"ORDER BY next_at LIMIT {CANDIDATES}"
)
_LATER = (
    "SELECT min(next_at) AS next_at FROM diptych_jobs WHERE turn < 0 AND next_at > (SELECT {now}) AND next_at < {never}"
)
_WAITING = (
    f"SELECT {_NAMES} FROM ({_NEW}) AS a UNION ALL SELECT {_NAMES} FROM ({_AGAIN}) AS b "
    f"UNION ALL SELECT '', '', 0, next_at, 0 FROM ({_LATER}) AS c"
)
_ADD = (
    "INSERT INTO diptych_jobs ({columns}, turn) VALUES ({values}, CASE WHEN {0}{turn} = 0 THEN 0 ELSE {greatest}("
    "coalesce((SELECT max(turn) FROM diptych_jobs WHERE share = {0}{share} AND turn > 0), 0) + 1, "
    "coalesce((SELECT min(turn) FROM diptych_jobs WHERE turn > 0 AND name IN ({names})), 0)) END) RETURNING 1"
)
_GREATEST = {"sqlite": "max", "postgres": "greatest"}
_WAITS = "turn = -1 - abs(turn)"
"""What is set of a job that waits for another attempt."""
_MINE = "WHERE id = {0}1 AND lease_by = {0}2 AND attempts = {0}3 AND lease_until > 0"
"""The record of a run that has not ended, whether or not its lease is still valid."""
_HOLD = f"UPDATE diptych_jobs SET {{sets}} {_MINE} RETURNING 1"
_REMOVE = f"DELETE FROM diptych_jobs {_MINE} RETURNING 1"
_HELD = f"SELECT count(*) FROM diptych_jobs {_MINE}"
_TICK = (
    "UPDATE diptych_schedules SET next_at = {0}2 WHERE name = {0}1 AND next_at <= {now} "
    "AND NOT EXISTS (SELECT 1 FROM diptych_jobs "
    "WHERE diptych_jobs.name = {0}1 AND diptych_jobs.turn <= 0 AND diptych_jobs.next_at < {never}) "
    "RETURNING 1"
)
_CLOCK = "SELECT {now}"


class Run(Struct, frozen=True):
    """One run of a job, which it may end as long as it holds the lease."""

    id: str
    node: str
    attempt: int

    @property
    def _values(self) -> tuple[str, str, int]:
        return self.id, self.node, self.attempt

    def is_held(self, dialect: Dialect) -> Script[bool]:
        """Does this run still have the job?"""
        row = yield Step(_HELD.format(dialect.placeholder), self._values)
        return row is not None and row[0] == 1

    def hold(self, dialect: Dialect) -> Script[bool]:
        """Lock the record until the transaction ends; False if another has it."""
        return (yield Step(_HOLD.format(dialect.placeholder, sets="lease_by = lease_by"), self._values)) is not None

    def keep_state(self, dialect: Dialect, state: str) -> Script[bool]:
        """Store a checkpoint; False if another has the job."""
        step = Step(_HOLD.format(dialect.placeholder, sets=f"state = {dialect.placeholder}4"), (*self._values, state))
        return (yield step) is not None

    def remove(self, dialect: Dialect) -> Script[bool]:
        """Remove the record, since the job ends; False if another has it."""
        return (yield Step(_REMOVE.format(dialect.placeholder), self._values)) is not None

    def postpone(self, dialect: Dialect, milliseconds: int) -> Script[bool]:
        """End the lease; the next attempt is after this time. False if another has the job."""
        sets = f"lease_until = 0, {_WAITS}, next_at = {NOW[dialect.name]} + {dialect.placeholder}4"
        step = Step(_HOLD.format(dialect.placeholder, sets=sets), (*self._values, milliseconds))
        return (yield step) is not None

    def bury(self, dialect: Dialect) -> Script[bool]:
        """End the lease of a job that has failed, and keep it; False if another has it."""
        sets = f"lease_until = 0, {_WAITS}, next_at = {NEVER}"
        return (yield Step(_HOLD.format(dialect.placeholder, sets=sets), self._values)) is not None

    def give_back(self, dialect: Dialect) -> Script[bool]:
        """End the lease, as if there had been no attempt; False if another has the job."""
        sets = "lease_until = 0, attempts = attempts - 1"
        return (yield Step(_HOLD.format(dialect.placeholder, sets=sets), self._values)) is not None


class WaitingJobs(Struct, frozen=True):
    """What a look at the queue finds: jobs that may run now, in the order in which they should, and when there will be
    another that waits for its next attempt, in milliseconds."""

    jobs: Sequence[WaitingJob]
    later: int | None


def waiting_statement(dialect: Dialect, names: int) -> str:
    """The statement that reads the head of the queue, for jobs with this number of names."""
    waiting = _WAITING.format(now=NOW[dialect.name], names=_bound(dialect, names), never=NEVER)
    return _LISTED[dialect.name].format(_NAMES, waiting)


def _bound(dialect: Dialect, count: int, after: int = 0) -> str:
    """The placeholders of this number of values, after others."""
    return ", ".join(f"{dialect.placeholder}{after + number}" for number in range(1, count + 1))


async def waiting(store: Store, names: Sequence[str]) -> WaitingJobs:
    """The first jobs with these names that nobody runs: new ones by their turn, and between two of them one that is
    tried again."""
    (answer,) = await store.run(Plan(waiting_statement(store.dialect, len(names))), list(names))
    *rows, last = [WaitingJob(*row) for row in json.loads(answer or b"[]")]
    new, again = [job for job in rows if job.turn >= 0], [job for job in rows if job.turn < 0]
    in_turns = [job for pair in zip_longest(new, again) for job in pair if job is not None]
    return WaitingJobs(in_turns, last.next_at)


def add_job(dialect: Dialect, job: QueuedJob, names: Sequence[str]) -> Script[None]:
    """Queue a job: its turn is 0 if it is to be before all others, or else determined here. `names` are those of jobs
    that the model has: one with another name waits for a model that has it, and the queue does not wait for that."""
    *columns, _ = QueuedJob.__struct_fields__
    sign = dialect.placeholder
    statement = _ADD.format(
        sign,
        columns=", ".join(columns),
        values=_bound(dialect, len(columns)),
        turn=len(columns) + 1,
        share=columns.index("share") + 1,
        names=_bound(dialect, len(names), after=len(columns) + 1),
        greatest=_GREATEST[dialect.name],
    )
    yield Step(statement, (*astuple(job), *names))


def retry_failed(dialect: Dialect, id: str) -> Script[bool]:
    """Queue a job that has failed again; False if it is not kept."""
    sign = dialect.placeholder
    statement = (
        f"UPDATE diptych_jobs SET next_at = 0, attempts = 0 WHERE id = {sign}1 AND next_at = {NEVER} RETURNING 1"
    )
    return (yield Step(statement, (id,))) is not None


def sweep_failed(dialect: Dialect, before: int) -> Script[None]:
    """Delete the records of jobs that failed, and were queued before a moment."""
    yield Step(f"DELETE FROM diptych_jobs WHERE next_at = {NEVER} AND created_at < {dialect.placeholder}1", (before,))


def database_clock(dialect: Dialect) -> Script[int]:
    """The clock of the database, in milliseconds."""
    row = yield Step(_CLOCK.format(now=NOW[dialect.name]), ())
    assert row is not None
    return int(row[0])


def tick(dialect: Dialect, schedule: str, next_at: int) -> Script[bool]:
    """Take a tick that is due, unless a run of the same schedule has not ended; the next one is at `next_at`."""
    statement = _TICK.format(dialect.placeholder, now=NOW[dialect.name], never=NEVER)
    return (yield Step(statement, (schedule, next_at))) is not None


def declare_schedule(dialect: Dialect, schedule: str, timetable: str, next_at: int) -> Script[None]:
    """Store the next tick of a schedule that is new, or whose timetable is another now."""
    row = yield from SCHEDULES.find(dialect, name=schedule)
    if row is None:
        yield from SCHEDULES.add(dialect, ScheduleRow(schedule, timetable, next_at))
    elif row.timetable != timetable:
        yield from SCHEDULES.change(dialect, {"name": schedule}, timetable=timetable, next_at=next_at)
