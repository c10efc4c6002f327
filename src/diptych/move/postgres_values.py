"""Converts values between the form in which SQLite stores them and that of PostgreSQL.

    type       SQLite                      PostgreSQL                  in its feed
    Boolean    1                           true                        true
    Decimal    1250                        12.50                       12.50
    DateTime   2026-01-02T03:04:05.000000Z timestamptz                 "2026-01-02T03:04:05+00:00"
    Time       14:30:00.000000             time                        "14:30:00"
    JSON       text                        json, jsonb                 nested JSON

Other types have the same form in both: a Duration is a number of microseconds, a UUID its text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from diptych.compile.fragment import identifier
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.scalars import BOOLEAN, DATETIME, FLOAT, JSON, STRING, TIME, Scalar

LEFT_OUT = "="
"""The key of a change of PostgreSQL under which the columns are that it leaves out; SQLite has the number 1 there."""
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw], strict=False).decode
_decode_image = msgspec.json.Decoder(dict[str, Any]).decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_scan = json.JSONDecoder().raw_decode
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00:00", re.ASCII)
"""A moment as the triggers of PostgreSQL write it."""


def decode_image(text: str) -> dict[str, Any]:
    """A row of a change, as a dict."""
    try:
        return _decode_image(text)
    except msgspec.DecodeError:  # JSON of PostgreSQL may escape half a character
        image: dict[str, Any] = json.loads(text)
        return image


def member_texts(text: str) -> Mapping[str, bytes | msgspec.Raw]:
    """The JSON text of each member of an object."""
    try:
        return _decode_raw(text)
    except msgspec.DecodeError:  # half a character again
        texts: dict[str, bytes] = {}
        at = text.index("{") + 1
        while (start := text.find('"', at)) >= 0:
            name, at = _scan(text, start)
            start = text.index(":", at) + 1
            while text[start].isspace():
                start += 1
            _, at = _scan(text, start)
            texts[name] = text[start:at].encode()
        return texts


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
        self.needs_text = scalar.is_json or scalar.digits is not None
        """Would a value of a change lose digits or form if it were decoded?"""
        self.decoded_to_sqlite = _decoded_to_sqlite(scalar)
        """Converts a decoded value of a change of PostgreSQL, other than null; None if it is as SQLite stores it."""

    def text_to_sqlite(self, text: str) -> Any:
        """A value of a change of PostgreSQL, by its JSON text."""
        if self.scalar.is_json:
            return None if text == "null" and self.nullable else normalised(self.scalar, text)
        return None if text == "null" else self.to_sqlite(Decimal(text.strip('"')))

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


def _decoded_to_sqlite(scalar: Scalar) -> Callable[[Any], Any] | None:
    if scalar is BOOLEAN:
        return int
    if scalar is FLOAT:
        return float
    if scalar is DATETIME:
        return _moment
    return scalar.parse if scalar is TIME else None


def _moment(text: str) -> Any:
    match = _MOMENT.fullmatch(text)
    return DATETIME.parse(text) if match is None else f"{match[1]}.{match[2] or '':0<6}Z"


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

        self._converted = [
            (index, column.to_sqlite) for index, column in enumerate(self.columns) if column.to_sqlite is not _same
        ]
        self._by_text = {column.name: column for column in self.columns if column.needs_text}

    def to_sqlite(self, row: Any) -> tuple[Any, ...]:
        if not self._converted:
            return tuple(row)
        values = list(row)
        for index, convert in self._converted:
            if values[index] is not None:
                values[index] = convert(values[index])
        return tuple(values)

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
        image = decode_image(text)
        if LEFT_OUT in image:
            image |= dict.fromkeys(image.pop(LEFT_OUT), 1)
        texts = member_texts(text) if self._by_text else {}
        for name, value in image.items():
            column = self.by_name.get(name)
            if column is None or (value is None and not column.needs_text):
                continue
            if column.needs_text:
                if name in texts:  # else it is left out
                    image[name] = column.text_to_sqlite(str(bytes(texts[name]), "utf-8"))
            elif column.decoded_to_sqlite is not None:
                image[name] = column.decoded_to_sqlite(value)
        return _encode(image)

    def image_to_postgres(self, text: str | None) -> str | None:
        """A row of a change of SQLite, as PostgreSQL stores it."""
        if text is None:
            return None
        members = []
        left_out = []
        for name, value in decode_image(text).items():
            column = self.by_name.get(name)
            if column is not None and column.scalar.sqlite == "TEXT" and value == 1 and not isinstance(value, str):
                left_out.append(name)
            else:
                members.append((name, _encode(value) if column is None else column.image_to_postgres(value)))
        if left_out:
            members.append((LEFT_OUT, _encode(left_out)))
        return "{" + ",".join(f"{_encode(name)}:{member}" for name, member in members) + "}"
