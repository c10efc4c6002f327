"""The differences between a model and a database, each with what can be done about it.

    difference                      in the way             what mends it                         who
    a table, index is missing       –                      CREATE TABLE, CREATE INDEX            dev
    a column is missing             rows, if it must have  ALTER TABLE … ADD COLUMN              dev
                                    a value
    not null, and may be null       –                      ALTER COLUMN … DROP NOT NULL          dev
    may be null, and must not       nulls                  ALTER COLUMN … SET NOT NULL           dev
    not in the model any more, not  –                      ALTER COLUMN … DROP NOT NULL          dev
    null and without a default
    not unique, and should be       equal values           CREATE UNIQUE INDEX                   dev
    a check is missing              rows that break it     ADD CONSTRAINT … CHECK                dev
    a check that the model has not  –                      DROP CONSTRAINT                       dev
    a key is unique among deleted   –                      DROP CONSTRAINT, CREATE UNIQUE INDEX  dev (PostgreSQL)
    rows too
    rows are deleted, and the       such rows              the owner's DELETE                    –
    trash is gone
    a wider type (PostgreSQL)       –                      ALTER COLUMN … TYPE                   dev
    another foreign key             rows that refer to     ADD FOREIGN KEY (PostgreSQL)          dev
                                    nothing, or to rows
                                    of another table
    a meaning that holds less       values that it does    the record alone                      dev, serve
    (enum values, precision)        not hold
    a meaning that holds more       –                      the record alone                      dev, serve
    another meaning (scale)         values                 the owner's SQL, then `--accept`      –
    another type                    –                      the owner's SQL                       –

`serve` changes no table: what `dev` would mend, it refuses. An index that is not unique is none of its business, nor is
a missing CHECK, which it enforces itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from diptych.compile.catalogue import Catalogue, CatalogueColumn, ExistingReference
from diptych.compile.constraints import check_constraints, condition_text, is_constraint_name
from diptych.compile.fragment import identifier
from diptych.compile.indexes import DeclaredIndex, missing_indexes, of_new_table
from diptych.compile.meaning import Meaning, compatibility, meanings, misfit, obstacle, storage
from diptych.compile.system.object import DialectName
from diptych.compile.system.searching import SearchIndex, search_indexes
from diptych.compile.tables import new_column, new_table, set_null, set_reference, wanted
from diptych.compile.trash_differences import trash_differences
from diptych.model.defs import CheckDef, FieldDef, ResourceDef
from diptych.model.model import Model


class Difference(Struct, frozen=True):
    """One difference. It is settled if nothing is in its way, and what mends it may be done."""

    sentence: str
    """What differs, as a part of a sentence."""
    apply: tuple[str, ...] | None = None
    """The statements that fix it; empty if the record alone changes, None if only the owner can fix it."""
    after: tuple[str, ...] = ()
    """More of them, for when all tables and columns are there."""
    obstacle: str = ""
    """A query that finds a row which is in the way."""
    because: str = ""
    """Why such a row is in the way, as a part of the sentence."""
    fix: str = ""
    """What the owner can do, where there are no statements, or something is in their way."""
    done: str = ""
    """What was done when it is fixed; "" if that is not worth reporting."""
    optional: bool = False
    """Does the service keep its promises without?"""
    existing: bool = False
    """Is it about a table that Diptych did not make, and does not change?"""

    @property
    def statements(self) -> tuple[str, ...]:
        """All that mend it."""
        return (*(self.apply or ()), *self.after)


def compare(model: Model, have: Catalogue, dialect: DialectName, *, accept: bool = False) -> list[Difference]:
    """All differences. With `accept`, the record of columns is not compared with the model, but stored values are."""
    return list(_Comparison(model, have, dialect, accept).all())


class _Comparison:
    def __init__(self, model: Model, have: Catalogue, dialect: DialectName, accept: bool) -> None:
        self.model = model
        self.have = have
        self.dialect = dialect
        self.accept = accept
        self.want = wanted(model, dialect)
        self.means = meanings(model)
        self.lacking = missing_indexes(model, have.indexes, dialect)
        self.references: dict[tuple[str, str], list[ExistingReference]] = {}
        for reference in have.references:
            if reference.key in ("id", ""):
                self.references.setdefault((reference.table, reference.column), []).append(reference)
        self.there = [resource for resource in model.managed.values() if resource.table in have.tables]

    def all(self) -> Iterator[Difference]:
        for resource in self.model.managed.values():
            if resource.table not in self.have.tables:
                yield self._new_table(resource)
        for resource in self.there:
            for field in resource.fields.values():
                if field.stored and field.column not in self.have.tables[resource.table]:
                    yield self._new_column(resource, field)
                elif field.stored:
                    yield from self._column(resource, field)
            yield from self._left_over(resource)
            for trash in trash_differences(resource, self.have, self.dialect):
                yield Difference(**trash)
            yield from self._checks(resource)
        for index in self.lacking:
            if index.resource.table in self.have.tables:
                yield self._index(index)
        for search in search_indexes(self.model.managed.values(), self.dialect):
            if search.name not in self.have.searches:
                yield self._search(search)

    # tables and columns that are missing

    def _new_table(self, resource: ResourceDef) -> Difference:
        create, references = new_table(self.model, resource, self.dialect)
        indexes = [index.create for index in of_new_table(self.lacking, resource, self.dialect)]
        return Difference(
            f"the table {resource.table} is missing",
            (create,),
            (*references, *indexes),
            done=f"made the table {resource.table}",
        )

    def _new_column(self, resource: ResourceDef, field: FieldDef) -> Difference:
        table, name = resource.table, f"{resource.table}.{field.column}"
        statements = new_column(self.model, resource, field, self.dialect)
        look, because = "", ""
        filled = field.default is not None or (field.filled and self.dialect == "postgres")
        if field.counts is not None:
            pass  # the rows that are there are numbered
        elif not field.nullable and not filled:
            look, because = _look(table), ", and the rows that are there would have no value for it"
        elif field.unique and filled:
            look, because = f"{_look(table)} OFFSET 1", ", and the rows that are there would all have its default"
        renamed = self._renamed(resource, field)
        return Difference(
            f"the column {name} ({self.want[table][field.column].type}) is missing",
            statements,
            obstacle=look,
            because=because,
            fix=f"give {name} a default, make it optional, or add it with its values by hand{renamed}",
            done=f"added the column {name}{renamed}",
        )

    def _renamed(self, resource: ResourceDef, field: FieldDef) -> str:
        """What else it may be: a column that the model no longer has, under another name."""
        means = self.means[resource.table]
        for name, was in self.have.recorded.get(resource.table, {}).items():
            if name not in means and name in self.have.tables[resource.table] and was.kind == means[field.column].kind:
                table, old, new = (identifier(name).text for name in (resource.table, name, field.column))
                return f" (if it is {name} under another name: ALTER TABLE {table} RENAME COLUMN {old} TO {new})"
        return ""

    def _left_over(self, resource: ResourceDef) -> Iterator[Difference]:
        """Columns that the model does not have, and that every INSERT would have to fill."""
        for name, column in self.have.tables[resource.table].items():
            if name not in self.want[resource.table] and not column.nullable and not column.filled:
                ours = name in self.have.recorded.get(resource.table, {})
                sentence = f"the column {resource.table}.{name} is not in the model and must not be null"
                statements = (set_null(resource, name, nullable=True),) if ours else None
                done = f"kept the column {resource.table}.{name}, which the model no longer has, and let it be null"
                yield Difference(
                    sentence, statements, fix=f"let {name} be null, give it a default, or drop it", done=done
                )

    # columns that are there

    def _column(self, resource: ResourceDef, field: FieldDef) -> Iterator[Difference]:
        have, want = self.have.tables[resource.table][field.column], self.want[resource.table][field.column]
        name = f"{resource.table}.{field.column}"
        if have.type.lower() != want.type.lower():
            yield self._retyped(resource, field, have, want)
            return
        if have.nullable != want.nullable:
            yield self._null(resource, field.column, want)
        difference = self._meaning(name, resource.table, field.column)
        if difference is not None:
            yield difference
        if field.relation:
            yield from self._reference(resource, field)

    def _retyped(
        self, resource: ResourceDef, field: FieldDef, have: CatalogueColumn, want: CatalogueColumn
    ) -> Difference:
        name = f"{resource.table}.{field.column}"
        sentence = f"the column {name} is {have.type} and should be {want.type}"
        if self.dialect == "sqlite" or not _is_wider(have.type, want.type):
            return Difference(sentence, fix=f"{name}: {_BY_HAND}")
        table, column = identifier(resource.table).text, identifier(field.column).text
        statement = f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {want.type}"
        return Difference(sentence, (statement,), done=f"made the column {name} {want.type}")

    def _null(self, resource: ResourceDef, column: str, want: CatalogueColumn) -> Difference:
        statements = (set_null(resource, column, nullable=want.nullable),)
        should, is_now = ("may", "must not") if want.nullable else ("must not", "may")
        sentence = f"the column {resource.table}.{column} {is_now} be null and {should} be null"
        done = f"let the column {resource.table}.{column} be null" if want.nullable else ""
        return Difference(
            sentence,
            statements,
            obstacle="" if want.nullable else _look(resource.table, f"{identifier(column).text} IS NULL"),
            because=", and rows have null there",
            fix=f"give the rows of {_all(resource.table, f'{identifier(column).text} IS NULL')} a value",
            done=done or f"made the column {resource.table}.{column} NOT NULL",
        )

    def _meaning(self, name: str, table: str, column: str) -> Difference | None:
        """A column of the right type whose values may not be what the model takes them for."""
        now = self.means[table][column]
        was = self.have.recorded.get(table, {}).get(column)
        if was is None or self.accept:
            unfit = misfit(now, column, self.dialect) if self.accept or now.type == "Enum" else ""
            return _unfit(name, table, now, unfit) if unfit else None
        if was.kind == now.kind:
            return None
        unfit = obstacle(was, now, column, self.dialect)
        if storage(was, self.dialect).lower() != self.have.tables[table][column].type.lower():
            unfit = misfit(now, column, self.dialect)  # its owner has made another column of it
        elif compatibility(was, now, self.dialect) == "other":
            return self._other(name, table, column, was, now, unfit)
        return _unfit(name, table, now, unfit, done=f"took the column {name} for {now}")

    def _other(self, name: str, table: str, column: str, was: Meaning, now: Meaning, unfit: str) -> Difference:
        """A column of the same type, and of another meaning."""
        return Difference(
            f"the column {name} holds values of the type {was}, and the model has {now}",
            (),
            obstacle=_look(table, unfit),
            fix=_converted(table, column, was, now),
            done=f"took the column {name}, which holds no values, for {now}",
        )

    # what the database enforces

    def _reference(self, resource: ResourceDef, field: FieldDef) -> Iterator[Difference]:
        relation = resource.relations[field.relation]
        target = self.model.resources[relation.target].table
        references = self.references.get((resource.table, field.column), [])
        if any((reference.target, reference.on_delete) == (target, relation.on_delete) for reference in references):
            return
        sentence = (
            f"the column {resource.table}.{field.column} {_reference_text(references, target, relation.on_delete)}"
        )
        if self.dialect == "sqlite":
            yield Difference(sentence, fix=f"{resource.table}.{field.column}: {_BY_HAND}")
            return
        table, column = identifier(resource.table).text, identifier(field.column).text
        drops = (f"ALTER TABLE {table} DROP CONSTRAINT {_quoted(reference.name)}" for reference in references)
        statements = (*drops, set_reference(self.model, resource, field))
        if references and target not in {
            reference.target for reference in references
        }:  # ids of other rows, even if there are equal ones
            where, because = f"{column} IS NOT NULL", f", and rows refer to {references[0].target}"
        else:
            there = f"SELECT 1 FROM {identifier(target).text} o WHERE o.id = t.{column}"
            where = f"{column} IS NOT NULL" + f" AND NOT EXISTS ({there})" * (target in self.have.tables)
            because = ", and rows refer to what is not there"
        yield Difference(
            sentence,
            (),
            statements,
            obstacle=_look(resource.table, where),
            because=because,
            fix=f"mend or delete the rows of {_all(resource.table, where)}",
            done=f"made the foreign key of {resource.table}.{field.column} anew",
        )

    def _index(self, index: DeclaredIndex) -> Difference:
        table, columns = index.resource.table, index.columns
        name = f"{table}.{columns[0]}" if len(columns) == 1 else f"{table} ({', '.join(columns)})"
        if not index.unique:
            sentence = f"the database has no index on {name}"
            return Difference(sentence, (), (index.create,), done=f"made an index on {name}", optional=True)
        quoted = ", ".join(identifier(column).text for column in columns)
        given = [f"{identifier(column).text} IS NOT NULL" for column in columns]
        where = " AND ".join([*given, index.where] if index.where else given)
        equal = f"FROM {identifier(table).text} WHERE {where} GROUP BY {quoted} HAVING count(*) > 1"
        partial = " where the condition of its key holds" if index.where else ""
        needed = {*columns, *(["deleted_at"] if index.resource.trash else [])}
        return Difference(
            f"the database does not keep {name} unique{partial}",
            (),
            (index.create,),
            obstacle=f"SELECT 1 {equal} LIMIT 1" if self.have.tables[table].keys() >= needed else "",
            because=", and rows have equal values there",
            fix=f"make the values of SELECT {quoted}, count(*) {equal} differ",
            done=f"made {name} unique{partial}",
        )

    def _search(self, index: SearchIndex) -> Difference:
        """A search without its index. One of another declaration is removed."""
        drops = (statement for name in index.outdated(self.have.searches) for statement in index.drop(name))
        columns = ", ".join(index.columns)
        return Difference(
            f"the table {index.table} has no search index of {columns}",
            (),
            (*drops, *index.create()),
            done=f"made the search index of {index.table} ({columns})",
        )

    def _checks(self, resource: ResourceDef) -> Iterator[Difference]:
        """CHECK constraints that the table lacks, or that the model no longer has."""
        wanted = check_constraints(self.model, resource, self.dialect)
        present = self.have.checks.get(resource.table, frozenset())
        table = identifier(resource.table).text
        for name in sorted(name for name in present - wanted.keys() if is_constraint_name(name, resource)):
            sentence = f"the table {resource.table} has the check {name}, and the model has not"
            statement = f"ALTER TABLE {table} DROP CONSTRAINT {_quoted(name)}"
            yield Difference(sentence, (), (statement,), done=f"dropped the check {name} of {resource.table}")
        for check, (name, text) in zip(resource.checks.values(), wanted.items(), strict=True):
            if name not in present:
                yield self._check(resource, check, text)

    def _check(self, resource: ResourceDef, check: CheckDef, text: str) -> Difference:
        """A check that only the service enforces: SQL from outside can write what it refuses."""
        sentence = f"the table {resource.table} has no check that {check.message}"
        where = f"NOT {condition_text(check.expr, self.model, resource, self.dialect)}"
        columns = {resource.fields[name].column for name in check.fields}
        return Difference(
            sentence,
            (),
            (f"ALTER TABLE {identifier(resource.table).text} ADD {text}",),
            obstacle=_look(resource.table, where) if self.have.tables[resource.table].keys() >= columns else "",
            because=", and rows do not fulfil it",
            fix=f"mend the rows of {_all(resource.table, where)}",
            done=f"made {resource.table} check that {check.message}",
            optional=True,
        )


_BY_HAND = "change the table by hand (docs/reference/model.md, Changing a database by hand)"


def _look(table: str, where: str = "") -> str:
    return f"SELECT 1 FROM {identifier(table).text} t{' WHERE ' + where if where else ''} LIMIT 1"


def _all(table: str, where: str) -> str:
    return f"SELECT * FROM {identifier(table).text} t WHERE {where}"


def _unfit(name: str, table: str, now: Meaning, unfit: str, done: str = "") -> Difference:
    what = str(now) if now.type == "Enum" else f"of the type {now}"
    return Difference(
        f"the column {name} holds values that are not {what}",
        (),
        obstacle=_look(table, unfit) if unfit else "",
        fix=f"give the rows of {_all(table, unfit)} another value, or let the model have theirs",
        done=done,
    )


def _converted(table: str, column: str, was: Meaning, now: Meaning) -> str:
    """How values are given another meaning."""
    if was.type != "Decimal" or now.type != "Decimal":
        return f"{table}.{column}: {_BY_HAND}, and then {_ACCEPT}"
    quoted = identifier(column).text
    factor = f"* {10 ** (now.scale - was.scale)}" if now.scale > was.scale else f"/ {10 ** (was.scale - now.scale)}"
    return f"run UPDATE {identifier(table).text} SET {quoted} = {quoted} {factor}, and then {_ACCEPT}"


_ACCEPT = "`diptych check --database … --accept`, while nothing serves it"


def _reference_text(references: list[ExistingReference], target: str, on_delete: str) -> str:
    if not references:
        return f"has no foreign key to {target}"
    if references[0].target != target:
        return f"refers to {references[0].target} and should refer to {target}"
    return f"has ON DELETE {references[0].on_delete.upper()} and should have ON DELETE {on_delete.upper()}"


_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")


def _is_wider(have: str, want: str) -> bool:
    """Does a type of PostgreSQL hold every value of another as it is?"""
    if (have, want) == ("integer", "bigint"):
        return True
    old, new = _NUMERIC.fullmatch(have), _NUMERIC.fullmatch(want)
    if not old or not new:
        return False
    (precision, scale), (digits, places) = map(int, old.groups()), map(int, new.groups())
    return places >= scale and digits - places >= precision - scale


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
