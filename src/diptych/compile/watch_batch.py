"""Watch → SQL for many groups at once: one statement evaluates the same changes for all values and viewers of a plan.

    WITH _changes AS (the changes between two positions, the first ones), _groups AS (a row of values for each group)
    SELECT [oldest, reached, [[number, [change, …]], …]] FROM _groups

What is selected for a group is what `compile/watch.py` writes for one alone, rules and all; only where that binds a
value that differs by group, this refers to a column of `_groups`. So a row of `_groups` sees what its own values allow,
and no rule is written a second time. A value is bound in the form that it has for one group alone: PostgreSQL takes an
array of each, SQLite a JSON array of rows, as far as JSON holds the values exactly (`is_exact`).

`reached` is where the batch ends: the end of the range, or the last of as many changes as were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from diptych.ask.nodes import Watch
from diptych.compile.dialect import POSTGRES, SQLITE, Dialect
from diptych.compile.fragment import Fragment, bind, identifier, join, sql, substitute, to_sql
from diptych.compile.plan import (
    Bind,
    GroupsBind,
    KeyBind,
    Plan,
    SealBind,
    SlotBind,
    ViewerBind,
)
from diptych.compile.watch import WatchStatements, feed_range
from diptych.model.model import Model
from diptych.model.rules.expr import Expr

_IN_LIMIT = re.compile(r"(?:LIMIT|OFFSET) [+(]*[?$](\d+)")
"""A bound value in a LIMIT or an OFFSET, where SQLite takes no column."""
_LARGEST = 2**63 - 1
_DIALECTS: Mapping[str, Dialect] = {
    "sqlite": replace(
        SQLITE,
        changes="(SELECT _f.*, {2} AS _was, {3} AS _becomes FROM _changes _f) _f WHERE (_f._was OR _f._becomes)",
    ),
    "postgres": replace(
        POSTGRES,
        changes="_changes _f CROSS JOIN LATERAL (SELECT {2} AS _was, {3} AS _becomes) _v "
        "WHERE (_v._was OR _v._becomes)",
        stored='(_f._{0})."{1}"',
        is_now='_t."id" = (_f._new)."id"',
    ),
}
"""The changes are read once for all groups, and so are the rows that they hold."""
_CHANGES = {
    "sqlite": "SELECT * FROM diptych_feed _f WHERE {0} ORDER BY _f.position LIMIT +{2}",
    "postgres": "SELECT _f.*, _f_old AS _old, _f_new AS _new FROM (SELECT * FROM diptych_feed _f WHERE {0} "
    "ORDER BY _f.position LIMIT {2}) _f "
    "LEFT JOIN LATERAL diptych_row((SELECT _t FROM {1} _t WHERE false), _f.old) _f_old ON true "
    "LEFT JOIN LATERAL diptych_row((SELECT _t FROM {1} _t WHERE false), _f.new) _f_new ON true ORDER BY _f.position",
}
_REACHED = "(SELECT CASE WHEN count(*) < {0} THEN {1} ELSE max(_c.position) END FROM _changes _c)"
_WHOLE = {
    "sqlite": "WITH _changes AS MATERIALIZED ({0}), _groups AS MATERIALIZED ({1}) SELECT CAST('[' || {2} || ',' || {3} "
    "|| ',[' || (SELECT group_concat({4}, ',') FROM _groups) || ']]' AS BLOB)",
    "postgres": "WITH _changes AS MATERIALIZED ({0}) SELECT "
    + POSTGRES.bounded.replace("{}", "'[' || {2}::text || ',' || {3}::text || ',[' || string_agg({4}, ',') || ']]'")
    + " FROM {1}",
}


class BatchPlan(Struct, frozen=True, eq=False):
    """The statement of a batch, and which values of the groups' own plan each placeholder takes."""

    plan: Plan
    sources: tuple[int | GroupsBind, ...]
    """The number of a value that is the same for all groups, or what to make of theirs."""

    def parameters(self, groups: Sequence[Sequence[Any]]) -> list[Any]:
        """The bound values, from those of each group."""
        first = groups[0]
        return [
            first[source] if isinstance(source, int) else _FORMS[source.form](source.of, groups)
            for source in self.sources
        ]


def varying(plan: Plan, slots: int) -> tuple[int, ...]:
    """The numbers of the values of a plan that may differ between the groups of a batch."""
    limits = {int(number) - 1 for number in _IN_LIMIT.findall(plan.sql)}
    return tuple(at for at, value in enumerate(plan.binds) if at not in limits and _differs(value, slots))


def _differs(value: Bind, slots: int) -> bool:
    match value:
        case SlotBind(slot):
            return slot < slots
        case KeyBind() | ViewerBind() | SealBind():
            return True
        case _:
            return False


def is_exact(dialect: Dialect, binds: Sequence[Bind], values: Sequence[Any], numbers: Sequence[int]) -> bool:
    """Does a batch bind exactly these values? If not, their group is evaluated alone."""
    holds = _is_exact_json if dialect.name == "sqlite" else _is_exact_array
    return all(isinstance(binds[at], SealBind) or holds(values[at], binds[at]) for at in numbers)


def _is_exact_json(value: Any, _: Bind) -> bool:
    """SQLite ends a JSON text at the escape of NUL, and may read another float than was written."""
    if type(value) is str:
        return "\0" not in value and (value.isascii() or _is_unicode(value))
    return value is None or type(value) is bool or (type(value) is int and -_LARGEST - 1 <= value <= _LARGEST)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_exact_array(value: Any, of: Bind) -> bool:
    """PostgreSQL has no array of arrays: it would be one array of two dimensions."""
    items = value if _is_list(of) else [value]
    return not any(isinstance(item, list | tuple) for item in items)


