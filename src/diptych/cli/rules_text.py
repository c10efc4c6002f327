"""The matrix of a model as text that fits a terminal of 100 columns.

A condition stands in its cell if the table has room for it; else the cell has a number, and the condition stands
under the table. A table that is too wide even so goes on below itself, with the roles once more.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from diptych.model.matrix import Cell, ResourceMatrix

WIDTH = 100
LEGEND = (
    "Each role may do a thing always, never, or where a condition holds for the row.",
    "A row that a role may not read does not exist for it, whatever else it may do.",
    "Fields are listed where they differ from their row: there, always is wherever the row may be.",
)
_INDENT, _GAP, _HARD_SPACE = "  ", "  ", "\u00a0"
_COLOURS = {"always": "green", "where": "yellow", "never": "red"}
Rows = Mapping[str, Sequence[Cell]]


def text(matrices: Iterable[ResourceMatrix]) -> str:
    """All tables, with colours."""
    lines = [line for sentence in LEGEND for line in _wrapped(sentence, "")]
    for each in matrices:
        lines += _resource(each)
    return "\n".join(lines)


def _resource(found: ResourceMatrix) -> Iterator[str]:
    yield f"\n{click.style(found.resource.name, bold=True)}  /{found.resource.path}"
    yield from _table(found.columns, found.rows)
    for group in found.fields:
        yield ""
        yield from _listed("", group.names)
        yield from _table(group.columns, group.rows)
    for name, moves in found.moves.items():
        yield ""
        yield from _listed(f"{name} moves ", moves)
    yield ""
    yield from _listed("As the row: ", found.plain)


def _table(columns: Sequence[str], rows: Rows) -> Iterator[str]:
    """A header, a line for each role, and the conditions that found no room."""
    numbers = _numbers(columns, rows)
    roles = max(map(len, rows))
    room = WIDTH - len(_INDENT) - roles
    for block in _blocks(_widths(columns, rows, numbers), room):
        yield _INDENT + " " * roles + "".join(_GAP + columns[index].ljust(width) for index, width in block).rstrip()
        for role, cells in rows.items():
            shown = (_GAP + _styled(cells[index], numbers, width) for index, width in block)
            yield (_INDENT + role.ljust(roles) + "".join(shown)).rstrip()
    for condition, number in numbers.items():
        yield from _wrapped(f"[{number}] {condition}", _INDENT, hang=len(f"[{number}] "))


def _numbers(columns: Sequence[str], rows: Rows) -> dict[str, int]:
    """A number for each condition that is numbered: the longest ones, and only as many as the width demands."""
    conditions = dict.fromkeys(cell.text for cells in rows.values() for cell in cells if cell.kind == "where")
    room = WIDTH - len(_INDENT) - max(map(len, rows))
    numbers: dict[str, int] = {}
    for limit in sorted({len(each) for each in conditions} | {0}, reverse=True):
        long = (each for each in conditions if len(each) > limit)
        numbers = {each: number for number, each in enumerate(long, 1)}
        if sum(_widths(columns, rows, numbers)) + len(_GAP) * len(columns) <= room:
            break
    return numbers


def _widths(columns: Sequence[str], rows: Rows, numbers: Mapping[str, int]) -> list[int]:
    return [
        max(len(column), *(len(_shown(cells[index], numbers)) for cells in rows.values()))
        for index, column in enumerate(columns)
    ]


def _blocks(widths: Sequence[int], room: int) -> Iterator[list[tuple[int, int]]]:
    """The columns with their widths, in as many parts as are needed so that each has room."""
    block: list[tuple[int, int]] = []
    for index, width in enumerate(widths):
        if block and sum(len(_GAP) + each for _, each in block) + len(_GAP) + width > room:
            yield block
            block = []
        block.append((index, width))
    yield block


def _shown(cell: Cell, numbers: Mapping[str, int]) -> str:
    return f"where [{numbers[cell.text]}]" if cell.text in numbers else cell.text


def _styled(cell: Cell, numbers: Mapping[str, int], width: int) -> str:
    shown = _shown(cell, numbers)
    return click.style(shown, fg=_COLOURS[cell.kind]) + " " * (width - len(shown))


def _listed(words: str, items: Iterable[str]) -> list[str]:
    """A list of things, none of which is parted at the end of a line."""
    line = words + ", ".join(item.replace(" ", _HARD_SPACE) for item in items)
    return [each.replace(_HARD_SPACE, " ") for each in _wrapped(line, _INDENT)]


def _wrapped(line: str, indent: str, hang: int = 2) -> list[str]:
    return textwrap.wrap(
        line, WIDTH, initial_indent=indent, subsequent_indent=indent + " " * hang, break_on_hyphens=False
    )
