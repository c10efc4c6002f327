"""Maps database errors of a write to violations, their columns, and the refusal of the request.

`violation_of_sqlite` and `kind_in_postgres` are one table for each driver of the errors that a request can cause,
also by constraints and triggers that the owner of a database made by hand. All else is an error of the service, or of
the connection. Of a constraint that was made by hand, clients learn only that it was violated: its columns may be
hidden, and its name and message are for the log.

Where a refusal can name the caller's field, the columns are needed. SQLite names them in its message, which
`columns_of_violation` reads. PostgreSQL names the constraint, and its catalogue knows the columns: a row `attname` for
each, in their order.

    SQLite      UNIQUE constraint failed: users.email                  →   ("users", ("email",))
    PostgreSQL  COLUMNS_OF_INDEX, "users_email_key"                    →   email
                COLUMNS_OF_REFERENCE, "posts_author_id_fkey", "posts"  →   author_id
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

import apsw

from diptych.db.script import Violation, ViolationKind
from diptych.errors import Code, Refusal

log = logging.getLogger("diptych")

_VIOLATION = re.compile(
    r"(?:\w+: )?(?:UNIQUE|NOT NULL) constraint failed: ({0}\.{0}(?:, {0}\.{0})*)".replace("{0}", r"[\w $#-]+"), re.ASCII
)

COLUMNS_OF_INDEX = """
    SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE i.indexrelid = to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1::text))
      AND k.place <= i.indnkeyatts
    ORDER BY k.place
"""
"""$1 is the name of a unique constraint, which is that of its index too; an index on an expression has no row."""
COLUMNS_OF_REFERENCE = """
    SELECT a.attname FROM pg_constraint c CROSS JOIN unnest(c.conkey) WITH ORDINALITY AS k (attnum, place)
      JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum
    WHERE c.contype = 'f' AND c.conname = $1::text
      AND c.conrelid = to_regclass(quote_ident(current_schema()) || '.' || quote_ident($2::text))
    ORDER BY k.place
"""
"""$1 is the name of a foreign key, $2 the table that holds it: the error names it, also where a row that is referred
to cannot be deleted."""


def columns_of_violation(message: str) -> tuple[str, tuple[str, ...]]:
    """The table and columns that a message of SQLite names.

    It names none for a foreign key, a check, or an index on an expression: then the table is "".
    """
    match = _VIOLATION.fullmatch(message)
    if match is None:
        return "", ()
    pairs = [name.split(".") for name in match[1].split(", ")]
    return pairs[0][0], tuple(column for _, column in pairs)


_SQLITE: Mapping[int, ViolationKind] = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: "unique",
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: "unique",
    apsw.SQLITE_CONSTRAINT_ROWID: "unique",
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: "reference",
}
"""Kinds by extended result codes; any other constraint (CHECK, NOT NULL, RAISE in a trigger, STRICT) is a "check"."""
_RESTRICTED = "FOREIGN KEY constraint failed"
"""The message of ON DELETE RESTRICT, which has the result code of a trigger."""
_TOO_DEEP = re.compile(r"triggers nested too deep|too many levels of trigger recursion")
"""The message of SQLite, and the one before 3.51; a cascade may go through 1,000 levels."""


def violation_of_sqlite(error: apsw.Error) -> Violation | None:
    """What a statement violated; None if the error is about something else."""
    if isinstance(error, apsw.SQLError) and _TOO_DEEP.search(str(error)):
        return Violation("depth")
    if not isinstance(error, apsw.ConstraintError | apsw.MismatchError):
        return None
    if str(error).endswith(MOVED_TEXT):
        return Violation("moved")
    restricted = str(error).endswith(_RESTRICTED)
    kind = "reference" if restricted else _SQLITE.get(getattr(error, "extendedresult", 0), "check")
    return Violation(kind, *columns_of_violation(str(error))) if kind == "unique" else Violation(kind)


def note(kind: ViolationKind, error: Exception) -> None:
    """Log which constraint, made by hand, refused a change; clients do not see that."""
    if kind in ("check", "size", "conflict"):
        log.info("the database refused a change: %s", error)


MOVED_TEXT = "diptych: the data has moved to another database"
"""The message of the triggers that close a database to writes: a Refusal at once, which no script handles."""
MOVED_STATE = "DM001"
"""Their SQLSTATE on PostgreSQL."""

_REFUSALS: Mapping[ViolationKind, tuple[Code, str]] = {
    "unique": (Code.CONFLICT, "Another one has this value."),
    "reference": (Code.CONFLICT, "Others still refer to this."),
    "conflict": (Code.CONFLICT, "It conflicts with another one."),
    "depth": (Code.CONFLICT, "Too many levels of others would change with this; begin with the lowest."),
    "check": (Code.BAD_USER_INPUT, "The database does not accept these values."),
    "size": (Code.BAD_USER_INPUT, "A value is too long for an index of the database."),
    "lock": (Code.UNAVAILABLE, "Others are changing this; try again."),
    "moved": (Code.UNAVAILABLE, "The data has moved to another database; try again."),
}


def is_moved(error: Exception) -> bool:
    """Does an error say that the data has moved to another database?"""
    return isinstance(error, Refusal) and error.message == _REFUSALS["moved"][1]


def refusal_of(kind: ViolationKind) -> Refusal:
    """The refusal of a violation, without the path of a field."""
    return Refusal(*_REFUSALS[kind])
