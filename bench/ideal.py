"""The ideal statements: for each case and store the one statement that a patient person would write by hand.

Each takes the values of its case and gives one row with the bytes to send, or none where there is no such
thing. The forms are the fastest measured on this data (text is joined, not built by JSON functions):

    SQLite       rows as text in an ordered, limited sub-select; to-one by join; `group_concat` outside;
                 `concat()` where a row is wide; `cast(… as blob)`, so that no `str` is made
    PostgreSQL   `array_to_string(array(select …), ',')`; to-one by scalar sub-select where it is cheaper;
                 `convert_to(…, 'UTF8')`; a timestamp by `to_char`

The rules of the default model are in them, for a viewer with the role staff: `email` is the user's own, an
unpublished post is its author's, every order is visible. R2 reads one row more than the page and counts the
rows, so that `page_of` can cut the last one off: cheaper than any way to ask the database for the same.

W1 inserts and answers in one statement. Its values come from the handler: the id, the time, and the input. It tells
the feed too, as if there were no triggers: on SQLite by a statement of its own, with the row as JSON from the handler,
on PostgreSQL in the same one. There, what the foreign key would ask is in it, since it is off with the triggers.
"""

from __future__ import annotations

from typing import NamedTuple

from bench.store import Kind

ORDERS_PAGE = 50

# The value of `after` for the first page: sorts before every id.
FIRST: dict[Kind, str] = {"sqlite": "", "postgres": "00000000-0000-0000-0000-000000000000"}

_SQLITE = {
    # ?1 id, ?2 viewer
    "Q1": """
        SELECT cast('{"data":{"user":{"id":"' || id || '","name":' || json_quote(name) || ',"email":'
            || CASE WHEN id = ?2 THEN json_quote(email) ELSE 'null' END || '}}}' AS blob)
        FROM users WHERE id = ?1""",
    "Q2": """
        SELECT cast('{"data":{"user":{"name":' || json_quote(u.name) || ',"posts":[' || (
            SELECT coalesce(group_concat(row), '') FROM (
                SELECT '{"title":' || json_quote(p.title) || ',"comments":[' || (
                    SELECT coalesce(group_concat(row), '') FROM (
                        SELECT '{"body":' || json_quote(c.body)
                            || ',"author":{"name":' || json_quote(a.name) || '}}' AS row
                        FROM comments c JOIN users a ON a.id = c.author_id
                        WHERE c.post_id = p.id ORDER BY c.id LIMIT 5
                    )) || ']}' AS row
                FROM posts p
                WHERE p.author_id = u.id AND (p.published OR p.author_id = ?2)
                ORDER BY p.id LIMIT 10
            )) || ']}}}' AS blob)
        FROM users u WHERE u.id = ?1""",
    # ?1 after, ?2 viewer
    "Q3": """
        SELECT cast(concat('{"data":{"posts":[', group_concat(row), ']}}') AS blob) FROM (
            SELECT concat('{"id":"', p.id, '","title":', json_quote(p.title),
                ',"author":{"id":"', a.id, '","name":', json_quote(a.name), '}}') AS row
            FROM posts p JOIN users a ON a.id = p.author_id
            WHERE p.id > ?1 AND (p.published OR p.author_id = ?2)
            ORDER BY p.id LIMIT 50
        )""",
    # ?1 id, ?2 viewer
    "R1": """
        SELECT cast(concat('{"id":"', id, '","version":', version, ',"createdAt":"', created_at,
            '","updatedAt":"', updated_at, '","name":', json_quote(name), ',"email":',
            CASE WHEN id = ?2 THEN json_quote(email) ELSE 'null' END, '}') AS blob)
        FROM users WHERE id = ?1""",
    # ?1 after
    "R2": """
        SELECT cast(group_concat(row) AS blob), count(*) FROM (
            SELECT concat('{"id":"', id, '","version":', version, ',"createdAt":"', created_at,
                '","updatedAt":"', updated_at, '","customerId":"', customer_id, '","status":"', status,
                '","total":"', format('%d.%02d', total / 100, total % 100),
                '","currency":', json_quote(currency), ',"note":', json_quote(note),
                ',"internalNote":', json_quote(internal_note), '}') AS row
            FROM orders WHERE id > ?1 ORDER BY id LIMIT 51
        )""",
}

# ?1 id, ?2 now, ?3 customer, ?4 total in hundredths, ?5 currency, ?6 note
_SQLITE_ORDER = """
        INSERT INTO orders (id, version, created_at, updated_at, customer_id, status, total, currency, note)
        VALUES (?1, 1, ?2, ?2, ?3, 'pending', ?4, ?5, ?6)
        RETURNING cast(concat('{}{{"id":"', id, '","status":"', status,
            '","total":"', format('%d.%02d', total / 100, total % 100), '","currency":', json_quote(currency),
            ',"customer":{{"name":', (SELECT json_quote(u.name) FROM users u WHERE u.id = customer_id),
            '}}}}{}') AS blob)"""
_WRAPS = {"W1-graphql": ('{"data":{"createOrder":', "}}"), "W1-rest": ("", "")}
_SQLITE |= {case: _SQLITE_ORDER.format(*wrap) for case, wrap in _WRAPS.items()}
# ?1 mark, ?2 now, ?3 id, ?4 the row
_SQLITE |= {"feed": "INSERT INTO diptych_feed (mark, at, resource, row_id, new) VALUES (?1, ?2, 'orders', ?3, ?4)"}

_MOMENT = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
_MOMENTS = f"""',"createdAt":"' || {_MOMENT.format("created_at")}
                || '","updatedAt":"' || {_MOMENT.format("updated_at")}"""