def _is_list(value: Bind) -> bool:
    return isinstance(value, SlotBind | ViewerBind) and value.many


def compile_watch_batch(
    watch: Watch,
    seen: Expr,
    deleted: Expr,
    readable: Expr,
    slots: int,
    model: Model,
    dialect: Dialect,
    sizes: Mapping[int, int],
    single: Plan,
    numbers: Sequence[int],
) -> BatchPlan:
    """The plan of a batch of groups of the plan `single`, whose values with these numbers differ."""
    writer = WatchStatements(model, _DIALECTS[dialect.name], sizes)
    after, upto, most = writer.bounds(slots)
    resource = model.resources[watch.resource]
    among = feed_range(resource, after, upto)
    rows = sql(dialect.rows, writer.rows(watch, seen, deleted, readable, among))
    source, columns = _SOURCES[dialect.name](dialect, single.binds, numbers)
    number = sql("{}::text" if dialect.name == "postgres" else "{}", Fragment("_groups._n"))
    statement = sql(
        _WHOLE[dialect.name],
        sql(_CHANGES[dialect.name], among, identifier(resource.table), most),
        source,
        Fragment(dialect.oldest),
        sql(_REACHED, most, upto),
        substitute(dialect.concat(["[", number, ",[", rows, "]]"]), columns),
    )
    text, binds = to_sql(statement, dialect.placeholder)
    known = {value: at for at, value in enumerate(single.binds)}
    sources = tuple(value if isinstance(value, GroupsBind) else known[value] for value in binds)
    # its time is not bounded by its text, so SQLite runs it in a worker
    return BatchPlan(Plan(text, binds, searches=True), sources)


_Source = tuple[Fragment, dict[Bind, Fragment]]


def _sqlite_groups(dialect: Dialect, binds: Sequence[Bind], numbers: Sequence[int]) -> _Source:
    """The rows of `_groups` from one JSON array, and the column of each bound value."""
    columns = [Fragment("_e.key + 1 AS _n")]
    for index, at in enumerate(numbers):
        value = f"json_extract(_e.value, '$[{index}]')"
        value = f"unhex({value})" if isinstance(binds[at], SealBind) else value
        columns.append(Fragment(f"{value} AS _v{at}"))
    rows = bind(GroupsBind(tuple(numbers), "rows"))
    refer: dict[Bind, Fragment] = {binds[at]: Fragment(f"_groups._v{at}") for at in numbers}
    return sql("SELECT {} FROM json_each({}) _e", join(", ", columns), rows), refer


def _postgres_groups(dialect: Dialect, binds: Sequence[Bind], numbers: Sequence[int]) -> _Source:
    """The rows of `_groups` from one array for each value; for lists, from slices of one array of all items."""
    arrays: list[Fragment] = []
    names: list[str] = []
    refer: dict[Bind, Fragment] = {}
    for at in numbers:
        value = binds[at]
        kind = _postgres_type(value)
        if _is_list(value):
            arrays += [sql("{}::integer[]", bind(GroupsBind((at,), form))) for form in ("starts", "ends")]
            names += [f"_s{at}", f"_e{at}"]
            items = bind(GroupsBind((at,), "items"))
            refer[value] = sql(f"({{}}::{kind}[])[_groups._s{at}:_groups._e{at}]", items)
        else:
            arrays.append(sql(f"{{}}::{kind}[]", bind(GroupsBind((at,), "values"))))
            names.append(f"_v{at}")
            refer[value] = Fragment(f"_groups._v{at}")
    columns = Fragment(", ".join([*names, "_n"]))
    return sql("unnest({}) WITH ORDINALITY AS _groups({})", join(", ", arrays), columns), refer


def _postgres_type(value: Bind) -> str:
    """The type in which a driver sends a value: the first of its casts."""
    if isinstance(value, SealBind):
        return "bytea"
    assert isinstance(value, SlotBind | KeyBind | ViewerBind)
    return value.scalar.postgres_param.partition("::")[0]


_SOURCES: Mapping[str, Callable[[Dialect, Sequence[Bind], Sequence[int]], _Source]] = {
    "sqlite": _sqlite_groups,
    "postgres": _postgres_groups,
}


def _items(of: Sequence[int], groups: Sequence[Sequence[Any]]) -> list[Any]:
    return [item for values in groups for item in values[of[0]]]


def _ends(of: Sequence[int], groups: Sequence[Sequence[Any]]) -> list[int]:
    end = 0
    return [end := end + len(values[of[0]]) for values in groups]


def _starts(of: Sequence[int], groups: Sequence[Sequence[Any]]) -> list[int]:
    return [end - len(values[of[0]]) + 1 for end, values in zip(_ends(of, groups), groups, strict=True)]


def _rows(of: Sequence[int], groups: Sequence[Sequence[Any]]) -> str:
    rows = [[_json_value(values[at]) for at in of] for values in groups]
    return msgspec.json.encode(rows).decode()


def _json_value(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


_FORMS: Mapping[str, Callable[[Sequence[int], Sequence[Sequence[Any]]], Any]] = {
    "values": lambda of, groups: [values[of[0]] for values in groups],
    "items": _items,
    "starts": _starts,
    "ends": _ends,
    "rows": _rows,
}
