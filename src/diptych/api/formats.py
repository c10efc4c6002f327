r"""Rows as CSV and as NDJSON, in both directions.

    id,name,note,author.name        text/csv (RFC 4180): a header, CRLF, and quotes where they are needed
    1,Ann,,Zoe                      an empty cell is null
    2,"Bo, Jr.","",                 an empty cell in quotes is the empty text
    3,'=1+1,"two
    lines",

    {"id":"1","name":"Ann"}         application/x-ndjson: a JSON object in each line

A to-one relation has a column for each of its fields, `author.name`, and a summary one for each of its numbers,
`ordersSummary.total.sum`; JSON and lists are JSON text in their cell. A text that a spreadsheet would take for a
formula (it begins with = + - @, a tab or a carriage return) gets a `'` before it, and so does one that has such `'`
already: reading takes one away, so nothing is lost. Numbers stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from diptych.ask.nodes import ConnectionPart, Field, Follow, GroupObject, GroupValue, Nodes, Pick, Read
from diptych.errors import Code, Fault, Refusal
from diptych.model.aggregates import expr_scalar
from diptych.model.defs import FieldDef, ResourceDef, Resources
from diptych.model.scalars import INT, Scalar

CSV, NDJSON = "text/csv", "application/x-ndjson"
FORMATS = (CSV, NDJSON)
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
_QUOTED = re.compile(r'[",\r\n]')
_CELL = re.compile(r'(?:"((?:[^"]|"")*)"|([^",]*))(,|$)')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_END = "\r\n"


class CsvColumn(Struct, frozen=True):
    """A column of CSV: its name in the header, the keys that lead to its value in a row, and the type of that."""

    name: str
    path: tuple[str, ...]
    scalar: Scalar


class BadLine(ValueError):
    """A line that is no CSV or no JSON object."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


# writing


def rows_read(read: Read) -> tuple[Read, tuple[Pick, ...]]:
    """The Read of the rows of a page, of a resource or of a relation, and what it selects of each."""
    if read.take == "one" and isinstance(read.pick[0], Follow):
        read = read.pick[0].read
    nodes = next(part for part in read.pick if isinstance(part, Nodes))
    return read, nodes.pick


def csv_columns(picks: Iterable[Pick | ConnectionPart], resource: ResourceDef, model: Resources) -> list[CsvColumn]:
    """The columns of a selection; a to-many relation has none, and is refused."""
    columns: list[CsvColumn] = []
    for pick in picks:
        if isinstance(pick, Field):
            columns.append(CsvColumn(pick.label, (pick.label,), resource.fields[pick.name].scalar))
        elif isinstance(pick, Follow):
            if pick.read.page is not None:
                fault = Fault(("query", "fields"), f"'{pick.relation}' is a list, which CSV has no column for")
                raise Refusal(Code.BAD_REQUEST, f"Ask for {NDJSON}, or leave lists out.", [fault])
            columns += _inside(pick.label, csv_columns(pick.read.pick, model[pick.read.resource], model))
        elif isinstance(pick, GroupObject):
            columns += _inside(pick.label, csv_columns(pick.parts, resource, model))
        elif isinstance(pick, GroupValue):
            columns.append(CsvColumn(pick.label, (pick.label,), expr_scalar(pick.of, resource, model) or INT))
    return columns


def _inside(label: str, columns: Iterable[CsvColumn]) -> list[CsvColumn]:
    """The columns of an object in a row."""
    return [CsvColumn(f"{label}.{part.name}", (label, *part.path), part.scalar) for part in columns]


def csv_header(columns: Sequence[CsvColumn]) -> str:
    return ",".join(column.name for column in columns) + _END


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[CsvColumn], *, raw: bool = False) -> str:
    """The lines of some rows. With `raw`, formulas stay as they are."""
    cells = [
        (column.path, _is_guarded(column.scalar) and not raw, _kind(column.scalar) == "json") for column in columns
    ]
    return "".join([",".join([_cell(row, *cell) for cell in cells]) + _END for row in rows])


def _cell(row: Mapping[str, Any], path: tuple[str, ...], guard: bool, is_json: bool) -> str:
    value: Any = row
    for key in path:
        value = value.get(key) if value is not None else None
    if value is None:
        return ""
    text = value if isinstance(value, str) and not is_json else msgspec.json.encode(value).decode()
    if guard and _FORMULA.match(text):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if text == "" or _QUOTED.search(text) else text


def _is_guarded(scalar: Scalar) -> bool:
    """Can values of this type be any text, and so look like a formula?"""
    return scalar.is_text or _kind(scalar) == "json"


