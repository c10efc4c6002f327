"""A constraint that a write violated → the columns it is about, so that a refusal can name the caller's field.

SQLite names them in its message, which `columns_of_violation` reads. PostgreSQL names the constraint, and its
catalogue knows the columns: a row `attname` for each, in their order.

    SQLite      UNIQUE constraint failed: users.email                  →   ("users", ("email",))
    PostgreSQL  COLUMNS_OF_INDEX, "users_email_key"                    →   email
                COLUMNS_OF_REFERENCE, "posts_author_id_fkey", "posts"  →   author_id
"""

from __future__ import annotations

import re

_VIOLATION = re.compile(r"(?:\w+: )?(?:UNIQUE|NOT NULL) constraint failed: (\w+\.\w+(?:, \w+\.\w+)*)", re.ASCII)

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
    found = _VIOLATION.fullmatch(message)
    if found is None:
        return "", ()
    pairs = [each.split(".") for each in found[1].split(", ")]
    return pairs[0][0], tuple(column for _, column in pairs)
