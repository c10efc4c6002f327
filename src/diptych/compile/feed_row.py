"""A row as the feed, or the audit log, has stored it: its columns are values in the JSON of a change.

It is read under the alias `_f`, and its columns are used in conditions and texts as those of a table are.
"""

from __future__ import annotations

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, identifier, join, sql
from diptych.compile.plan import ConstBind
from diptych.compile.table_ref import TableRef
from diptych.model.defs import SERVER_FIELDS, ResourceDef
from diptych.model.rules.expr import Choose, Col, Expr, IsNull, Mask, Not, leaves, rewrite
from diptych.model.scalars import JSON, STRING


class FeedRow(TableRef):
    """A row as the feed has stored it, before or after a change; and where the row is now, if that matters."""

    __slots__ = ("_dialect", "_fill", "_later", "_required", "_side", "_texts", "_whole", "looked", "now")

    def __init__(
        self, resource: ResourceDef, side: str, dialect: Dialect, now: TableRef | None = None, *, later: str = ""
    ) -> None:
        super().__init__(resource, "_f")
        self.now = now
        self._later = later or dialect.later
        self.looked: dict[str, Fragment] = {}
        """The columns that were asked for and that older changes may lack though they are never null."""
        self._side = side
        self._dialect = dialect
        self._fill = {
            field.column: ConstBind(field.default_value.value, field.scalar)
            for field in resource.fields.values()
            if field.stored and not field.nullable and field.default is not None
        }
        self._required = {
            field.column
            for field in resource.fields.values()
            if field.stored and not field.nullable and field.name not in SERVER_FIELDS
        }
        self._texts = {
            field.column for field in resource.fields.values() if field.scalar is STRING or field.scalar.is_json
        }
        self._whole = [
            field.column for field in resource.fields.values() if field.scalar is JSON and not field.nullable
        ]

    def column(self, name: str) -> Fragment:
        """The stored value; a column that was added later has its default, or null. (A JSON null in
        JSON is no value to a database.)"""
        value = self._stored(self._side, name)
        if name in self._whole:
            value = sql(self._dialect.stored_json, value)
        fill = self._fill.get(name)
        if fill is not None:
            return sql("coalesce({}, {})", value, self._dialect.value(fill))
        if name in self._required:
            self.looked[name] = value
        return value

    def _stored(self, side: str, name: str) -> Fragment:
        """A value as it is stored; one that an update left as it was may be in another change."""
        value = self._dialect.stored.format(side, identifier(name).text.strip('"'))
        if name not in self._texts:
            return Fragment(value)
        later = self._later.format(self.resource.table, name, self._is_now())
        if side == "old":
            later = self._stored("new", name).text
        return Fragment(self._dialect.left_out.format(value, later, name))

    def _is_now(self) -> str:
        """The condition that a row `_t` of the table is the one that was changed."""
        if self.resource.managed:
            return self._dialect.is_now
        stored = ((name, self._dialect.stored.format("new", name)) for name in self.resource.key_columns)
        return " AND ".join(f'_t."{name}" = {value}' for name, value in stored)

    def is_row(self, now: TableRef) -> Fragment:
        """The condition that a row of the table is this one."""
        if self.resource.managed:
            return sql("{} = {}", now.id, self.id)
        stored = ((name, self._dialect.stored.format(self._side, name)) for name in self.resource.key_columns)
        return join(" AND ", (sql("{} = {}", now.column(name), Fragment(value)) for name, value in stored))


def negates(rule: Expr, resource: ResourceDef) -> bool:
    """Can a rule hold because a value is missing, directly or through a computed field?"""
    seen: list[Expr] = []

    def look(part: Expr) -> None:
        if isinstance(part, Not | IsNull | Mask | Choose):
            seen.append(part)

    rewrite(rule, look)
    own = (part.path[0] for part in leaves(rule) if isinstance(part, Col) and len(part.path) == 1)
    computed = (resource.fields[name].computed for name in own)
    return bool(seen) or any(expr is not None and negates(expr, resource) for expr in computed)
