"""All that differs between SQLite and PostgreSQL when a read is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from diptych.compile.fragment import Fallible, Fragment, Guarded, bind, identifier, join, merge_literals, sql, to_sql
from diptych.compile.getters import (
    act,
    constant,
    converted,
    current_moment,
    cursor_key,
    sort_key,
    sort_key_part,
    viewer_id,
)
from diptych.compile.plan import (
    MAX_ANSWER,
    ActBind,
    Bind,
    ConstBind,
    Getter,
    GroupsBind,
    KeyBind,
    NowBind,
    PageLayout,
    Plan,
    SealBind,
    SlotBind,
    ViewerBind,
)
from diptych.compile.system.object import KEYED, LONG_VALUE
from diptych.model.defs import FieldDef
from diptych.model.operators import MAX_SEARCHED
from diptych.model.scalars import ID, QUOTED, TEXT_ID, Scalar, encode_json
from diptych.model.viewer_object import ABOUT

_NEEDLE = 4 * MAX_SEARCHED
"""Bytes of the longest text that a client searches for; a rule that compares two columns can search for longer ones."""
_SHORT = 64
"""Bytes of a longer one that SQLite's own function searches for first."""
_SHORTER = 16
"""Bytes that PostgreSQL's own function searches for: it compares one byte at a time, and heeds no deadline before the
next row. A longer text is matched as a literal pattern (`***=`), an automaton that is built for each row."""
_MOST_ARGUMENTS = 100
"""SQLite takes no more than 127 arguments in a call."""


