"""Conditions of the model as text of the schema: CHECK constraints, and the rows of a partial index.

DDL takes no parameters, so constants become literals here. They are the model's own: nothing of a request gets here.
SQL's NULL is false, as everywhere: a CHECK would let it pass, so the condition is followed by IS TRUE.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from diptych.compile.dialect import POSTGRES, SQLITE
from diptych.compile.fragment import Fragment, identifier
from diptych.compile.system.object import DialectName
from diptych.compile.table_ref import BareRef, TableRef
from diptych.compile.where import Expressions
from diptych.model.defs import CheckDef, ResourceDef
from diptych.model.model import Model
from diptych.model.naming import LONGEST
from diptych.model.rules.expr import Const, Expr
from diptych.model.scalars import BOOLEAN, Scalar, encode_json

_DIALECTS = {"sqlite": SQLITE, "postgres": POSTGRES}
_MARKED = re.compile(r"[a-z0-9_]+_[0-9a-f]{8}", re.ASCII)


def check_constraints(model: Model, resource: ResourceDef, dialect: DialectName) -> Mapping[str, str]:
    """The CHECK constraints of a table, by name: `CONSTRAINT "…" CHECK (…)`."""
    return {
        name: f"CONSTRAINT {identifier(name).text} CHECK ({condition_text(check.expr, model, resource, dialect)})"
        for check in resource.checks.values()
        for name in (constraint_name(model, resource, check, dialect),)
    }


def constraint_name(model: Model, resource: ResourceDef, check: CheckDef, dialect: DialectName) -> str:
    """The name of a constraint; another condition has another name."""
    return name_of_check(resource.table, check.name, condition_text(check.expr, model, resource, dialect))


def name_of_check(table: str, name: str, text: str) -> str:
    """The name of the constraint of a check of a table."""
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{table}_{name}"[: LONGEST - 9].rstrip("_") + f"_{mark}"


def is_constraint_name(name: str, resource: ResourceDef) -> bool:
    """Could it be the name of a check of this resource, in an earlier form?"""
    return name.startswith(f"{resource.table}_") and _MARKED.fullmatch(name) is not None


def condition_text(expr: Expr, model: Model, resource: ResourceDef, dialect: DialectName) -> str:
    """A condition on the columns of a table, without parameters."""
    fragment = _Literals(model, _DIALECTS[dialect]).condition(expr, BareRef(resource, ""))
    assert not fragment.binds, fragment.text
    return f"({fragment.text}) IS TRUE"


def literal(value: Any, scalar: Scalar, dialect: DialectName) -> str:
    """A constant of the model as a literal."""
    convert = scalar.to_sqlite if dialect == "sqlite" else scalar.to_postgres
    stored: Any = convert(value) if convert else value
    if scalar is BOOLEAN:
        return ("true" if stored else "false") if dialect == "postgres" else str(int(stored))
    if isinstance(stored, int | float):
        return repr(stored)
    if isinstance(stored, dt.date | Decimal):
        stored = str(stored)
    shown = stored if isinstance(stored, str) else encode_json(stored)
    return "'" + shown.replace("'", "''") + "'"


class _Literals(Expressions):
    """Expressions with constants as literals."""

    def value(self, expr: Expr, row: TableRef, scalar: Scalar | None = None) -> Fragment:
        if not isinstance(expr, Const) or expr.value is None:
            return super().value(expr, row, scalar)
        name: DialectName = "sqlite" if self.dialect.name == "sqlite" else "postgres"
        text = literal(expr.value, expr.scalar, name)
        if name == "sqlite":
            return Fragment(text)
        cast = f"({text}::{expr.scalar.postgres_param.split('::')[-1]}"
        return Fragment(cast + (' COLLATE "C")' if expr.scalar.postgres_param == "text" else ")"))
