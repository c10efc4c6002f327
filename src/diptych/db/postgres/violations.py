"""The kinds of constraint violations by the error classes of asyncpg."""

from __future__ import annotations

from collections.abc import Mapping

import asyncpg

from diptych.db.script import ViolationKind
from diptych.db.violations import MOVED_STATE

_POSTGRES: Mapping[type[asyncpg.PostgresError], ViolationKind] = {
    asyncpg.UniqueViolationError: "unique",
    asyncpg.ForeignKeyViolationError: "reference",
    asyncpg.RestrictViolationError: "reference",
    asyncpg.ExclusionViolationError: "conflict",
    asyncpg.LockNotAvailableError: "lock",
    asyncpg.StatementTooComplexError: "depth",
    asyncpg.ProgramLimitExceededError: "size",
    asyncpg.IntegrityConstraintViolationError: "check",
    asyncpg.DataError: "check",
    asyncpg.PLPGSQLError: "check",
    asyncpg.TriggeredActionError: "check",
    asyncpg.TriggeredDataChangeViolationError: "check",
    asyncpg.WithCheckOptionViolationError: "check",
    asyncpg.InsufficientPrivilegeError: "check",  # a policy of row-level security
    asyncpg.UnknownPostgresError: "check",  # an ERRCODE that a trigger made up
}
"""Kinds by error class; the first match wins."""
VIOLATIONS = tuple(_POSTGRES)


def kind_in_postgres(error: asyncpg.PostgresError) -> ViolationKind:
    """What kind of violation one of VIOLATIONS is."""
    if error.sqlstate == MOVED_STATE:
        return "moved"
    return next(kind for error_class, kind in _POSTGRES.items() if isinstance(error, error_class))
