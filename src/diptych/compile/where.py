"""Expressions → SQL: conditions and values over a row that has an alias.

Logic is two-valued and SQL's is not. A comparison with null gives SQL's NULL, which a WHERE takes as false, and
so do AND and OR; only a negation would differ, so NOT is written `IS NOT TRUE`.

    Not(Compare("eq", Col(("note",)), Slot(0)))     →     (_t0."note" = ?1) IS NOT TRUE
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, identifier, join, sql
from diptych.compile.members import member
from diptych.compile.own_row import own_row
from diptych.compile.plan import ConstBind, NowBind, SlotBind, ViewerBind
from diptych.compile.related import RelatedValues
from diptych.compile.sets import as_element, membership
from diptych.compile.system.searching import SearchIndex
from diptych.compile.table_ref import GroupRef, TableRef, key_text, same_key
from diptych.compile.time_arithmetic import elapsed, shifted
from diptych.model.aggregates import measure_scalar
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.folding import fold
from diptych.model.model import Model
from diptych.model.operators import FOLDED, SEARCHES
from diptych.model.rules.expr import (
    TRUE,
    And,
    Choose,
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    GroupKey,
    Has,
    IsNull,
    KeyText,
    Mask,
    Matches,
    Measure,
    Moment,
    Not,
    Or,
    Part,
    RowDigest,
    Shift,
    Slice,
    Slot,
    Span,
    Via,
    ViewerId,
    ViewerValue,
    is_condition,
    rewrite,
)
from diptych.model.scalars import BOOLEAN, DATETIME, DURATION, ID, INT, STRING, TEXT_ID, Scalar
from diptych.model.searching import MARKS, search_scalar
from diptych.model.viewer_object import USER, USER_KEY

FOLDED_STRING = replace(STRING, to_sqlite=fold, to_postgres=fold)
"""A text that is folded before it is bound."""
_SIGNS = {"eq": "{} = {}", "lt": "{} < {}", "lte": "{} <= {}", "gt": "{} > {}", "gte": "{} >= {}"}


class Expressions(RelatedValues):
    """Writes expressions for one dialect; every table that it opens gets an alias of its own."""

    def __init__(self, model: Model, dialect: Dialect, sizes: Mapping[int, int] | None = None) -> None:
        self.model = model
        self.dialect = dialect
        self.sizes = sizes or {}
        """The page sizes that are known beforehand, by their slots."""
        self.joins = dialect.joins
        self.opened: set[str] = set()
        """The resources whose tables were opened."""
        self.groups_of: dict[int, GroupRef] = {}
        """The groups that are read like rows, by the identity of their page."""
        self.searches = False
        """Was anything written whose time grows with the length of a text?"""
        self._aliases = 0

    def open(self, resource: str) -> TableRef:
        """A new row of a resource."""
        row = TableRef(self.model.resources[resource], f"_t{self._aliases}")
        self._aliases += 1
        self.opened.add(resource)
        return row

    def source(self, row: TableRef) -> Fragment:
        """The table of a row, with its alias. The viewer has none: it is a row of one column, the id of its user."""
        if isinstance(row, GroupRef):
            return sql("({}) " + row.alias, row.select)
        if not row.resource.table:
            user = row.resource.relations.get(USER)
            key = ViewerBind(self.model.resources[user.target].key if user else STRING, "" if user else "@id")
            return sql("(SELECT {} AS {}) " + row.alias, self.dialect.value(key), identifier(USER_KEY))
        return sql("{} " + row.alias, identifier(row.resource.table))

    def joined(self, row: TableRef) -> Fragment:
        """The table of a row with its joins; to be called after the text of the row is written."""
        return join("", (self.source(row), *row.joins))

    def all(self, row: TableRef, *conditions: Fragment | Expr) -> Fragment:
        """WHERE with all of the conditions, or nothing if there is none."""
        parts = [
            self.condition(condition, row) if not isinstance(condition, Fragment) else condition
            for condition in conditions
            if condition != TRUE
        ]
        return sql(" WHERE {}", join(" AND ", parts)) if parts else Fragment("")

    # conditions

    def condition(self, expr: Expr, row: TableRef) -> Fragment:
        """Something that is true or false of the row (where SQL says NULL, it is false)."""
        through = _shared_step(expr)
        if through:
            return self._at(through, expr, row)
        match expr:
            case And(of):
                return (
                    sql("({})", join(" AND ", (self.condition(part, row) for part in of))) if of else Fragment("1 = 1")
                )
            case Or(of):
                return (
                    sql("({})", join(" OR ", (self.condition(part, row) for part in of))) if of else Fragment("1 = 0")
                )
            case Not(of):
                return sql("({}) IS NOT TRUE", self.condition(of, row))
            case IsNull(of):
                return sql("{} IS NULL", self.value(of, row))
            case Compare("eq", Col(("id",)), Slot() as id) if len(row.resource.key_columns) > 1:
                return own_row(row, id, self.dialect)
            case Compare("eq", Col((name,)), Slot() as id) if columns := _refers_by(row.resource, name):
                return own_row(row, id, self.dialect, columns)
            case Compare():
                return self._compare(expr, row)
            case Matches(of, text):
                return self._matches(of, text, row)
            case Has(relation, where, link):
                return self._has(row, row.resource.relations[relation], where, link or TRUE)
        return self.value(expr, row)

    def _compare(self, expr: Compare, row: TableRef) -> Fragment:
        scalar = self.scalar(expr.left, row.resource) or self.scalar(expr.right, row.resource) or STRING
        left, right = self._compared(expr, row, scalar), self.value(expr.right, row, scalar)
        self.searches = self.searches or scalar.is_json or expr.op in SEARCHES
        if scalar.items is not None and expr.op != "eq":
            if not isinstance(expr.right, Slot | Const):
                item = scalar.items
                right = as_element(self.value(expr.right, row, item), self.dialect.name)
            return membership(expr.op, left, right, self.dialect.name)
        op: str = expr.op
        if op in FOLDED:
            op, left, right = FOLDED[op], sql(self.dialect.fold, left), self._folded(expr.right, right)
        match op:
            case "eq" if scalar.is_json:
                return sql(self.dialect.same_json, left, right)
            case "in":
                return sql(self.dialect.is_in, left, right)
            case "contains":
                return sql(self.dialect.contains, left, right)
            case "startsWith":
                return sql(self.dialect.starts_with, left, right)
            case "endsWith":
                return sql(self.dialect.ends_with, left, right)
        if op not in _SIGNS:
            raise NotImplementedError(f"{op} has no SQL: write it here, in compile/where.py")
        return sql(_SIGNS[op], left, right)

    def _compared(self, expr: Compare, row: TableRef, scalar: Scalar) -> Fragment:
        """The left side of a comparison: a column that equals a value is found by the index that its table has."""
        match expr:
            case Compare("eq" | "in", Col((name,)), Slot() | ViewerId() | ViewerValue()) if not row.resource.managed:
                field = row.resource.fields[name]
                if field.stored and not field.cast and self.dialect.name == "postgres":
                    return row.column(field.column)
        return self.value(expr.left, row, scalar)

    def _matches(self, of: Iterable[Expr], text: Expr, row: TableRef) -> Fragment:
        """A full-text search, by the index of the resource: so it is about a row of the table, as it is."""
        resource = row.resource
        named = {part.path[0] for part in of if isinstance(part, Col)}
        marks = "".join(mark for mark, name in zip(MARKS, resource.search, strict=False) if name in named)
        assert isinstance(text, Slot) and marks
        self.searches = True
        index = SearchIndex(resource, "sqlite" if self.dialect.name == "sqlite" else "postgres")
        columns = [row.column(column) for column in index.columns]
        return index.condition(row.id, columns, self.dialect.value(SlotBind(text.index, search_scalar(marks))))

    def _folded(self, expr: Expr, value: Fragment) -> Fragment:
        """What a folded text is compared with: what a client sends is folded once, before it is bound."""
        if isinstance(expr, Slot):
            return self.dialect.value(SlotBind(expr.index, FOLDED_STRING))
        return sql(self.dialect.fold, value)

    def _has(self, row: TableRef, relation: RelationDef, where: Expr, link: Expr) -> Fragment:
        target = self.open(relation.target)
        tied = self.tie(row, relation, target, link)
        return sql("EXISTS (SELECT 1 FROM {}{})", self.source(target), self.all(target, tied, where))

    def _at(self, step: str, expr: Expr, row: TableRef) -> Fragment:
        """A condition that is all about one related row: look it up once."""
        relation = row.resource.relations[step]
        target = self.open(relation.target)
        inner = rewrite(expr, lambda part: Col(part.path[1:]) if isinstance(part, Col) else None)
        where = self.all(target, self.tie(row, relation, target, TRUE), inner)
        return sql("EXISTS (SELECT 1 FROM {}{})", self.source(target), where)

    def tie(self, row: TableRef, relation: RelationDef, target: TableRef, link: Expr) -> Fragment:
        """The condition that ties a related row to this one."""
        mine = row.resource.key_columns
        if relation.kind == "one":
            return same_key(target, target.resource.key_columns, row, relation.refers_by)
        if relation.kind == "many":
            return same_key(target, relation.refers_by, row, mine)
        links = self.open(relation.link)
        where = self.all(links, same_key(links, relation.refers_by, row, mine), link)
        key = join(", ", map(target.column, target.resource.key_columns))
        theirs = join(", ", map(links.column, relation.leads_by))
        several = "({})" if relation.other_columns else "{}"
        return sql(several + " IN (SELECT {} FROM {}{})", key, theirs, self.source(links), where)

    # values

    def value(self, expr: Expr, row: TableRef, scalar: Scalar | None = None) -> Fragment:
        """A value of the row. `scalar` is the type that a viewer's id is taken for."""
        match expr:
            case Col(path):
                return self._column(path, row)
            case Slot(index, kind, many):
                return self.dialect.value(SlotBind(index, kind, many))
            case Const(value, kind):
                return Fragment("NULL") if value is None else self.dialect.value(ConstBind(value, kind))
            case Moment(kind, offset):
                return self.dialect.value(NowBind(kind, offset))
            case ViewerId():
                return self.dialect.value(ViewerBind(scalar or ID))
            case ViewerValue(name, kind, many):
                return self.dialect.value(ViewerBind(kind, name, many))
            case Mask(rule, of):
                return sql("CASE WHEN {} THEN {} END", self.condition(rule, row), self.value(of, row))
            case Choose(when, then, other):
                return sql(
                    "CASE WHEN {} THEN {} ELSE {} END",
                    self.condition(when, row),
                    self.value(then, row),
                    self.value(other, row),
                )
            case Concat(of):
                return sql("({})", join(" || ", (self.value(part, row) for part in of)))
            case Slice() | Shift() | Span() | Part() | KeyText() | RowDigest():
                return self._derived(expr, row)
            case GroupKey() | Measure() | Via():
                return self.of_others(expr, row)
        return sql(self.dialect.boolean, self.condition(expr, row))

    def new_value(self, expr: Expr, row: TableRef, scalar: Scalar) -> Fragment:
        """A value that a column takes; it can be compared like the column."""
        if expr == Const(None, scalar):
            return self.dialect.null(scalar)
        value = self.value(expr, row, scalar)
        return self.dialect.collated(value, scalar) if isinstance(expr, Slot) else value

    def _derived(self, expr: Slice | Shift | Span | Part | KeyText | RowDigest, row: TableRef) -> Fragment:
        match expr:
            case KeyText(of):
                return sql(self.dialect.plain_text, key_text(self.value(part, row) for part in of))
            case RowDigest():
                stored = [field.column for field in row.resource.fields.values() if field.stored]
                return self.dialect.digest_of(map(row.column, stored))
            case Slice():
                return self._slice(expr, row)
            case Part():
                return member(self.value(expr.of, row), expr.name, expr.scalar, self.dialect.name)
        return self._time(expr, row)

    def _time(self, expr: Shift | Span, row: TableRef) -> Fragment:
        database = self.dialect.name
        if isinstance(expr, Shift):
            kind = self.scalar(expr.of, row.resource) or DATETIME
            return shifted(self.value(expr.of, row), kind, expr.delta, database)
        kind = self.scalar(expr.left, row.resource) or DATETIME
        return elapsed(self.value(expr.left, row), self.value(expr.right, row), kind, database)

    def _slice(self, expr: Slice, row: TableRef) -> Fragment:
        length = "" if expr.length is None else f", {expr.length}"
        return sql(f"substr({{}}, {expr.start + 1}{length})", self.value(expr.of, row))

    def _column(self, path: tuple[str, ...], row: TableRef) -> Fragment:
        name, *rest = path
        if not rest:
            field = row.resource.fields[name]
            if field.computed is not None:
                return self.value(field.computed, row)
            column = row.column(field.column) if field.stored else row.id  # of a key of several columns
            return column if row.resource.managed else self.dialect.stored_value(column, field)
        relation = row.resource.relations[name]
        target = self.open(relation.target)
        where = self.all(target, self.tie(row, relation, target, TRUE))
        return sql("(SELECT {} FROM {}{})", self._column(tuple(rest), target), self.source(target), where)

    def scalar(self, expr: Expr, resource: ResourceDef) -> Scalar | None:
        """The type of a value, where it is known."""
        match expr:
            case Col(path):
                return self.field(path, resource).scalar
            case Slot(scalar=scalar) | Const(scalar=scalar) | ViewerValue(scalar=scalar) | Moment(scalar=scalar):
                return scalar
            case Part(scalar=scalar):
                return scalar
            case Mask(of=of) | Choose(then=of) | Shift(of=of):
                return self.scalar(of, resource)
            case Span():
                return DURATION
            case Concat() | Slice():
                return STRING
            case KeyText():
                return TEXT_ID
            case RowDigest():
                return INT
            case GroupKey(of):
                return self.scalar(of, resource)
            case Via(relation, of):
                return self.scalar(of, self.model.resources[resource.relations[relation].target])
            case Measure(fn, of, relation):
                rows = self.model.resources[resource.relations[relation].target] if relation else resource
                return measure_scalar(fn, None if fn == "count" else self.scalar(of, rows))
        return BOOLEAN if is_condition(expr) else None

    def field(self, path: tuple[str, ...], resource: ResourceDef) -> FieldDef:
        """The field at the end of a path of to-one relations."""
        for step in path[:-1]:
            resource = self.model.resources[resource.relations[step].target]
        return resource.fields[path[-1]]

    def nullable(self, expr: Expr, resource: ResourceDef) -> bool:
        """Can the value be null?"""
        match expr:
            case Col(path):
                return len(path) > 1 or self.field(path, resource).nullable
            case Choose(_, then, other):
                return self.nullable(then, resource) or self.nullable(other, resource)
            case Slice(of) | Shift(of):
                return self.nullable(of, resource)
            case Span(left, right):
                return self.nullable(left, resource) or self.nullable(right, resource)
            case Moment() | RowDigest():
                return False
            case Concat(of) | KeyText(of):
                return any(self.nullable(part, resource) for part in of)
            case Const(value):
                return value is None
            case Measure(fn):
                return fn not in ("count", "distinct")
        return not is_condition(expr)


def _refers_by(resource: ResourceDef, name: str) -> tuple[str, ...]:
    """The columns of a field that is the key of a relation by several; () if it is none."""
    field = resource.fields.get(name)
    return resource.relations[field.relation].columns if field is not None and field.relation else ()


def _shared_step(expr: Expr) -> str:
    """The one to-one relation that a plain condition is all about, if it is; looking it up once is enough.

    Only where every part fails on a missing row, so not under a negation.
    """
    if not isinstance(expr, And | Or | Compare | Col):
        return ""
    steps = set(_first_steps(expr))
    return steps.pop() if len(steps) == 1 else ""


def _first_steps(expr: Expr) -> Iterable[str]:
    match expr:
        case And(of) | Or(of):
            for part in of:
                yield from _first_steps(part)
        case Compare(_, Col(path), Slot() | Const() | Moment() | ViewerId() | ViewerValue()) | Col(path):
            yield path[0] if len(path) > 1 else ""
        case _:
            yield ""
