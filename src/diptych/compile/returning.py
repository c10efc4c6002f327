"""What a change returns: the id of its row and the answer; where a model is audited, it records who makes it too."""

from __future__ import annotations

from diptych.compile.dialect import Dialect
from diptych.compile.fragment import Fragment, sql
from diptych.compile.plan import ActBind
from diptych.compile.system.audit import ACT_OF_STATEMENT


def returning(
    change: Fragment, id: Fragment, answer: Fragment | None, dialect: Dialect, *, new: bool, acting: bool
) -> Fragment:
    """The whole statement of a change, of a new row or of one that is there."""
    shown = answer or Fragment("NULL")
    if acting and dialect.acting:
        act = sql(ACT_OF_STATEMENT, dialect.value(ActBind()))
        return sql(dialect.acting_new if new else dialect.acting, change, id, shown, act)
    return sql(dialect.returning_new if new else dialect.returning, change, id, shown)