_POSTGRES = {
    # $1 id, $2 viewer
    "Q1": """
        SELECT convert_to('{"data":{"user":{"id":"' || id || '","name":' || to_json(name)::text || ',"email":'
            || CASE WHEN id = $2 THEN to_json(email)::text ELSE 'null' END || '}}}', 'UTF8')
        FROM users WHERE id = $1""",
    "Q2": """
        SELECT convert_to('{"data":{"user":{"name":' || to_json(u.name)::text || ',"posts":['
            || array_to_string(array(
                SELECT '{"title":' || to_json(p.title)::text || ',"comments":['
                    || array_to_string(array(
                        SELECT '{"body":' || to_json(c.body)::text
                            || ',"author":{"name":' || to_json(a.name)::text || '}}'
                        FROM comments c JOIN users a ON a.id = c.author_id
                        WHERE c.post_id = p.id ORDER BY c.id LIMIT 5
                    ), ',') || ']}'
                FROM posts p
                WHERE p.author_id = u.id AND (p.published OR p.author_id = $2)
                ORDER BY p.id LIMIT 10
            ), ',') || ']}}}', 'UTF8')
        FROM users u WHERE u.id = $1""",
    # $1 after, $2 viewer
    "Q3": """
        SELECT convert_to('{"data":{"posts":[' || array_to_string(array(
            SELECT '{"id":"' || p.id || '","title":' || to_json(p.title)::text
                || ',"author":{"id":"' || p.author_id || '","name":'
                || to_json((SELECT a.name FROM users a WHERE a.id = p.author_id))::text || '}}'
            FROM posts p
            WHERE p.id > $1 AND (p.published OR p.author_id = $2)
            ORDER BY p.id LIMIT 50
        ), ',') || ']}}', 'UTF8')""",
    # $1 id, $2 viewer
    "R1": f"""
        SELECT convert_to('{{"id":"' || id || '","version":' || version || {_MOMENTS}
            || '","name":' || to_json(name)::text || ',"email":'
            || CASE WHEN id = $2 THEN to_json(email)::text ELSE 'null' END || '}}', 'UTF8')
        FROM users WHERE id = $1""",
    # $1 after
    "R2": f"""
        SELECT convert_to(string_agg(row, ','), 'UTF8'), count(*) FROM (
            SELECT '{{"id":"' || id || '","version":' || version || {_MOMENTS}
                || '","customerId":"' || customer_id || '","status":"' || status || '","total":"' || total
                || '","currency":' || to_json(currency)::text
                || ',"note":' || coalesce(to_json(note)::text, 'null')
                || ',"internalNote":' || coalesce(to_json(internal_note)::text, 'null') || '}}' AS row
            FROM orders WHERE id > $1 ORDER BY id LIMIT 51
        ) page""",
}

# $1 id, $2 now, $3 customer, $4 total, $5 currency, $6 note
_POSTGRES_ORDER = """
        WITH customer AS (SELECT to_json(name)::text AS name FROM users WHERE id = $3 FOR KEY SHARE),
        made AS (
            INSERT INTO orders (id, version, created_at, updated_at, customer_id, status, total, currency, note)
            SELECT $1, 1, $2, $2, $3, 'pending', $4::text::numeric, $5, $6 FROM customer RETURNING *),
        told AS (INSERT INTO diptych_feed (resource, row_id, new) SELECT 'orders', id, row_to_json(made) FROM made)
        SELECT convert_to('{}{{"id":"' || id || '","status":"' || status || '","total":"' || total
            || '","currency":' || to_json(currency)::text || ',"customer":{{"name":' || customer.name
            || '}}}}{}', 'UTF8')
        FROM made, customer"""
_POSTGRES |= {case: _POSTGRES_ORDER.format(*wrap) for case, wrap in _WRAPS.items()}

STATEMENTS: dict[Kind, dict[str, str]] = {"sqlite": _SQLITE, "postgres": _POSTGRES}

# A row begins so, and nothing else does: inside a JSON string the quotes would be escaped.
_ROW = b'{"id":"'
_ID = slice(len(_ROW), len(_ROW) + 36)


class Page(NamedTuple):
    """A REST page: the rows as one text, and the cursors, which are bare ids here."""

    rows: bytes
    next: bytes | None
    previous: bytes | None

    def body(self) -> bytes:
        """The page as JSON."""
        following = b'"%b"' % self.next if self.next else b"null"
        previous = b'"%b"' % self.previous if self.previous else b"null"
        head = b'],"page":{"size":%d,"next":' % ORDERS_PAGE
        return b"".join((b'{"data":[', self.rows, head, following, b',"previous":', previous, b"}}"))

    def link(self) -> bytes:
        """The value of the `Link` header."""
        base = b"</orders?first=%d&" % ORDERS_PAGE
        links = [base + b'after=%b>; rel="next"' % self.next] if self.next else []
        links += [base + b'before=%b>; rel="prev"' % self.previous] if self.previous else []
        return b", ".join(links)


def page_of(rows: bytes | None, count: int, *, has_previous: bool) -> Page:
    """Cuts the row behind the page off, if there is one, and reads the cursors from the text."""
    if not rows:
        return Page(b"", None, None)
    previous = rows[_ID] if has_previous else None
    if count <= ORDERS_PAGE:
        return Page(rows, None, previous)
    rows = rows[: rows.rfind(b"," + _ROW)]
    last = rows.rfind(_ROW)
    return Page(rows, rows[last:][_ID], previous)
