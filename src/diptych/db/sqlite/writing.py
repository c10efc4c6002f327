"""A SQLite connection that writes: it runs scripts inside a transaction, with a deadline for each statement.

The deadline holds while a statement runs (a watchdog checks it) and while another process has the file's write lock (a
busy handler does). SQLite's own busy handler sleeps longer and longer, so that a latecomer would hardly ever get the
lock between the commits of a busy process; here each process tries again within a millisecond or two.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import apsw

from diptych.ask.act import Act
from diptych.compile.plan import too_long
from diptych.compile.system.audit import ACT_OF_RANGE, NEWEST
from diptych.db.script import ResultRow, Script, Step, Violation
from diptych.db.sqlite.errors import GuardFailed
from diptych.db.sqlite.watchdog import StatementDeadline
from diptych.db.violations import note, refusal_of, violation_of_sqlite
from diptych.db.write_health import Reason, WriteHealth
from diptych.errors import Code, Refusal

T = TypeVar("T")
STORE_ERRORS = (
    apsw.FullError,
    apsw.IOError,
    apsw.NoMemError,
    apsw.CorruptError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.NotADBError,
    apsw.ProtocolError,
)
"""Errors of the database that are no fault of a statement, and may abort the whole transaction."""
_FAILING = (apsw.IOError, apsw.CorruptError, apsw.CantOpenError, apsw.NotADBError)
_PAUSE = 0.002
"""Seconds until the lock is tried again, at most."""


class WriteConnection:
    """A connection whose statements are interrupted at their deadline."""

    def __init__(
        self,
        db: apsw.Connection,
        guard: StatementDeadline,
        timeout: float,
        close: Callable[[], None] = lambda: None,
        health: WriteHealth | None = None,
    ) -> None:
        self.db = db
        self.timeout = timeout
        self.patient = True
        """Does it wait for a lock that another process holds?"""
        self.execute = db.cursor().execute
        self.close = close
        self.health = health or WriteHealth(reason_of)
        self._guard = guard
        db.set_busy_handler(self._wait)

    def _wait(self, tries: int) -> bool:
        if not self.patient or self._guard.is_over:
            return False
        time.sleep(random.uniform(0, _PAUSE))
        return True

    def start_clock(self, most: float | None = None) -> None:
        """Start the deadline of a statement: the timeout, or `most` if that is less."""
        self._guard.begin(self.timeout if most is None else min(most, self.timeout))

    def restart_clock(self, until: float) -> None:
        """Start the deadline of the next statement, where that of the one before still stands."""
        self._guard.until = until

    def stop_clock(self) -> None:
        """Clear the deadline: no statement runs until it is started again."""
        self._guard.end()

    @property
    def is_open(self) -> bool:
        """Is a transaction open? SQLite rolls it back by itself if a statement in it is interrupted."""
        return self.db.in_transaction

    def begin(self, how: str = "BEGIN IMMEDIATE", most: float | None = None) -> None:
        self.start_clock(most)
        self.execute(how)

    def commit(self) -> None:
        """Commit; a Refusal if that would break a deferred constraint."""
        try:
            self.execute("COMMIT")
        except apsw.ConstraintError as error:
            raise refusal_of("reference") from error

    def undo(self) -> None:
        """Roll the transaction back, if there still is one."""
        if self.db.in_transaction:
            self.execute("ROLLBACK")

    def run(self, step: Step) -> ResultRow:
        """The first row of a statement, or None; a Violation if it would break a constraint.

        Of several runs in one go, all rows, or None if a guard of one does not hold: then the others are to be undone.
        """
        try:
            if step.many:
                return self.db.cursor().executemany(step.sql, step.many).fetchall()
            rows = self.execute(step.sql, step.parameters).fetchall()
        except GuardFailed:
            return None
        except apsw.Error as error:
            violation = violation_of_sqlite(error)
            if violation is None:
                raise
            note(violation.kind, error)
            raise (refusal_of("moved") if violation.kind == "moved" else violation) from None
        return rows[0] if rows else None

    def run_alone(self, step: Step) -> ResultRow:
        """The first row of a statement that is a change by itself; None also if it would break a constraint."""
        try:
            rows = self.execute(step.sql, step.parameters).fetchall()
        except GuardFailed:
            return None
        except apsw.Error as error:
            violation = violation_of_sqlite(error)
            if violation is None:
                raise
            if violation.kind == "moved":
                raise refusal_of("moved") from None
            return None
        return rows[0] if rows else None

    def newest(self) -> int:
        """The newest position of the feed, in the open transaction."""
        ((position, *_),) = self.execute(NEWEST).fetchall()
        assert isinstance(position, int)
        return position

    def note_act(self, act: Act, after: int) -> None:
        """Record who has made the changes after a position."""
        self.execute(ACT_OF_RANGE, (act.text, after))

    def run_as(self, act: Act, step: Step) -> ResultRow:
        """`run_alone`, and record who makes the change."""
        before = self.newest()
        row = self.run_alone(step)
        self.note_act(act, before)
        return row

    def drive_as(self, act: Act | None, script: Script[T]) -> T:
        """`drive`, and record who makes the changes, if that is known."""
        if act is None:
            return self.drive(script)
        before = self.newest()
        result = self.drive(script)
        self.note_act(act, before)
        return result

    def drive(self, script: Script[T]) -> T:
        """Run a script to its end inside the open transaction."""
        try:
            step = next(script)
            while True:
                try:
                    row = self.run(step)
                except Violation as violation:
                    step = script.throw(violation)
                else:
                    step = script.send(row)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            script.close()


def reason_of(error: BaseException | None) -> Reason:
    """Why the database accepts no changes, if that is what an error says."""
    if isinstance(error, apsw.FullError):
        return "full"
    if isinstance(error, apsw.ReadOnlyError):
        return "read-only"
    return "failing" if isinstance(error, _FAILING) else ""


def as_refusal(error: BaseException) -> BaseException:
    """The error to report: a Refusal for a timeout or a failure of the database, and any other as it is."""
    refusal: Refusal
    if isinstance(error, apsw.InterruptError):
        refusal = Refusal(Code.TIMEOUT, "The request took too long.")
    elif isinstance(error, apsw.TooBigError):
        refusal = too_long()
    elif isinstance(error, STORE_ERRORS):
        refusal = Refusal(Code.UNAVAILABLE, "The database cannot answer now.")
    else:
        return error
    refusal.__cause__ = error
    return refusal
