"""The SQL of versions of rows, for each database: the audit log as a table of versions.

Versions of a row begin with its last creation: a row that was deleted and made again is another one.
"""

from __future__ import annotations

from collections.abc import Mapping

_VERSIONS = (
    "SELECT _a.version AS id, _a.row_id, _a.at, CASE WHEN _a.old IS NULL THEN 'CREATED' ELSE 'UPDATED' END AS kind, "
    "{user} AS actor, {account} AS account, {client} AS client, {token} AS token, {roles} AS roles, "
    "{request} AS request_id, coalesce({channel}, 'sql') AS channel, {operation} AS operation, {reason} AS reason, "
    "_a.old, _a.new, _a.entry FROM diptych_audit _a WHERE _a.resource = {{0}} AND _a.new IS NOT NULL "
    "AND _a.entry >= coalesce((SELECT max(_b.entry) FROM diptych_audit _b WHERE _b.resource = _a.resource "
    "AND _b.row_id = _a.row_id AND _b.old IS NULL), 0)"
)
_PARTS = ("user", "account", "client", "token", "roles", "request", "channel", "operation", "reason")
VERSIONS: Mapping[str, str] = {
    "sqlite": _VERSIONS.format(**{part: f"json_extract(_a.act, '$.{part}')" for part in _PARTS}),
    "postgres": _VERSIONS.format(
        **{part: f"(_a.act {'->' if part == 'roles' else '->>'} '{part}')" for part in _PARTS}
    ),
}
"""The versions of the rows of the table {0}, with the columns of their resource."""
_STORED = "(SELECT _v.old AS old, _v.new AS new, _v.row_id AS row_id, _v.entry AS entry) _f"
STORED: Mapping[str, str] = {
    "sqlite": _STORED,
    "postgres": f"{_STORED} "
    "LEFT JOIN LATERAL diptych_row((SELECT _t FROM {0} _t WHERE false), _f.new) _f_new ON true",
}
"""What a version `_v` has stored of a row of the table {0}, as `_f`."""
LATER: Mapping[str, str] = {
    "sqlite": "coalesce((SELECT json_extract(_g.old, '$.{1}') FROM diptych_audit _g WHERE _g.resource = '{0}' "
    "AND _g.row_id = _f.row_id AND _g.entry > _f.entry AND typeof(json_extract(_g.old, '$.{1}')) = 'text' "
    'ORDER BY _g.entry LIMIT 1), (SELECT _t."{1}" FROM "{0}" _t WHERE _t."id" = _f.row_id))',
    "postgres": 'coalesce((SELECT (diptych_row((SELECT _t FROM "{0}" _t WHERE false), _g.old))."{1}" '
    "FROM diptych_audit _g WHERE _g.resource = '{0}' AND _g.row_id = _f.row_id AND _g.entry > _f.entry "
    "AND _g.old IS NOT NULL AND strpos(coalesce((_g.old -> '=')::text, ''), '\"{1}\"') = 0 "
    'ORDER BY _g.entry LIMIT 1), (SELECT _t."{1}" FROM "{0}" _t WHERE _t."id" = _f_new."id"))',
}
"""The column {1} of the table {0} that a version `_f` leaves out: as it was before its next change, or is."""
