"""The differences between a model and tables that Diptych did not make. Nothing here is mended: their owner decides.

A table that exists need not have the types that Diptych would make; each type of the model has a family of them, whose
values have the same form in a statement. SQLite keeps any value in any column, and has only the affinity of a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from diptych.compile.affinity import affinity
from diptych.compile.catalogue import Catalogue, CatalogueColumn, CompositeReference
from diptych.compile.differences import Difference
from diptych.compile.system.object import DialectName
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.model import Model
from diptych.model.scalars import (
    BIGINT,
    BOOLEAN,
    DATETIME,
    FLOAT,
    INT,
    INTEGER_ID,
    JSON,
    STRING,
    TEXT_ID,
    Scalar,
)

_TEXT = ("text", "character varying", "name")
_WHOLE = ("smallint", "integer", "bigint")
_FAMILIES: Mapping[Scalar, tuple[str, ...]] = {
    STRING: _TEXT,
    TEXT_ID: _TEXT,
    INTEGER_ID: _WHOLE,
    INT: _WHOLE[:2],
    BIGINT: _WHOLE,
    FLOAT: ("real", "double precision"),
    DATETIME: ("timestamp with time zone", "timestamp without time zone"),
    JSON: ("json", "jsonb"),
}
"""The types of PostgreSQL whose values a type of the model takes; of any other it is the type that Diptych makes."""
_AFFINITIES: Mapping[Scalar, tuple[str, ...]] = {
    INTEGER_ID: ("INTEGER", "NUMERIC"),
    INT: ("INTEGER", "NUMERIC"),
    BIGINT: ("INTEGER", "NUMERIC"),
    BOOLEAN: ("INTEGER", "NUMERIC"),
    FLOAT: ("REAL", "NUMERIC", "INTEGER"),
}
"""The affinities of SQLite that keep the values of a type; a text, and all that is kept as one, is in any other."""
_TEXTUAL = ("TEXT", "NUMERIC", "BLOB")
_COLLATION = re.compile(r' COLLATE "[^"]*"')
_SIZE = re.compile(r"\(\d+\)")
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")


def compare_existing(model: Model, have: Catalogue, dialect: DialectName) -> list[Difference]:
    """What a model says of tables that exist, and is not so."""
    others = (resource for resource in model.resources.values() if not resource.managed)
    return [difference for resource in others for difference in _Existing(resource, model, have, dialect).all()]


class _Existing:
    def __init__(self, resource: ResourceDef, model: Model, have: Catalogue, dialect: DialectName) -> None:
        self.resource = resource
        self.model = model
        self.have = have
        self.dialect = dialect

    def all(self) -> Iterator[Difference]:
        table, kind = self.resource.table, "view" if self.resource.is_view else "table"
        columns = (self.have.views if self.resource.is_view else self.have.tables).get(table)
        if columns is None:
            yield _differs(f"the {kind} {table} is missing", "Diptych makes no table of managed=False")
            return
        for field in self.resource.fields.values():
            if field.stored:
                yield from self._column(field, columns)
        if self.resource.is_view:
            return
        yield from self._left_over(columns)
        yield from self._unique()
        for field in self.resource.fields.values():
            if field.relation:
                yield from self._reference(field)

    def _column(self, field: FieldDef, columns: Mapping[str, CatalogueColumn]) -> Iterator[Difference]:
        name = f"{self.resource.table}.{field.column}"
        have = columns.get(field.column)
        if have is None:
            yield _differs(f"the column {name} is missing", f"name the column of {field.attr}: Column(…)")
        elif not _fits(have.type, field, self.dialect):
            fix = f"declare {field.attr} with another type"
            yield _differs(f"the column {name} is {have.type} and does not hold {field.scalar.name}", fix)
        elif have.nullable and not field.nullable and not self.resource.is_view:
            yield _differs(f"the column {name} may be null", f"declare {field.attr} with | None")

    def _left_over(self, columns: Mapping[str, CatalogueColumn]) -> Iterator[Difference]:
        """Columns that the model does not have, and that every INSERT would have to fill."""
        if not self.resource.offers("create"):
            return
        stored = {field.column for field in self.resource.fields.values() if field.stored}
        for name, column in columns.items():
            if name not in stored and not column.nullable and not column.filled:
                sentence = f"the column {self.resource.table}.{name} is not in the model and must not be null"
                yield _differs(sentence, f"declare {name}, or grant no create")

    def _unique(self) -> Iterator[Difference]:
        """Keys that the model calls unique, and that no index keeps so."""
        fields = self.resource.fields.values()
        keys: list[tuple[str, ...]] = [(field.column,) for field in fields if field.unique]
        keys += [key.columns for key in self.resource.keys if key.unique]
        there = [
            sorted(index.columns) for index in self.have.indexes if index.table == self.resource.table and index.unique
        ]
        primary = sorted(self.resource.key_columns)
        for key in keys:
            if sorted(key) not in (*there, primary):
                text = ", ".join(key)
                yield _differs(f"no key keeps {self.resource.table} ({text}) unique", "remove it from the model")

    def _reference(self, field: FieldDef) -> Iterator[Difference]:
        relation = self.resource.relations[field.relation]
        target = self.model.resources[relation.target]
        if relation.columns:
            yield from self._composite(relation, target)
            return
        place = (self.resource.table, field.column, target.table)
        there = [
            reference
            for reference in self.have.references
            if (reference.table, reference.column, reference.target) == place
            and (reference.key or target.key_columns[0]) == target.key_columns[0]
        ]
        name = f"{self.resource.table}.{field.column}"
        if not there and not target.is_view:
            fix = f"declare {field.attr} as a value"
            yield _differs(f"the column {name} has no foreign key to {target.table}", fix)
        elif there and relation.on_delete not in {reference.on_delete for reference in there}:
            does = there[0].on_delete
            yield _differs(f"the column {name} has ON DELETE {does.upper()}", f'write OnDelete("{does}")')

    def _composite(self, relation: RelationDef, target: ResourceDef) -> Iterator[Difference]:
        there = [
            reference
            for reference in self.have.composites
            if (reference.table, reference.target) == (self.resource.table, target.table)
            and _pairs(reference, target) == dict(zip(relation.columns, target.key_columns, strict=True))
        ]
        name = f"{self.resource.table} ({', '.join(relation.columns)})"
        if not there and not target.is_view:
            yield _differs(f"{name} is no foreign key to {target.table}", f"remove {relation.attr}")
        elif there and relation.on_delete not in {reference.on_delete for reference in there}:
            does = there[0].on_delete
            yield _differs(f"{name} has ON DELETE {does.upper()}", f'write OnDelete("{does}")')


def _pairs(reference: CompositeReference, target: ResourceDef) -> dict[str, str]:
    """The columns of a foreign key, each with that which it refers to."""
    keys = reference.keys if all(reference.keys) else target.key_columns
    return dict(zip(reference.columns, keys, strict=False))


def _differs(sentence: str, fix: str) -> Difference:
    return Difference(sentence, fix=fix, existing=True)


def _fits(kind: str, field: FieldDef, dialect: DialectName) -> bool:
    """Does a column of this type hold values of the field?"""
    if dialect == "sqlite":
        return _fits_sqlite(kind, field.scalar)
    plain = _COLLATION.sub("", kind)
    if field.cast:
        return plain.strip('"') == field.cast
    if field.scalar.digits is not None:
        precision, scale = field.scalar.digits
        numeric = _NUMERIC.fullmatch(plain)
        return numeric is not None and int(numeric[1]) <= precision and int(numeric[2]) == scale
    if field.scalar.is_json and field.scalar is not JSON:
        return plain in _FAMILIES[JSON]
    scalar = STRING if field.scalar.choices else field.scalar
    return _SIZE.sub("", plain) in _FAMILIES.get(scalar, (_COLLATION.sub("", scalar.postgres),))


def _fits_sqlite(kind: str, scalar: Scalar) -> bool:
    if not kind:  # a column of a view that is computed
        return True
    allowed = ("INTEGER",) if scalar.digits is not None else _AFFINITIES.get(scalar, _TEXTUAL)
    if scalar.sqlite == "INTEGER" and scalar not in _AFFINITIES:
        allowed = ("INTEGER",)
    return affinity(kind) in allowed
