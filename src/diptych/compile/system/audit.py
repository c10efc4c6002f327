"""The tables of an audited model: who made the changes of the feed, and the audit log that they are appended to.

`diptych_acts` has an Act for each transaction that changed something: on PostgreSQL by the number of the transaction,
which the feed has too; on SQLite by the range of positions that it wrote. No trigger knows of callers. A change
without an act was made by another program.

`diptych_audit` is the log: a row for each change of an audited table, in the order of the feed, with a hash that covers
the one before (`audit/chain.py`). `diptych_audit_head` has one row: how far the feed was appended, the number and the
hash of the last entry, and those of the last one that retention has deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from diptych.compile.system.object import DialectName, SystemObject

NEWEST = "SELECT coalesce(max(position), 0) FROM diptych_feed"
"""The newest position of a feed of SQLite."""
ACT_OF_RANGE = (
    "INSERT INTO diptych_acts (last, first, act) "
    "SELECT position, ?2 + 1, ?1 FROM diptych_feed WHERE position > ?2 ORDER BY position DESC LIMIT 1"
)
"""Records the act ?1 of all changes after the position ?2, on SQLite."""
_ONCE = "ON CONFLICT (xid) DO UPDATE SET act = excluded.act, at = excluded.at WHERE diptych_acts.at <> excluded.at"
"""A transaction has one act. A number that a restored dump used before is another transaction's."""
ACT_OF_STATEMENT = (
    "INSERT INTO diptych_acts (xid, act) SELECT pg_current_xact_id(), {0}::text::json "
    f"WHERE {{0}}::text IS NOT NULL {_ONCE}"
)
"""Records the act {0} of the transaction, on PostgreSQL."""
ACT_OF_SESSION = (
    "INSERT INTO diptych_acts (xid, act) SELECT pg_current_xact_id_if_assigned(), $1::text::json "
    f"WHERE pg_current_xact_id_if_assigned() IS NOT NULL {_ONCE}"
)
"""The same at the end of a transaction, if it changed anything."""


def audit_objects(dialect: DialectName) -> Iterable[SystemObject]:
    """The tables, in the order in which they can be made; those of the feed are there."""
    if dialect == "sqlite":
        yield SystemObject(
            "diptych_acts",
            ("CREATE TABLE diptych_acts (last INTEGER PRIMARY KEY, first INTEGER NOT NULL, act TEXT NOT NULL)",),
        )
    else:
        # a default that is given with the column would rewrite the table
        yield SystemObject(
            "diptych_acts",
            (
                "CREATE TABLE diptych_acts (xid xid8 PRIMARY KEY, at timestamp with time zone NOT NULL DEFAULT now(), "
                "act json NOT NULL)",
                "ALTER TABLE diptych_feed ADD COLUMN IF NOT EXISTS xid xid8",
                "ALTER TABLE diptych_feed ALTER COLUMN xid SET DEFAULT pg_current_xact_id()",
            ),
        )
    text, json, number = ("TEXT", "TEXT", "INTEGER") if dialect == "sqlite" else ('text COLLATE "C"', "json", "bigint")
    moment = "TEXT" if dialect == "sqlite" else "timestamp with time zone"
    yield SystemObject(
        "diptych_audit",
        (
            f"CREATE TABLE diptych_audit (entry {number} PRIMARY KEY, position {number} NOT NULL, "
            f"at {moment} NOT NULL, resource {text} NOT NULL, row_id {text} NOT NULL, version integer, "
            f"old {json}, new {json}, act {json}, "
            f"masked {text}, origin {text}, hash {text} NOT NULL)",
        ),
    )
    yield SystemObject(
        "diptych_audit_row",
        ("CREATE INDEX diptych_audit_row ON diptych_audit (resource, row_id, entry)",),
    )
    yield SystemObject(
        "diptych_audit_head",
        (
            f"CREATE TABLE diptych_audit_head (position {number} NOT NULL, entry {number} NOT NULL, "
            f"hash {text} NOT NULL, first {number} NOT NULL, first_hash {text} NOT NULL)",
            "INSERT INTO diptych_audit_head (position, entry, hash, first, first_hash) VALUES (0, 0, '', 1, '')",
        ),
    )
