"""The types, defaults and bounds of columns, as a model file writes them."""

from __future__ import annotations

import json
import keyword
import re

from msgspec import Struct

from diptych.compile.affinity import affinity
from diptych.inspection.found import FoundColumn

_SIZED = re.compile(r"(?:n?var)?char(?:acter)?(?: varying)?\s*\((\d+)\)", re.IGNORECASE)
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_NUMBER = re.compile(r"\(?'?(-?\d+(?:\.\d+)?)'?\)?(?:::[\w ]+(?:\([\d,]+\))?)?")
_QUOTED = re.compile(r"'((?:[^']|'')*)'(?:::[\w \"]+(?:\(\d+\))?)?")
_NOW = re.compile(r"now\(\)|CURRENT_TIMESTAMP|\(?strftime\('%Y-%m-%dT%H:%M:%f000Z', 'now'\)\)?", re.IGNORECASE)
_TODAY = re.compile(r"CURRENT_DATE|\(?strftime\('%Y-%m-%d', 'now'\)\)?|\(?date\('now'\)\)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)

_POSTGRES = {
    **{"text": "str", "name": "str", "smallint": "int", "integer": "int", "bigint": "BigInt", "boolean": "bool"},
    **{"real": "float", "double precision": "float", "date": "date", "time without time zone": "time", "uuid": "UUID"},
    **{"timestamp with time zone": "datetime", "timestamp without time zone": "datetime"},
    **{"json": "Json", "jsonb": "Json", "character varying": "str"},
}
_SQLITE_HOLDS = {
    "integer": "BigInt",
    "real": "float",
    "text": "str",
    "day": "date",
    "moment": "datetime",
    "long": "BigInt",
}
_AFFINITIES = {"INTEGER": "int", "TEXT": "str", "REAL": "float", "NUMERIC": "float"}


class FieldType(Struct, frozen=True):
    """The type of a field: its name in Python, its markers, and the words about what is not expressed."""

    python: str
    markers: tuple[str, ...] = ()
    cast: str = ""
    note: str = ""


def type_of(column: FoundColumn, kind: str, enums: dict[str, str]) -> FieldType | str:
    """The type of a column, or why it has none. `enums` are the classes of enums, by their names in the database."""
    if column.computed:
        return "the database computes it"
    if kind == "sqlite":
        return _sqlite_type(column)
    if column.values:
        return FieldType(enums.get(column.type, "str"), cast=column.type)
    if numeric := _NUMERIC.fullmatch(column.type):
        precision, scale = map(int, numeric.groups())
        if precision <= 18 and scale <= precision:
            return FieldType("Decimal", (f"Digits({precision}, {scale})",))
        return f"{column.type} has more digits than a Decimal keeps"
    if column.type.startswith("timestamp"):
        plain = re.sub(r"\(\d\)", "", column.type)
        note = "" if "with time" in plain else "It has no time zone, and is taken for UTC."
        return FieldType("datetime", note=note) if plain in _POSTGRES else f"{column.type} has no type here"
    python = _POSTGRES.get(re.sub(r"\(\d+\)", "", column.type))
    if python is None:
        return _unknown(column.type)
    return FieldType(python, _sized(column.type) if python == "str" else ())


def _unknown(kind: str) -> str:
    """Why a type of PostgreSQL has none in a model."""
    if kind.endswith("[]"):
        return f"{kind} is an array, and lists of a model are jsonb"
    if kind == "bytea":
        return "bytea holds bytes, and no type of a model does"
    return f"{kind} has no type here"


def _sqlite_type(column: FoundColumn) -> FieldType | str:
    upper = column.type.upper()
    if column.holds in ("mixed", "nothing", "null", "blob"):
        return "its rows hold values of several types, or none"
    if "BOOL" in upper:
        return FieldType("bool")
    if "JSON" in upper:
        return FieldType("Json")
    if column.holds in _SQLITE_HOLDS:
        note = ""
        if column.holds == "text" and column.type:
            note = f"{column.type}: its rows have no form that is known here, so it is text."
        return FieldType(_SQLITE_HOLDS[column.holds], note=note)
    if "DEC" in upper or "NUM" in upper:
        return FieldType("float", note=f"{column.type}: SQLite keeps it as a float.")
    python = _AFFINITIES.get(affinity(column.type))
    if python is None:
        return f"{column.type or 'BLOB'} holds bytes, and no type of a model does"
    return FieldType(python, _sized(column.type) if python == "str" else ())


def _sized(kind: str) -> tuple[str, ...]:
    size = _SIZED.search(kind)
    return (f"MaxLen({size[1]})",) if size else ()


def written_default(column: FoundColumn, python: str, members: dict[str, str]) -> str | None:
    """The default as a model file writes it; None if it cannot be expressed. `members` are those of an enum."""
    text = column.default.strip()
    if members:
        quoted = _QUOTED.fullmatch(text)
        return members.get(quoted[1]) if quoted else None
    match python:
        case "bool":
            return {"true": "True", "false": "False", "1": "True", "0": "False"}.get(text.lower())
        case "int" | "BigInt" | "float" | "Decimal":
            number = _NUMBER.fullmatch(text)
            if number is None or ("." in number[1] and python in ("int", "BigInt")):
                return None
            return f'Decimal("{number[1]}")' if python == "Decimal" else number[1]
        case "str":
            quoted = _QUOTED.fullmatch(text)
            return _literal(quoted[1].replace("''", "'")) if quoted else None
        case "datetime":
            return "now()" if _NOW.fullmatch(text) else None
        case "date":
            return "today()" if _TODAY.fullmatch(text) else None
    return None


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def bounds_of(check: str, column: str, python: str) -> str | None:
    """A CHECK of one column and a number, as a marker; None if it is anything else."""
    plain = re.sub(r"::[a-z][a-z ]*", "", check).replace("(", " ").replace(")", " ").strip()
    name = re.escape(column)
    match = re.fullmatch(rf'"?{name}"?\s*(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?)', plain)
    if match is None or python not in ("int", "BigInt", "float", "Decimal"):
        return None
    sign, number = match.groups()
    whole = python in ("int", "BigInt") and "." not in number
    if sign in (">", "<") and not whole:
        return None
    if sign == ">":
        number = str(int(number) + 1)
    elif sign == "<":
        number = str(int(number) - 1)
    return f"{'Min' if sign[0] == '>' else 'Max'}({number})"


def member_names(values: tuple[str, ...]) -> dict[str, str] | None:
    """The names of the members of an enum, by their values; None if a value is no name of GraphQL."""
    if not all(_NAME.fullmatch(value) for value in values) or {"true", "false", "null"} & {*values}:
        return None
    return {value: value + "_" if keyword.iskeyword(value) or value == "mro" else value for value in values}
