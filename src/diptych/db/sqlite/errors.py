"""Errors of SQLite while it reads: which of them may pass, and the Refusal of each."""

from __future__ import annotations

import apsw

from diptych.compile.plan import too_long
from diptych.errors import Code, Refusal

PASSING = (
    apsw.InterruptError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.TooBigError,
)
"""Errors of the database that may pass: they are reported as Refusals."""


class GuardFailed(Exception):
    """A guard of a new row does not hold, so the statement that would insert it has done nothing."""


def raise_guard_failed() -> None:
    raise GuardFailed


def read_refusal(error: apsw.Error) -> Refusal:
    """The Refusal of a read that failed."""
    if isinstance(error, apsw.InterruptError):
        return Refusal(Code.TIMEOUT, "The request took too long.")
    if isinstance(error, apsw.TooBigError):
        return too_long()
    return Refusal(Code.UNAVAILABLE, "The database cannot answer now.")


def error_text(error: Exception) -> str:
    """The message of an error, as part of a sentence."""
    return str(error).removeprefix(type(error).__name__ + ": ").rstrip(".") or type(error).__name__