def _kind(scalar: Scalar) -> str:
    """How a value travels: as text, a number, a boolean, or other JSON."""
    kind = scalar.openapi.get("type")
    return {"integer": "number", "number": "number", "boolean": "boolean", "string": "text"}.get(str(kind), "json")


# reading


def read_lines(body: bytes, media: str, fields: Mapping[str, FieldDef], most: int) -> list[tuple[int, Any]]:
    """At most `most` rows of the body of a request, each with its line number; the rest is not read."""
    try:
        lines = StringIO(body.decode(), newline="")
        return list(islice(read_csv(lines, fields) if media == CSV else read_ndjson(lines), most))
    except UnicodeDecodeError:
        raise Refusal(Code.BAD_REQUEST, "The body is no UTF-8.") from None
    except BadLine as bad:
        raise Refusal(Code.BAD_REQUEST, f"The body is not valid: {bad}.") from None


def with_lines(refusal: Refusal, lines: Sequence[int]) -> Refusal:
    """Add the line of the file to the message of each fault in a row."""

    def lined(fault: Fault) -> Fault:
        index = fault.path[1] if len(fault.path) > 1 else None
        return replace(fault, message=f"line {lines[index]}: {fault.message}") if isinstance(index, int) else fault

    return Refusal(refusal.code, refusal.message, [lined(fault) for fault in refusal.faults], more=refusal.more)


def read_ndjson(lines: Iterable[str]) -> Iterator[tuple[int, Any]]:
    """The objects of NDJSON, each with its line; empty lines are passed over."""
    for number, line in enumerate(lines, 1):
        text = line.removeprefix("\ufeff") if number == 1 else line
        if text.strip():
            try:
                yield number, msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                raise BadLine(number, "expected a JSON object") from None


def read_csv(lines: Iterable[str], fields: Mapping[str, FieldDef], *, raw: bool = False) -> Iterator[tuple[int, Any]]:
    """The rows of CSV as JSON objects, each with the line on which it begins. `fields` are those of the resource.

    An empty cell is null, or, where the field cannot be null, left out.
    """
    records = _records(lines)
    head = next(records, None)
    if head is None:
        return
    names = [name or "" for name in head[1]]
    names[0] = names[0].removeprefix("\ufeff") if names else ""
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise BadLine(head[0], f"the column '{name}' occurs twice" if name else "a column has no name")
        seen.add(name)
    readers = [(name, fields.get(name)) for name in names]
    for number, cells in records:
        if len(cells) != len(names):
            raise BadLine(number, f"expected {len(names)} cells, as in the header, got {len(cells)}")
        row: dict[str, Any] = {}
        for (name, field), cell in zip(readers, cells, strict=True):
            if cell is not None:
                row[name] = cell if field is None else _value(cell, field, raw, number)
            elif field is None or field.nullable:
                row[name] = None
        yield number, row


def _records(lines: Iterable[str]) -> Iterator[tuple[int, list[str | None]]]:
    """The cells of each record, with its first line; None is an empty cell without quotes."""
    held: list[str] = []
    begun, is_open = 0, False
    for number, line in enumerate(lines, 1):
        begun = begun if held else number
        held.append(line)
        is_open ^= line.count('"') % 2 == 1
        if is_open:
            continue
        record = "".join(held).rstrip("\n").removesuffix("\r")
        held.clear()
        if record:
            yield begun, _cells(record, begun)
    if held:
        raise BadLine(begun, "a quote is not closed")


def _cells(record: str, line: int) -> list[str | None]:
    cells: list[str | None] = []
    at = 0
    while True:
        match = _CELL.match(record, at)
        if match is None:
            raise BadLine(line, "a quote stands inside a cell without quotes")
        quoted, plain, end = match.groups()
        cells.append(plain or None if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if not end:
            return cells


def _value(cell: str, field: FieldDef, raw: bool, line: int) -> Any:
    """The JSON value of a cell; a text that is none of the type stays a text, and is refused with the others."""
    kind = _kind(field.scalar)
    if not raw and _is_guarded(field.scalar) and _GUARDED.match(cell):
        cell = cell[1:]
    if kind == "boolean":
        return {"true": True, "false": False}.get(cell, cell)
    if kind == "json" or (kind == "number" and _NUMBER.fullmatch(cell)):
        try:
            return msgspec.json.decode(cell)
        except (msgspec.DecodeError, RecursionError):
            raise BadLine(line, f"{field.name}: expected JSON") from None
    return cell