class Dialect(Struct, frozen=True, eq=False):
    """One database: its templates, and how it takes values."""

    name: str
    placeholder: str
    answer: str
    """The text of an answer, as bytes."""
    bounded: str
    """The text of a read, as bytes, truncated just beyond the largest answer."""
    rows: str
    """The texts `_j` of the rows of a sub-select, joined by commas in the order in which they come."""
    each: str
    """The texts {1} of the rows with an id `_e.value` of the list {0}, joined by commas in its order."""
    only_rows: str
    """The whole statement of a request for one list and nothing else."""
    gather: str
    """The texts of rows joined by commas, as an aggregate."""
    gather_by: str
    """`gather` with an ORDER BY."""
    gather_page: str
    """The texts {0} of the rows of a page, as an aggregate, with ROW_END between two."""
    unreadable: str
    """The text {0} of a row, or UNREADABLE and the text {1} if that is null."""
    wide: int
    """From this many parts on, text is joined by one call of concat()."""
    joins: bool
    """Is a to-one relation that is always there read by a join, rather than by a sub-select?"""
    id_text: str
    """A uuid, in a form of which there is a least and a greatest."""
    unseen: str
    """A bound value that the planner does not look at. SQLite looks at a bare one in a LIMIT and, once there are
    statistics (ANALYZE), in a range of an index: then it plans the statement anew for every run, which takes longer
    than to read a page. Behind a plus sign it does not look."""
    sees_limits: bool
    """Does a LIMIT that is known beforehand make a better plan? PostgreSQL plans anew for every run without."""
    same: str
    """Equal, null to null."""
    least: str
    contains: str
    """Is the text {1} in the text {0}? In linear time: the function of the database compares each position of {0} with
    all of {1}, and no deadline interrupts it. So it searches for short texts, and for the prefixes of long ones."""
    starts_with: str
    ends_with: str
    fold: str
    """A text {} without differences of case and accents, as `model/folding.py` has it."""
    is_in: str
    seal: str
    """A signed cursor from the key {0} and the text {1}."""
    stored_key: str
    """A sort key {0} that its type does not allow, as a cursor holds it."""
    id_payload: str
    """What a cursor holds of a list that is sorted by the id {0}."""
    digest: str
    """The digest of a text, which a cursor holds instead of it."""
    boolean: str
    """A condition as a value."""
    count: str
    returning: str
    """A change {0} that returns the changed row: its id {1}, the answer {2}, and the transaction id where there are
    concurrent ones."""
    changed: str
    """The name of the changed row in that answer, for the table {}."""
    returning_new: str
    """The same for a new row, which has the name of its table."""
    acting: str
    """`returning` that records the act {3} of the transaction too; "" where the writer does."""
    acting_new: str
    sees_before: bool
    """Does the answer to a deletion see all that is about to be deleted with the row?"""
    marks: bool
    """Does a change return the id of its transaction?"""
    lock: str
    """Locks the row of the table {0} that {1} is true of, where there are concurrent writers."""
    plain_text: str
    """A text in the order of its characters, whatever collation the column of a table that exists has."""
    row_version: str
    """A number of 31 bits that changes with the columns {} of a row."""
    column_version: str
    """A column {} of these."""
    same_json: str
    stored: str
    """The column {1} of a row of the feed, as it was before or after a change: {0} is `old` or `new`."""
    left_out: str
    """The same where the value {0} of the column {2} may be left out, as it is long and was not changed: then {1}."""
    later: str
    """The column {1} of the table {0}, as it was before the next change of it, or as it is where {2}."""
    is_now: str
    """The condition that a row `_t` of a table is that of a change of the feed."""
    stored_json: str
    """The same {} of a JSON column that is never null."""
    oldest: str
    """The oldest position that the feed keeps."""
    changes: str
    """Rows of the feed `_f` for which {0} holds, of changes of the table {1}, with `_was` {2} and `_becomes` {3}."""
    judged: str
    """The alias of what has the columns `_was` and `_becomes`."""
    out: Callable[[Scalar], str]
    test: Callable[[Scalar], str]
    """The test of a stored value, if it can be another than the type allows."""
    quotes: Callable[[Scalar], bool]
    """Does the text of `out` want quotation marks?"""
    convert: Callable[[Scalar], Callable[[Any], Any] | None]
    wrap_list: Callable[[list[Any]], Any]

    def plan(
        self,
        statement: Fragment,
        columns: int = 1,
        searches: bool = False,
        page: PageLayout | None = None,
        *,
        batches: bool = False,
    ) -> Plan:
        """The plan of a whole statement."""
        text, binds = to_sql(statement, self.placeholder)
        return Plan(text, binds, tuple(map(self.getter, binds)), columns, searches, page, batches)

    def value(self, what: Bind) -> Fragment:
        """A bound value, with the cast that it needs."""
        if self.name == "sqlite" or isinstance(what, ActBind):
            return bind(what)
        if isinstance(what, SealBind):
            return sql("{}::bytea", bind(what))
        assert not isinstance(what, GroupsBind)
        cast = what.scalar.postgres_param
        if isinstance(what, ConstBind) and cast == "text":
            return sql('({}::text COLLATE "C")', bind(what))
        if isinstance(what, SlotBind | ViewerBind) and what.many:
            return sql("{}::" + "::".join(f"{part}[]" for part in cast.split("::")), bind(what))
        return sql("{}::" + cast, bind(what))

    def collated(self, value: Fragment, scalar: Scalar) -> Fragment:
        """A bound value that is compared like a column."""
        text = self.name == "postgres" and scalar.postgres_param == "text"
        return sql('({} COLLATE "C")', value) if text else value

    def null(self, scalar: Scalar) -> Fragment:
        return Fragment("NULL" if self.name == "sqlite" else f"NULL::{scalar.postgres_param.split('::')[-1]}")

    def concat(self, pieces: Iterable[str | Fragment]) -> Fragment:
        """Constant and computed text, joined; null if a part is Guarded and its test fails, or Fallible and null."""
        parts = merge_literals(pieces)
        tests = [part.test for part in parts if isinstance(part, Guarded)]
        whole = self._joined(parts)
        return sql("CASE WHEN {} THEN {} END", join(" AND ", tests), whole) if tests else whole

    def _joined(self, parts: list[Fragment]) -> Fragment:
        if len(parts) < self.wide or any(isinstance(part, Fallible) for part in parts):
            return join(" || ", parts)
        chunks = [parts[start : start + _MOST_ARGUMENTS] for start in range(0, len(parts), _MOST_ARGUMENTS)]
        return join(" || ", (sql("concat({})", join(", ", chunk)) for chunk in chunks))

    def id_out(self, scalar: Scalar, column: Fragment) -> Fragment:
        """An id in a form of which there is a least and a greatest; `id_in` takes it back."""
        return sql(self.id_text, column) if scalar in (ID, TEXT_ID) else column

    def id_in(self, scalar: Scalar, name: str) -> Fragment:
        return Fragment(f"{name}::uuid" if self.name == "postgres" and scalar is ID else name)

    def id_key(self, scalar: Scalar, key: Fragment) -> Fragment:
        """What a cursor holds of a list that is sorted by the id `key`, a text of `id_out`."""
        escaped = self.name == "postgres" and scalar is TEXT_ID
        return sql("'[' || to_json({})::text || ']'" if escaped else self.id_payload, key)

    def stored_value(self, value: Fragment, field: FieldDef) -> Fragment:
        """A column of a table that exists, as statements compare and show it."""
        scalar = field.scalar
        is_text = field.cast or scalar.is_text or scalar.choices or scalar is TEXT_ID
        return sql(self.plain_text, value) if is_text else value

    def assigned(self, value: Fragment, field: FieldDef) -> Fragment:
        """A value that a column takes, of the column's own type."""
        if not field.cast or self.name == "sqlite":
            return value
        return sql("CAST({} AS {})", value, identifier(field.cast))

    def digest_of(self, columns: Iterable[Fragment]) -> Fragment:
        """A number that changes with any of the columns of a row."""
        return sql(self.row_version, join(" || ',' || ", [sql(self.column_version, column) for column in columns]))

    def getter(self, what: Bind) -> Getter:
        """A function that gets the value of a Bind in this dialect's form."""
        match what:
            case SlotBind(slot, scalar, many):
                return self._slot(slot, scalar, many)
            case KeyBind(slot, key, scalar, part):
                return sort_key(slot, key, self.convert(scalar)) if part == "whole" else sort_key_part(slot, key, part)
            case ConstBind(value, scalar):
                return constant(converted(value, self.convert(scalar)))
            case ViewerBind(scalar, name, many):
                return self._viewer_value(scalar, name, many) if name else viewer_id(scalar)
            case SealBind(page):
                return cursor_key(page)
            case NowBind(scalar, offset):
                return current_moment(scalar, offset)
            case GroupsBind():
                raise TypeError("the values of a batch come from many runs")
            case ActBind():
                return act

    def _slot(self, slot: int, scalar: Scalar, many: bool) -> Getter:
        convert, wrap = self.convert(scalar), self.wrap_list
        if many:
            return lambda values, viewer, keys: wrap([converted(value, convert) for value in values[slot]])
        if convert is None:
            return lambda values, viewer, keys: values[slot]
        return lambda values, viewer, keys: converted(values[slot], convert)

    def _viewer_value(self, scalar: Scalar, name: str, many: bool) -> Getter:
        convert, wrap = self.convert(scalar), self.wrap_list
        if (about := ABOUT.get(name)) is not None:
            return lambda values, viewer, keys: converted(about(viewer), convert)
        if many:
            return lambda values, viewer, keys: wrap([converted(value, convert) for value in viewer.knows(name)])
        return lambda values, viewer, keys: converted(viewer.knows(name), convert)


