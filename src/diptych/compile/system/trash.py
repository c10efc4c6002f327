"""Soft delete: the triggers that keep references right when a row goes to the trash, and when it comes back.

They do for `deleted_at` what foreign keys do for a DELETE, in the statement itself, for writers of every kind:

    a row is deleted     restrict: refused while rows that are not deleted refer to it
                         set null: the references to it become null
                         cascade:  the rows that refer to it are deleted with the same moment, which is their mark
    a row is restored    the rows with its mark that refer to it come back, if all else that they refer to is there

So a row that is not deleted never refers to a deleted one. On PostgreSQL, where writers run side by side, a deletion
locks its row as a DELETE does, and a new reference locks the row that it leads to, and looks whether it is deleted.
SQLite fires a trigger for rows that it changes itself only with `recursive_triggers`, which the store sets where rows
of one table can be deleted along with others of it (`is_recursive`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from diptych.compile.fragment import identifier
from diptych.compile.system.object import MARK, DialectName, SystemObject
from diptych.model.defs import ResourceDef
from diptych.model.naming import LONGEST

REFERS = "diptych_refers_"
"""How the names of triggers begin that look where a reference leads to."""
_GONE = "OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL"
_BACK = "OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS NULL"


class TrashReference(Struct, frozen=True):
    """A column that refers to rows of a table with a trash."""

    table: str
    column: str
    target: str
    on_delete: str
    has_trash: bool
    """Does its own table have a trash?"""

    @property
    def key(self) -> str:
        """The name of its foreign key in PostgreSQL, by default."""
        return f"{self.table}_{self.column}_fkey"


def trash_objects(resources: Mapping[str, ResourceDef], dialect: DialectName) -> Iterator[SystemObject]:
    """The triggers of all tables with a trash, and of those that refer to them."""
    tables = {resource.table: bool(resource.trash) for resource in resources.values()}
    return trash_triggers(tables, list(_references(resources)), dialect)


def trash_triggers(
    tables: Mapping[str, bool], references: Sequence[TrashReference], dialect: DialectName
) -> Iterator[SystemObject]:
    """The triggers of the trash for tables without a model; `tables` says which of them have a trash."""
    for table, has_trash in tables.items():
        if has_trash:
            inbound = [reference for reference in references if reference.target == table]
            statements = _Statements(table, inbound, references)
            yield from _sqlite(statements) if dialect == "sqlite" else _postgres(statements)
        own = [reference for reference in references if reference.table == table]
        if own and dialect == "postgres":
            yield from _referring(table, own, has_trash=has_trash)


def is_recursive(resources: Mapping[str, ResourceDef]) -> bool:
    """Can a deletion take rows of its own table along?"""
    edges = {(reference.target, reference.table) for reference in _references(resources) if reference.has_trash}
    while True:
        more = {(start, to) for start, middle in edges for other, to in edges if middle == other} - edges
        if not more:
            return any(start == to for start, to in edges)
        edges |= more


def _references(resources: Mapping[str, ResourceDef]) -> Iterator[TrashReference]:
    for resource in resources.values():
        for relation in resource.ways.values():
            target = resources[relation.target]
            if relation.kind == "one" and target.trash and resource.managed:
                yield TrashReference(
                    resource.table, relation.column, target.table, relation.on_delete, bool(resource.trash)
                )


class _Statements:
    """What happens to the rows that refer to a row of one table."""

    def __init__(self, table: str, inbound: Sequence[TrashReference], references: Sequence[TrashReference]) -> None:
        self.table = table
        self.inbound = inbound
        self._references = references

    def restricting(self) -> Iterator[tuple[TrashReference, str]]:
        """The references that refuse a deletion, each with the query of the rows that do."""
        for reference in self.inbound:
            if reference.on_delete == "restrict":
                there = " AND deleted_at IS NULL" * reference.has_trash
                yield reference, f"SELECT 1 FROM {_q(reference.table)} WHERE {_q(reference.column)} = NEW.id{there}"

    def deleting(self) -> Iterator[str]:
        for reference in self.inbound:
            if reference.on_delete == "set null":
                yield _update(reference, f"{_q(reference.column)} = NULL", "")
        for reference in self.inbound:
            if reference.on_delete == "cascade":
                yield _update(reference, "deleted_at = NEW.deleted_at", " AND deleted_at IS NULL")

    def restoring(self) -> Iterator[str]:
        for reference in self.inbound:
            if reference.on_delete != "set null" and reference.has_trash:
                others = "".join(f" AND {self._there(other)}" for other in self._beside(reference))
                yield _update(reference, "deleted_at = NULL", f" AND deleted_at = OLD.deleted_at{others}")

    def _beside(self, reference: TrashReference) -> Iterator[TrashReference]:
        """The other references of the same rows."""
        for other in self._references:
            if other.table == reference.table and other.column != reference.column:
                yield other

    @staticmethod
    def _there(reference: TrashReference) -> str:
        column = f"{_q(reference.table)}.{_q(reference.column)}"
        own = f" OR {column} = {_q(reference.table)}.id" if reference.table == reference.target else ""
        row = f"SELECT 1 FROM {_q(reference.target)} _o WHERE _o.id = {column} AND _o.deleted_at IS NULL"
        return f"({column} IS NULL{own} OR EXISTS ({row}))"


def _update(reference: TrashReference, change: str, condition: str) -> str:
    table = _q(reference.table)
    stamps = "version = version + 1, updated_at = NEW.updated_at"
    return f"UPDATE {table} SET {change}, {stamps} WHERE {_q(reference.column)} = NEW.id{condition}"


def _sqlite(statements: _Statements) -> Iterator[SystemObject]:
    refuse = "SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed') WHERE EXISTS ({})"
    gone = [refuse.format(query) for _, query in statements.restricting()]
    for kind, when, body in (
        ("trashed", f"AFTER {_GONE}", [*gone, *statements.deleting()]),
        ("restored", f"AFTER {_BACK}", [*statements.restoring()]),
        # a row that was deleted along with another one while its own UPDATE was on its way there
        ("trashing", "BEFORE OLD.deleted_at = NEW.deleted_at", ["SELECT RAISE(IGNORE)"]),
    ):
        name = f'"diptych_{kind}_{statements.table}"'
        lines = "".join(f"  {statement};\n" for statement in body or ["SELECT 1"])
        time, _, condition = when.partition(" ")
        head = f"CREATE TRIGGER {name} {time} UPDATE OF deleted_at ON {_q(statements.table)} FOR EACH ROW"
        create = f"{head} WHEN {condition}\nBEGIN {MARK}{lines}END"
        yield SystemObject(name.strip('"'), (f"DROP TRIGGER IF EXISTS {name}", create), create)


_TRASH_BODY = """
BEGIN
  IF TG_WHEN = 'BEFORE' THEN  -- as a DELETE: who refers to the row now is waited for
    PERFORM 1 FROM {table} WHERE id = OLD.id FOR UPDATE;
    RETURN NEW;
  END IF;
  IF {gone} THEN
{deleting}
  ELSE
{restoring}
  END IF;
  RETURN NULL;
