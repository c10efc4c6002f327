"""The statements of the audit log, for each database."""

from __future__ import annotations

from collections.abc import Mapping

_MOMENT = "to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"


def _both(text: str) -> Mapping[str, str]:
    """A statement for both databases: `{0}` is the sign of parameters, `{moment}` the first one as a time."""
    return {"sqlite": text.format("?", moment="?1"), "postgres": text.format("$", moment="$1::text::timestamptz")}


HEAD = "SELECT position, entry, hash, first, first_hash FROM diptych_audit_head"
LOCK: Mapping[str, str] = {"sqlite": HEAD, "postgres": f"{HEAD} FOR UPDATE"}
"""The head, which nobody else can move until the transaction ends."""
# An act of SQLite covers a range of positions. On PostgreSQL its transaction has the same number and time: a dump that
# was restored may have numbers that are used once more.
NEXT: Mapping[str, str] = {
    "sqlite": "SELECT coalesce((SELECT json_group_array(json_array(position, at, resource, row_id, old, new, act)) "
    "FROM (SELECT f.*, a.act FROM diptych_feed f LEFT JOIN diptych_acts a ON a.first <= f.position AND a.last = ("
    "SELECT min(b.last) FROM diptych_acts b WHERE b.last >= f.position) "
    "WHERE f.position > ?1 AND f.resource IN (SELECT value FROM json_each(?2)) ORDER BY f.position LIMIT ?3)), '[]'), "
    "coalesce((SELECT max(position) FROM diptych_feed), 0)",
    "postgres": "SELECT coalesce((SELECT json_agg(json_build_array(position, moment, resource, row_id, old, new, act) "
    f"ORDER BY position) FROM (SELECT f.position, {_MOMENT.format('f.at')} AS moment, f.resource, f.row_id, "
    "f.old::text AS old, f.new::text AS new, a.act::text AS act FROM diptych_feed f LEFT JOIN diptych_acts a "
    "ON a.xid = f.xid AND f.at > a.at - interval '1 hour' AND f.at < a.at + interval '1 day' "
    "WHERE f.position > $1::bigint AND f.resource IN (SELECT json_array_elements_text($2::text::json)) "
    "ORDER BY f.position LIMIT $3::bigint) AS n), '[]')::text, coalesce((SELECT position FROM diptych_feed "
    "WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1), 0)",
}
"""The next changes of some tables after a position, as JSON, and the newest position of all."""
_COLUMNS = "entry, position, at, resource, row_id, version, old, new, act, masked, hash"
PUT: Mapping[str, str] = {
    "sqlite": f"INSERT INTO diptych_audit ({_COLUMNS}) SELECT "
    + ", ".join(f"json_extract(value, '$[{index}]')" for index in range(11))
    + " FROM json_each(?1)",
    "postgres": f"INSERT INTO diptych_audit ({_COLUMNS}) SELECT (e ->> 0)::bigint, (e ->> 1)::bigint, "
    "(e ->> 2)::timestamptz, e ->> 3, e ->> 4, (e ->> 5)::integer, (e ->> 6)::json, (e ->> 7)::json, (e ->> 8)::json, "
    "e ->> 9, e ->> 10 FROM json_array_elements($1::text::json) AS e",
}
"""Stores entries, which are arrays in a JSON array."""
MOVE_HEAD = _both("UPDATE diptych_audit_head SET position = {0}1, entry = {0}2, hash = {0}3")
DROP_ACTS: Mapping[str, str] = {
    "sqlite": "DELETE FROM diptych_acts WHERE last <= (SELECT position FROM diptych_audit_head)",
    "postgres": "DELETE FROM diptych_acts WHERE at < now() - interval '1 day'",
}
"""Deletes acts that were appended with their changes, once all were."""
ENTRIES: Mapping[str, str] = {
    "sqlite": "SELECT entry, position, at, resource, row_id, old, new, act, masked, origin, hash FROM diptych_audit "
    "WHERE entry > $1 AND entry <= $2{} ORDER BY entry LIMIT $3",
    "postgres": f"SELECT entry, position, {_MOMENT.format('at')}, resource, row_id, old::text, new::text, act::text, "
    "masked, origin, hash FROM diptych_audit WHERE entry > $1 AND entry <= $2{} ORDER BY entry LIMIT $3",
}
"""Entries in a range, with room for more conditions."""
OLD = _both(
    "SELECT entry, hash FROM diptych_audit WHERE entry < (SELECT min(entry) FROM diptych_audit WHERE at >= {moment} "
    "OR entry >= (SELECT min(entry) FROM diptych_audit) + CAST({0}2 AS bigint)) ORDER BY entry DESC LIMIT 1"
)
"""The last of the oldest entries before a moment; the newest entry of all is kept."""
CUT = _both("DELETE FROM diptych_audit WHERE entry <= {0}1")
SET_FIRST = _both("UPDATE diptych_audit_head SET first = {0}1, first_hash = {0}2")
