"""The statements that move the audit log from and to PostgreSQL."""

from __future__ import annotations

from diptych.model.scalars import DATETIME
from diptych.move.side import AUDIT_COLUMNS

_AT = DATETIME.postgres_out.format("at")
AUDIT = (
    f"SELECT entry, position, {_AT}, resource, row_id, version, old::text, new::text, act::text, masked, "
    "coalesce(origin, json_build_array('postgres', resource, old::text, new::text)::text), hash FROM diptych_audit "
    "WHERE entry > $1 ORDER BY entry LIMIT $2"
)
PUT_AUDIT = (
    f"INSERT INTO diptych_audit ({AUDIT_COLUMNS}) "
    "SELECT a, b, c::timestamptz, d, e, f, g::json, h::json, i::json, j, k, l "
    "FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[], "
    "$8::text[], $9::text[], $10::text[], $11::text[], $12::text[]) AS v (a, b, c, d, e, f, g, h, i, j, k, l)"
)
ACTS = (
    "SELECT f.position, a.act::text FROM diptych_feed f JOIN diptych_acts a ON a.xid = f.xid "
    "AND f.at > a.at - interval '1 hour' AND f.at < a.at + interval '1 day' "
    "WHERE f.position > (SELECT position FROM diptych_audit_head)"
)
OWN_XID = "(4611686018427387904 + position)::text::xid8"
"""The number of a transaction of another database: none here will ever have it."""
PUT_ACTS = (
    f"INSERT INTO diptych_acts (xid, at, act) SELECT {OWN_XID}, at, v.act::json FROM diptych_feed "
    "JOIN unnest($1::bigint[], $2::text[]) AS v (place, act) ON position = v.place ON CONFLICT DO NOTHING"
)