END
"""
_REFUSE = """    IF EXISTS ({query}) THEN
      RAISE EXCEPTION 'rows of {other} refer to the row'
        USING ERRCODE = '23503', TABLE = '{other}', CONSTRAINT = '{key}';
    END IF;"""


def _postgres(statements: _Statements) -> Iterator[SystemObject]:
    table = statements.table
    gone = [
        _REFUSE.format(query=query, other=reference.table, key=reference.key)
        for reference, query in statements.restricting()
    ]
    gone += [f"    {statement};" for statement in statements.deleting()]
    back = [f"    {statement};" for statement in statements.restoring()]
    body = _TRASH_BODY.format(
        table=_q(table), gone=_GONE, deleting="\n".join(gone) or "    NULL;", restoring="\n".join(back) or "    NULL;"
    )
    function = _name(f"diptych_trash_{table}")
    yield _function(function, body)
    for name, event, when in (
        ("diptych_trash", "AFTER", f"({_GONE}) OR ({_BACK})"),
        ("diptych_trash_lock", "BEFORE", _GONE),
    ):
        create = (
            f"CREATE TRIGGER {name} {event} UPDATE OF deleted_at ON {_q(table)} FOR EACH ROW WHEN ({when}) "
            f"EXECUTE FUNCTION {_q(function)}()"
        )
        yield SystemObject(f"{name} on {table}", (create,))


_REFER_BODY = """
BEGIN
{tests}
  RETURN NEW;
END
"""
_REFER = """  IF NEW.{column} IS NOT NULL{own}{there}
    AND (TG_OP = 'INSERT' OR NEW.{column} IS DISTINCT FROM OLD.{column}{back}) THEN
    PERFORM 1 FROM {target} WHERE id = NEW.{column} AND deleted_at IS NULL FOR KEY SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the row refers to none' USING ERRCODE = '23503', TABLE = '{table}', CONSTRAINT = '{key}';
    END IF;
  END IF;"""


def _referring(table: str, references: Sequence[TrashReference], *, has_trash: bool) -> Iterator[SystemObject]:
    """PostgreSQL: a new reference, or one of a row that is restored, leads to a row that is not deleted."""
    tests = "\n".join(
        _REFER.format(
            column=_q(reference.column),
            own=f" AND NEW.{_q(reference.column)} <> NEW.id" * (reference.target == table),
            there=" AND NEW.deleted_at IS NULL" * reference.has_trash,
            back=" OR OLD.deleted_at IS NOT NULL" * reference.has_trash,
            target=_q(reference.target),
            table=table,
            key=reference.key,
        )
        for reference in references
    )
    function = _name(f"{REFERS}{table}")
    yield _function(function, _REFER_BODY.format(tests=tests))
    columns = [*(reference.column for reference in references), *(["deleted_at"] if has_trash else [])]
    listed = ", ".join(map(_q, columns))
    mark = hashlib.sha256(listed.encode()).hexdigest()[:8]
    create = (
        f"CREATE TRIGGER {REFERS}{mark} BEFORE INSERT OR UPDATE OF {listed} ON {_q(table)} FOR EACH ROW "
        f"EXECUTE FUNCTION {_q(function)}()"
    )
    yield SystemObject(f"{REFERS}{mark} on {table}", (create,))


def _function(name: str, body: str) -> SystemObject:
    body += MARK
    create = f"CREATE OR REPLACE FUNCTION {_q(name)}() RETURNS trigger LANGUAGE plpgsql"
    text = body.replace("%", "%%")
    made = f"{create} SET search_path = %I, pg_temp AS $body${text}$body$"
    return SystemObject(f"{name}()", (f"DO $do$ BEGIN EXECUTE format($f${made}$f$, current_schema()); END $do$",), body)


def _name(name: str) -> str:
    """A name that is not too long for PostgreSQL."""
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _q(name: str) -> str:
    return identifier(name).text
