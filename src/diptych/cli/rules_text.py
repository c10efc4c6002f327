"""The permission matrix of a model as text for a terminal of 100 columns.

A condition is printed in its cell if the table has room for it; else the cell has a number, and the condition is a
footnote. A table that is still too wide is split into blocks, each with the roles.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from diptych.explain.text import WIDTH
from diptych.model.describe.matrix import Permission, ResourceMatrix

LEGEND = (
    "Each role may do a thing always, never, or where a condition holds for the row.",
    "A row that a role may not read does not exist for it, whatever else it may do.",
    "Fields are listed where they differ from their row: there, always is wherever the row may be.",
)
_INDENT, _GAP, _HARD_SPACE = "  ", "  ", "\u00a0"
_COLOURS = {"always": "green", "where": "yellow", "never": "red"}
RoleRows = Mapping[str, Sequence[Permission]]


def render_matrices(matrices: Iterable[ResourceMatrix]) -> str:
    """All tables, with colours."""
    lines = [line for sentence in LEGEND for line in _wrapped(sentence, "")]
    for matrix in matrices:
        lines += _resource(matrix)
    return "\n".join(lines)


def _resource(matrix: ResourceMatrix) -> Iterator[str]:
    yield f"\n{click.style(matrix.resource.name, bold=True)}  /{matrix.resource.path}"
    yield from _table(matrix.columns, matrix.rows)
    for group in matrix.fields:
        yield ""
        yield from _listed("", group.names)
        yield from _table(group.columns, group.rows)
    for name, moves in matrix.moves.items():
        yield ""
        yield from _listed(f"{name} moves ", moves)
    yield ""
    yield from _listed("As the row: ", matrix.plain)


def _table(columns: Sequence[str], rows: RoleRows) -> Iterator[str]:
    """A header, a line for each role, and the footnotes."""
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


def _numbers(columns: Sequence[str], rows: RoleRows) -> dict[str, int]:
    """The numbers of the conditions that become footnotes: the longest ones, as many as the width demands."""
    conditions = dict.fromkeys(cell.text for cells in rows.values() for cell in cells if cell.kind == "where")
    room = WIDTH - len(_INDENT) - max(map(len, rows))
    numbers: dict[str, int] = {}
    for limit in sorted({len(condition) for condition in conditions} | {0}, reverse=True):
        long = (condition for condition in conditions if len(condition) > limit)
        numbers = {condition: number for number, condition in enumerate(long, 1)}
        if sum(_widths(columns, rows, numbers)) + len(_GAP) * len(columns) <= room:
            break
    return numbers


def _widths(columns: Sequence[str], rows: RoleRows, numbers: Mapping[str, int]) -> list[int]:
    return [
        max(len(column), *(len(_shown(cells[index], numbers)) for cells in rows.values()))
        for index, column in enumerate(columns)
    ]


def _blocks(widths: Sequence[int], room: int) -> Iterator[list[tuple[int, int]]]:
    """The columns with their widths, in as many blocks as the width demands."""
    block: list[tuple[int, int]] = []
    for index, width in enumerate(widths):
        if block and sum(len(_GAP) + taken for _, taken in block) + len(_GAP) + width > room:
            yield block
            block = []
        block.append((index, width))
    yield block


def _shown(cell: Permission, numbers: Mapping[str, int]) -> str:
    return f"where [{numbers[cell.text]}]" if cell.text in numbers else cell.text


def _styled(cell: Permission, numbers: Mapping[str, int], width: int) -> str:
    shown = _shown(cell, numbers)
    return click.style(shown, fg=_COLOURS[cell.kind]) + " " * (width - len(shown))


def _listed(words: str, items: Iterable[str]) -> list[str]:
    """A wrapped list of items, none of which is broken at the end of a line."""
    line = words + ", ".join(item.replace(" ", _HARD_SPACE) for item in items)
    return [wrapped.replace(_HARD_SPACE, " ") for wrapped in _wrapped(line, _INDENT)]


def _wrapped(line: str, indent: str, hang: int = 2) -> list[str]:
    return textwrap.wrap(
        line, WIDTH, initial_indent=indent, subsequent_indent=indent + " " * hang, break_on_hyphens=False
    )
