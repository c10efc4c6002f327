"""The permission matrix of a model as one self-contained HTML page: no script, no font, no other file.

All that comes from the model is escaped. Colour only repeats what the words say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from diptych.cli.rules_text import LEGEND
from diptych.model.describe.matrix import Cell, ResourceMatrix

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --always: #0a6b2d; --where: #7a5200; --never: #a3161f }
@media (prefers-color-scheme: dark) { :root { --always: #6fdc8c; --where: #f1c21b; --never: #ff8389 } }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; margin: 0 0 1rem }
caption { text-align: start; padding: .5rem 0 }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: start; vertical-align: top }
code { font: .9em/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
.always { color: var(--always) } .where { color: var(--where) } .never { color: var(--never) }
"""


def page(name: str, matrices: Sequence[ResourceMatrix]) -> str:
    title = escape(f"Who may do what: {name}")
    parts = [f"<p>{escape(sentence)}</p>" for sentence in LEGEND]
    for matrix in matrices:
        parts += _resource(matrix)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>"
    )


def _resource(matrix: ResourceMatrix) -> Iterator[str]:
    name = escape(matrix.resource.name)
    yield f"<section>\n<h2>{name} <code>/{escape(matrix.resource.path)}</code></h2>"
    yield from _table(f"Rows of {name}", matrix.columns, matrix.rows)
    for group in matrix.fields:
        yield from _table(f"{name}: {_codes(group.names)}", group.columns, group.rows)
    for attr, moves in matrix.moves.items():
        yield f"<p>{_codes([attr])} moves {escape(', '.join(moves))}</p>"
    yield f"<p>As the row: {_codes(matrix.plain)}</p>\n</section>"


def _table(caption: str, columns: Iterable[str], rows: Mapping[str, Sequence[Cell]]) -> Iterator[str]:
    """A table; its caption is HTML already."""
    yield f'<div class="wide"><table>\n<caption>{caption}</caption>'
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    yield f'<thead><tr><th scope="col">role</th>{heads}</tr></thead>\n<tbody>'
    for role, cells in rows.items():
        yield f'<tr><th scope="row">{escape(role)}</th>{"".join(map(_cell, cells))}</tr>'
    yield "</tbody>\n</table></div>"


def _cell(cell: Cell) -> str:
    shown = f"<code>{escape(cell.text)}</code>" if cell.kind == "where" else cell.kind
    return f'<td class="{cell.kind}">{shown}</td>'


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"<code>{escape(name)}</code>" for name in names)