SQLITE = Dialect(
    name="sqlite",
    placeholder="?",
    answer="CAST({} AS BLOB)",
    bounded="CAST({} AS BLOB)",  # a connection itself makes no text that is longer
    rows="(SELECT coalesce(group_concat(_j, ','), '') FROM ({}) _r)",
    each="(SELECT coalesce(group_concat(coalesce(({1}), 'null'), ','), '') FROM json_each({0}) _e)",
    only_rows="SELECT CAST(concat('[', group_concat(_j, ','), ']') AS BLOB) FROM ({}) _r",
    gather="coalesce(group_concat({}, ','), '')",
    gather_by="coalesce(group_concat({}, ',' ORDER BY {}), '')",
    gather_page="group_concat({}, char(30))",
    unreadable="coalesce({}, char(29) || {})",
    wide=6,
    joins=True,
    unseen="+{}",
    sees_limits=False,
    id_text="{}",
    same="{} IS {}",
    least="min({}, {})",
    contains=f"CASE WHEN octet_length({{1}}) <= {_NEEDLE} THEN instr({{0}}, {{1}}) > 0 "
    f"ELSE instr({{0}}, substr({{1}}, 1, {_SHORT})) > 0 "
    "AND diptych_contains(CAST({0} AS BLOB), CAST({1} AS BLOB)) END",
    starts_with="substr({0}, 1, length({1})) = {1}",
    ends_with=f"substr({{0}}, CASE length({{1}}) WHEN 0 THEN {2**31 - 1} ELSE -length({{1}}) END) = {{1}}",
    fold="diptych_fold(CAST({} AS BLOB))",
    is_in="{} IN (SELECT value FROM json_each({}))",
    seal="diptych_seal({}, CAST({} AS BLOB))",  # text that is no UTF-8 cannot be handed to a function as text
    stored_key="'{{\"' || typeof({0}) || '\":\"' || hex({0}) || '\"}}'",
    id_payload="'[' || nullif(json_quote(CAST({} AS TEXT)), 'null') || ']'",
    digest="diptych_digest(CAST({} AS BLOB))",
    boolean="(({}) IS TRUE)",
    count="count(*)",
    returning="{} RETURNING {}, {}",
    changed="{}",
    returning_new="{} RETURNING {}, {}",
    acting="",
    acting_new="",
    sees_before=False,
    marks=False,
    lock="",
    plain_text="({} COLLATE BINARY)",
    row_version=f"diptych_version(CAST({KEYED} AS BLOB))",
    column_version="quote({})",
    same_json="diptych_same_json({}, {})",
    stored="json_extract(_f.{0}, '$.{1}')",
    left_out="CASE typeof({0}) WHEN 'integer' THEN {1} ELSE {0} END",
    later="coalesce((SELECT json_extract(_g.old, '$.{1}') FROM diptych_feed _g WHERE _g.resource = '{0}' "
    f"AND _g.row_id = _f.row_id AND _g.position > _f.position AND length(_g.old) > {LONG_VALUE} "
    "AND typeof(json_extract(_g.old, '$.{1}')) = 'text' ORDER BY _g.position LIMIT 1), "
    '(SELECT _t."{1}" FROM "{0}" _t WHERE {2}))',
    is_now='_t."id" = _f.row_id',
    stored_json="{}",
    oldest="coalesce((SELECT min(position) FROM diptych_feed), 0)",
    changes="(SELECT _f.*, {2} AS _was, {3} AS _becomes FROM diptych_feed _f WHERE {0}) _f "
    "WHERE (_f._was OR _f._becomes)",
    judged="_f",
    out=lambda scalar: scalar.sqlite_out,
    test=lambda scalar: scalar.sqlite_test,
    quotes=lambda scalar: scalar.quoted and scalar.sqlite_out != QUOTED,
    convert=lambda scalar: scalar.to_sqlite,
    wrap_list=encode_json,
)

