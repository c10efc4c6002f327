"""Converts values between the form in which SQLite stores them and that of PostgreSQL.

    type       SQLite                      PostgreSQL                  in its feed
    Boolean    1                           true                        true
    Decimal    1250                        12.50                       12.50
    DateTime   2026-01-02T03:04:05.000000Z timestamptz                 "2026-01-02T03:04:05+00:00"
    JSON       text                        json, jsonb                 nested JSON

Other types have the same form in both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from diptych.compile.fragment import identifier
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.scalars import BOOLEAN, DATETIME, FLOAT, JSON, STRING, TIME, Scalar

LEFT_OUT = "="
"""The key of a change of PostgreSQL under which the columns are that it leaves out; SQLite has the number 1 there."""
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw], strict=False).decode


class ColumnForm:
    """A column of the model in both stores."""

    def __init__(self, field: FieldDef) -> None:
        scalar = field.scalar
        self.name = field.column
        self.scalar = scalar
        self.nullable = field.nullable
        self.quoted = identifier(field.column).text
        kind, _, casts = scalar.postgres_param.partition("::")
        self.array = f"{kind}[]"
        self.cast = f"::{casts}" if casts else ""
        is_text = scalar.is_text or kind != "text"
        self.select = self.quoted if is_text else scalar.postgres_out.replace("{}", "{0}").format(self.quoted)
        if scalar is STRING:
            self.select = f"{self.quoted}::text"
        self.to_sqlite = _to_sqlite(scalar)
        self.to_postgres = _to_postgres(scalar)

    def image_to_sqlite(self, raw: msgspec.Raw) -> Any:
        """A value of a change of PostgreSQL."""
        text = bytes(raw)
        if self.scalar.is_json:
            return None if text == b"null" and self.nullable else normalised(self.scalar, text.decode())
        if text == b"null":
            return None
        if self.scalar.digits is not None:
            return self.to_sqlite(Decimal(text.strip(b'"').decode()))
        value = json.loads(text)
        if self.scalar in (DATETIME, TIME):
            return self.scalar.parse(value)
        if self.scalar is FLOAT:
            return float(value)
        return int(value) if self.scalar is BOOLEAN else value

    def image_to_postgres(self, value: Any) -> str:
        """The JSON text of a value of a change of SQLite."""
        if self.scalar.is_json and isinstance(value, str):
            return value
        if isinstance(value, float) and not math.isfinite(value):  # an old SQLite rounded it
            value = None
        return _encode(value if value is None else self.to_postgres(value))


def normalised(scalar: Scalar, text: str) -> str:
    """A JSON text in the one form that values of both stores are compared in; that of the type JSON is as it was sent.

    PostgreSQL keeps the members of a value object in an order of its own.
    """
    if scalar is JSON:
        return text
    value = json.loads(text)
    if scalar.members is not None and isinstance(value, dict):
        value = {name: value[name] for name in (*scalar.members, *value) if name in value}
    if scalar.items is FLOAT and isinstance(value, list):
        value = [float(element) if isinstance(element, int) else element for element in value]
    return msgspec.json.encode(value).decode()


def _to_sqlite(scalar: Scalar) -> Callable[[Any], Any]:
    if scalar is BOOLEAN:
        return int
    if scalar.digits is not None:
        scale = scalar.digits[1]
        return lambda number: int(Decimal(number).scaleb(scale))
    if scalar.is_json:
        return lambda text: normalised(scalar, text)
    return _same


def _to_postgres(scalar: Scalar) -> Callable[[Any], Any]:
    if scalar is BOOLEAN:
        return bool
    if scalar.digits is not None:
        scale = scalar.digits[1]
        return lambda number: str(Decimal(number).scaleb(-scale))
    return _same


def _same(value: Any) -> Any:
    return value


class RowForm:
    """A table of the model in both stores."""

    def __init__(self, resource: ResourceDef) -> None:
        self.columns = [ColumnForm(field) for field in resource.fields.values() if field.stored]
        self.by_name: Mapping[str, ColumnForm] = {column.name: column for column in self.columns}
        self.key = resource.fields["id"].scalar
        self.nested = {column.name: column.scalar for column in self.columns if column.scalar.postgres == "jsonb"}
        """The columns whose JSON PostgreSQL does not keep as it was sent."""
        self.id_index = next(index for index, column in enumerate(self.columns) if column.name == "id")

    def to_sqlite(self, row: Any) -> tuple[Any, ...]:
        return tuple(
            None if value is None else column.to_sqlite(value) for column, value in zip(self.columns, row, strict=True)
        )

    def normalised(self, image: str | None) -> str | None:
        """A row of a change of SQLite, in the form in which it comes back from PostgreSQL."""
        if image is None or not self.nested:
            return image
        values = json.loads(image)
        for name, scalar in self.nested.items():
            if isinstance(values.get(name), str):
                values[name] = normalised(scalar, values[name])
        return _encode(values)

    def to_postgres(self, column: ColumnForm, values: list[Any]) -> list[Any]:
        """The values of one column."""
        convert = column.to_postgres
        return values if convert is _same else [None if value is None else convert(value) for value in values]

    def image_to_sqlite(self, text: str | None) -> str | None:
        """A row of a change of PostgreSQL, as SQLite stores it; a column that the model lacks stays as it is."""
        if text is None:
            return None
        image: dict[str, Any] = {}
        for name, raw in _decode(text).items():
            if name == LEFT_OUT:
                image |= dict.fromkeys(json.loads(bytes(raw)), 1)
            else:
                column = self.by_name.get(name)
                image[name] = json.loads(bytes(raw)) if column is None else column.image_to_sqlite(raw)
        return _encode(image)

    def image_to_postgres(self, text: str | None) -> str | None:
        """A row of a change of SQLite, as PostgreSQL stores it."""
        if text is None:
            return None
        members = []
        left_out = []
        for name, value in json.loads(text).items():
            column = self.by_name.get(name)
            if column is not None and column.scalar.sqlite == "TEXT" and value == 1 and not isinstance(value, str):
                left_out.append(name)
            else:
                members.append((name, _encode(value) if column is None else column.image_to_postgres(value)))
        if left_out:
            members.append((LEFT_OUT, _encode(left_out)))
        return "{" + ",".join(f"{_encode(name)}:{member}" for name, member in members) + "}"


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
