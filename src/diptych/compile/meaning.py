"""The meaning of each column, recorded in the database, since column types alone do not show it.

To SQLite a decimal, a boolean and a number are all INTEGER; to both databases an enum is text. A model that gives such
a column another meaning would read what is there as something else (12.50 as 0.1250). So the table `diptych_schema` has
a row for each table, written in the transaction that makes or extends it:

    name      format  columns
    invoices  1       {"total": {"type": "Decimal", "precision": 8, "scale": 2}, "stage": {"type": "Enum", …}, …}

`obstacle` says which stored values would not mean the same under another declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from diptych.compile.fragment import identifier
from diptych.compile.system.object import DialectName
from diptych.model.decimal_scalar import decimal
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.scalar_values import to_json
from diptych.model.scalars import ALL, STRING, Member, Scalar

TRASH = "trash"
"""What fills the column `deleted_at` of a table with a trash."""
FORMAT = 1
"""The form of a record. One that a later version has written in another form is refused."""


class Meaning(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one column holds, as the model declares it."""

    type: str
    precision: int = 0
    scale: int = 0
    values: tuple[str, ...] = ()
    nullable: bool = False
    unique: bool = False
    indexed: bool = False
    target: str = ""
    """The table that it refers to."""
    on_delete: str = ""
    default: Any = None
    generated: str = ""
    """What fills it where a new row has no value: "now" or "today"."""
    rules: tuple[str, ...] = ()
    """The constraints of what is written: `MaxLen(length=80)`. They say nothing of the rows that are there."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """All that says how a stored value is read."""
        return self.type, self.precision, self.scale, frozenset(self.values)

    def __str__(self) -> str:
        if self.type == "Decimal":
            return f"Decimal({self.precision},{self.scale})"
        return f"one of {', '.join(self.values)}" if self.type == "Enum" else self.type


Record = Mapping[str, Meaning]
"""The meaning of each column of a table."""


def meanings(model: Model) -> dict[str, dict[str, Meaning]]:
    """What a model means by the columns of its tables."""
    return {
        resource.table: {
            field.column: _meaning(model, resource, field) for field in resource.fields.values() if field.stored
        }
        for resource in model.managed.values()
    }


def _meaning(model: Model, resource: ResourceDef, field: FieldDef) -> Meaning:
    relation = resource.relations.get(field.relation)
    return Meaning(
        **_kind(field.scalar),
        nullable=field.nullable,
        unique=field.unique,
        indexed=field.indexed,
        target=model.resources[relation.target].table if relation else "",
        on_delete=relation.on_delete if relation else "",
        default=None if field.default is None else to_json(field.scalar, field.default),
        generated=TRASH if field.marks_deleted else field.generated,
        rules=tuple(map(repr, field.constraints)),
    )


def _kind(scalar: Scalar) -> dict[str, Any]:
    if scalar.members is not None:
        parts = (f"{name}:{_member(member)}" for name, member in scalar.members.items())
        return {"type": f"{{{';'.join(parts)}}}"}
    if scalar.items is not None:
        kind = _kind(scalar.items)
        return {**kind, "type": f"[{kind['type']}]"}
    if scalar.digits is not None:
        precision, scale = scalar.digits
        return {"type": "Decimal", "precision": precision, "scale": scale}
    return {"type": "Enum", "values": scalar.choices} if scalar.choices else {"type": scalar.name}


def _member(member: Member) -> str:
    kind = "|".join(member.scalar.choices) if member.scalar.choices else member.scalar.name
    return kind + "?" * member.nullable


def encode_meaning(record: Record) -> str:
    """A record as it is stored."""
    return msgspec.json.encode(record).decode()


def decode_meanings(text: str) -> dict[str, Meaning]:
    """A record as it was stored."""
    return msgspec.json.decode(text, type=dict[str, Meaning])


SCALARS = {scalar.name: scalar for scalar in ALL}


def storage(meaning: Meaning, dialect: DialectName) -> str:
    """The type of the column that holds it; "" if only a later version knows."""
    if meaning.type[:1] in ("[", "{"):
        return "TEXT" if dialect == "sqlite" else "jsonb"
    scalar = decimal(meaning.precision, meaning.scale) if meaning.type == "Decimal" else None
    scalar = scalar or (STRING if meaning.type == "Enum" else SCALARS.get(meaning.type))
    return "" if scalar is None else scalar.sqlite if dialect == "sqlite" else scalar.postgres


_WIDER = {("Int", "BigInt"), ("IntegerID", "BigInt"), ("Enum", "String")}
"""Every value of the first is a value of the second, and means the same."""
_NARROWER = {("BigInt", "Int"), ("String", "Enum"), ("Enum", "Enum")}
"""A value of the first means the same if it is one of the second at all."""
Compatibility = Literal["none", "narrower", "other"]


def compatibility(was: Meaning, now: Meaning, dialect: DialectName) -> Compatibility:
    """Do stored values mean the same under another declaration: all, those that it allows, or none?"""
    pair = was.type, now.type
    if was.type[:1] == now.type[:1] == "{":
        return _value_compatibility(was.type, now.type)
    if was.kind == now.kind or pair in _WIDER or (was.type == "Enum" and {*was.values} <= {*now.values}):
        return "none"
    if pair == ("Decimal", "Decimal"):
        if dialect == "postgres":  # a number has its point there, and the column's own type says how many digits follow
            return "none"
        return "other" if was.scale != now.scale else "narrower" if now.precision < was.precision else "none"
    return "narrower" if pair in _NARROWER else "other"


def _value_compatibility(was: str, now: str) -> Compatibility:
    """Values keep their meaning if all members are there as before, or may be null now, and new ones may be null."""
    before, after = member_kinds(was), member_kinds(now)
    kept = all(after.get(name) in (kind, kind + "?") for name, kind in before.items())
    return "none" if kept and all(name in before or kind[-1] == "?" for name, kind in after.items()) else "other"


def member_kinds(kind: str) -> dict[str, str]:
    """The members of a kind of value objects, each with its own kind: `{city:String;zip:String?}`."""
    return dict(part.split(":", 1) for part in kind[1:-1].split(";") if part)


def obstacle(was: Meaning, now: Meaning, column: str, dialect: DialectName) -> str:
    """The condition on rows whose value would mean something else; "" if there can be none."""
    match compatibility(was, now, dialect):
        case "none":
            return ""
        case "narrower":
            return misfit(now, column, dialect)
    name = identifier(column).text
    return f"{name} <> 0" if was.type == now.type == "Decimal" else f"{name} IS NOT NULL"


def misfit(meaning: Meaning, column: str, dialect: DialectName) -> str:
    """The condition on rows whose value cannot have this meaning; "" if the database rules them out or cannot check."""
    return misfit_of(meaning, identifier(column).text, dialect)


def misfit_of(meaning: Meaning, value: str, dialect: DialectName) -> str:
    """The condition under which the value of an SQL expression does not fit a meaning."""
    if meaning.type == "Enum":
        values = ", ".join(f"'{value}'" for value in meaning.values)  # names of GraphQL, by the model's own rule
        return f"{value} NOT IN ({values})"
    if dialect == "postgres":
        return ""
    whole = f"{value} IS NOT NULL AND (typeof({value}) <> 'integer' OR "
    match meaning.type:
        case "Decimal":
            return f"{whole}abs({value}) >= {10**meaning.precision})"
        case "Int":
            return f"{whole}{value} NOT BETWEEN {-(2**31)} AND {2**31 - 1})"
        case "Boolean":
            return f"{value} NOT IN (0, 1)"
    return ""