POSTGRES = Dialect(
    name="postgres",
    placeholder="$",
    answer="convert_to({}, 'UTF8')",
    bounded=f"substr(convert_to({{}}, 'UTF8'), 1, {MAX_ANSWER + 1})",
    rows="array_to_string(ARRAY({}), ',')",
    each="array_to_string(ARRAY(SELECT coalesce(({1}), 'null') FROM unnest({0}) WITH ORDINALITY _e(value, i) "
    "ORDER BY _e.i), ',')",
    only_rows="SELECT substr(convert_to('[' || array_to_string(ARRAY({}), ',') || ']', 'UTF8'), "
    f"1, {MAX_ANSWER + 1})",
    gather="coalesce(string_agg({}, ','), '')",
    gather_by="coalesce(string_agg({}, ',' ORDER BY {}), '')",
    gather_page="string_agg({}, chr(30))",
    unreadable="coalesce({}, chr(29) || {})",
    wide=10**9,
    joins=False,
    unseen="{}",
    sees_limits=True,
    id_text='{}::text COLLATE "C"',
    same="{} IS NOT DISTINCT FROM {}",
    least="least({}, {})",
    contains=f"CASE WHEN octet_length({{1}}) BETWEEN {_SHORTER + 1} AND {_NEEDLE} "
    f"THEN strpos({{0}}, left({{1}}, {_SHORTER})) > 0 AND {{0}} ~ ('***=' || {{1}}) ELSE strpos({{0}}, {{1}}) > 0 END",
    starts_with="starts_with({}, {})",
    ends_with="right({0}, length({1})) = {1}",
    fold="diptych_fold({})",
    is_in="{} = ANY({})",
    seal="translate(rtrim(encode(substr(sha256({0} || convert_to({1}, 'UTF8')), 1, 12) || "
    "convert_to({1}, 'UTF8'), 'base64'), '='), E'+/\\n', '-_')",
    stored_key="'{{\"stored\":' || to_json({0}::text)::text || '}}'",
    id_payload="'[\"' || {} || '\"]'",
    digest="left(encode(sha256(convert_to({}, 'UTF8')), 'hex'), 32)",
    boolean="(({}) IS TRUE)",
    count="count(*)::text",
    returning="WITH _w AS ({} RETURNING *) SELECT {}, {}, pg_current_xact_id()::text FROM _w",
    changed="_w",
    returning_new="{} RETURNING {}, {}, pg_current_xact_id()::text",
    acting="WITH _act AS ({3}), _w AS ({0} RETURNING *) SELECT {1}, {2}, pg_current_xact_id()::text FROM _w",
    acting_new="WITH _act AS ({3}) {0} RETURNING {1}, {2}, pg_current_xact_id()::text",
    sees_before=True,
    marks=True,
    lock="SELECT 1 FROM {} WHERE {} FOR NO KEY UPDATE",
    plain_text='({}::text COLLATE "C")',
    row_version=f"(('x' || left(encode(sha256(convert_to({KEYED}, 'UTF8')), 'hex'), 8))::bit(32)::int & 2147483647)",
    column_version="quote_nullable(({})::text)",
    same_json="({})::jsonb = ({})::jsonb",
    stored='_f_{0}."{1}"',
    left_out="coalesce({0}, CASE WHEN strpos((_f.new -> '=')::text, '\"{2}\"') > 0 THEN {1} END)",
    later='coalesce((SELECT (diptych_row((SELECT _t FROM "{0}" _t WHERE false), _g.old))."{1}" FROM diptych_feed _g '
    f"WHERE _g.resource = '{{0}}' AND _g.row_id = _f.row_id AND _g.id > _f.id AND length(_g.old::text) > {LONG_VALUE} "
    "AND strpos(coalesce((_g.old -> '=')::text, ''), '\"{1}\"') = 0 ORDER BY _g.id LIMIT 1), "
    '(SELECT _t."{1}" FROM "{0}" _t WHERE {2}))',
    is_now='_t."id" = _f_new."id"',
    stored_json="coalesce({}, 'null'::json)",
    oldest="(SELECT oldest FROM diptych_feed_head)",
    # the row type is that of the table: a type of the system may have its name
    changes="diptych_feed _f "
    "LEFT JOIN LATERAL diptych_row((SELECT _t FROM {1} _t WHERE false), _f.old) _f_old ON true "
    "LEFT JOIN LATERAL diptych_row((SELECT _t FROM {1} _t WHERE false), _f.new) _f_new ON true "
    "CROSS JOIN LATERAL (SELECT {2} AS _was, {3} AS _becomes) _v WHERE {0} AND (_v._was OR _v._becomes)",
    judged="_v",
    out=lambda scalar: scalar.postgres_out,
    test=lambda scalar: scalar.postgres_test,
    quotes=lambda scalar: scalar.quoted,
    convert=lambda scalar: scalar.to_postgres,
    wrap_list=lambda items: items,
)
